"""The command line that does the same training as the form of the page Train."""

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_WIDTH = 90


def command(
    task: str,
    variant: str,
    settings: Mapping[str, Any],
    *,
    folder: str,
    snapshots: int,
    samples: int,
    embeddings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The command line, broken where it is long.

    Args:
        task: what is learned.
        variant: which architecture.
        settings: those of model and recipe that differ from the defaults of task and variant, by their names in Python.
        folder: where the checkpoint goes; a `~/` in front is the reader's own folder.
        snapshots: weights kept along the way.
        samples: texts of the evaluation at the end.
        embeddings: files of pretrained matrices, by their side.
    """
    parts = [
        f"python -m transformer_viz train {shlex.quote(task)} --variant {shlex.quote(variant)}",
        *(_option(setting, value) for setting, value in settings.items()),
        *(f"--{side}-embedding {_path(file)}" for side, file in embeddings.items()),
        f"--snapshots {snapshots}",
        f"--samples {samples}",
        f"-o {_path(folder)}",
    ]
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) > _WIDTH:
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)


def _path(path: str) -> str:
    """A path quoted for a shell, which expands `~` only outside quotation marks."""
    home = "~/" if path.startswith("~/") else ""
    return home + shlex.quote(path.removeprefix(home))


def _option(name: str, value: Any) -> str:
    if name == "frozen_embeddings":
        return "--freeze-embeddings"
    flag = name.removeprefix("n_").replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
