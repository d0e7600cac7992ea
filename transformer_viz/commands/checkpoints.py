"""List the checkpoints, the damaged ones with the reason."""

import argparse
from typing import Any

from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import bytes_words

HELP = "list the checkpoints"
_COLUMNS = "{:20} {:10} {:20} {:>7} {:>10} {:>8} {:>7} {:>9}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form of the list."""
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, also when some are damaged."""
    from transformer_viz.checkpoints import entries, trained_folder

    rows, trained = [_row(entry) for entry in entries()], str(trained_folder())
    if arguments.json:
        _shared.print_json({"checkpoints": rows, "trained_folder": trained})
    else:
        _print_table(rows)
        print(_shared.visible(f"what you train goes to {trained}"))
    return 0


def _row(entry: Any) -> dict[str, Any]:
    """`entry` is a `checkpoints.Entry`; naming the class would import torch."""
    if entry.error:
        return {"name": entry.name, "folder": str(entry.folder), "error": entry.error}
    about = entry.description
    return {
        "name": entry.name,
        "folder": str(entry.folder),
        "task": about.task.name,
        "variant": about.variant,
        "encoder_layers": about.model.n_encoder_layers,
        "decoder_layers": about.model.n_decoder_layers,
        "heads": about.model.n_heads,
        "parameters": entry.n_parameters,
        "bytes": entry.n_bytes,
        "exact_match": about.metrics.get("exact_match"),
        "best_head_mass": about.metrics.get("best_head_mass"),
        "error": None,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("no checkpoints; make one with: python -m transformer_viz train --recipe reverse")
        return
    print(_COLUMNS.format("name", "task", "variant", "layers", "parameters", "size", "exact", "best head"))
    for row in rows:
        if row["error"]:
            print(_shared.visible(f"{row['name']:20} cannot be used: {row['error']}"))
        else:
            print(_shared.visible(_line(row)))


def _line(row: dict[str, Any]) -> str:
    return _COLUMNS.format(
        row["name"],
        row["task"],
        row["variant"],
        f"{row['encoder_layers']}+{row['decoder_layers']}x{row['heads']}",
        f"{row['parameters']:,}",
        bytes_words(row["bytes"]),
        _shared.cell(row["exact_match"], 4),
        _shared.cell(row["best_head_mass"], 4),
    )
