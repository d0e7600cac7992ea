"""The command `checkpoints`."""

from typing import Any

from transformer_viz import app_folders
from transformer_viz.commands._shared import Json, print_json, print_lines
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.text_table import number_cell, text_table

_COLUMNS = ("name", "task", "variant", "layers", "parameters", "size", "exact", "best head")


def run(json: Json = False) -> None:
    """List the checkpoints, and say why one is damaged."""
    from transformer_viz.checkpoints import entries

    trained, rows = str(app_folders.trained()), []
    for entry in entries():
        row: dict[str, Any] = {"name": entry.name, "folder": str(entry.folder), "error": entry.error}
        if (about := entry.description) is not None:
            row |= {
                "task": about.task.name,
                "variant": about.variant,
                "encoder_layers": about.model.n_encoder_layers,
                "decoder_layers": about.model.n_decoder_layers,
                "heads": about.model.n_heads,
                "parameters": entry.n_parameters,
                "bytes": entry.n_bytes,
                "exact_match": about.metrics.get("exact_match"),
                "best_head_mass": about.metrics.get("best_head_mass"),
            }
        rows.append(row)
    if json:
        print_json({"checkpoints": rows, "trained_folder": trained})
        return
    if usable := [row for row in rows if not row["error"]]:
        cells = (
            (
                row["name"],
                row["task"],
                row["variant"],
                f"{row['encoder_layers']}+{row['decoder_layers']}x{row['heads']}",
                f"{row['parameters']:,}",
                bytes_words(row["bytes"]),
                *(number_cell(row[name], 4) for name in ("exact_match", "best_head_mass")),
            )
            for row in usable
        )
        print_lines(text_table(_COLUMNS, cells, "<<<>"))
    for row in rows:
        if row["error"]:
            print_lines(f"{row['name']} cannot be used: {row['error']}")
    if not rows:
        print("no checkpoints; make one with: python -m transformer_viz train --recipe reverse")
    else:
        print_lines(f"what you train goes to {trained}")
