"""List the checkpoints, the damaged ones with the reason."""

import argparse
from typing import Any

from transformer_viz.commands import _shared

HELP = "list the checkpoints"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form of the list."""
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, also when some are damaged."""
    from transformer_viz.checkpoints import entries

    rows = [_row(entry) for entry in entries()]
    if arguments.json:
        _shared.print_json({"checkpoints": rows})
        return 0
    if not rows:
        print("no checkpoints; make one with: python -m transformer_viz train --recipe reverse")
    for row in rows:
        name = _shared.visible(row["name"])
        if row["error"]:
            print(f"{name:20} cannot be used: {_shared.visible(row['error'])}")
        else:
            print(
                f"{name:20} {row['task']:10} {row['variant']:20} {row['layers']:8} {_known(row['exact_match'])} exact  "
                f"{_known(row['best_head_mass'])} best head"
            )
    return 0


def _row(entry: Any) -> dict[str, Any]:
    """`entry` is a `checkpoints.Entry`; naming the class would import torch."""
    if entry.error:
        return {"name": entry.name, "folder": str(entry.folder), "error": entry.error}
    model, metrics = entry.summary["model"], entry.summary["metrics"]
    return {
        "name": entry.name,
        "folder": str(entry.folder),
        "task": entry.summary["task"]["name"],
        "variant": entry.summary["variant"],
        "layers": f"{model['n_encoder_layers']}+{model['n_decoder_layers']}x{model['n_heads']}",
        "exact_match": metrics.get("exact_match"),
        "best_head_mass": metrics.get("best_head_mass"),
        "error": None,
    }


def _known(number: float | None) -> str:
    return "     -" if number is None else f"{number:.4f}"
