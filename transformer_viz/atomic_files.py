"""Writes files and folders beside their place and moves them there in one step, so that a reader never finds half of one."""

import os
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_viz.errors import ExportError

if TYPE_CHECKING:
    from torch import Tensor

PARTIAL = ".partial"
"""The suffix of a folder in which a file is being made; what a killed process left behind is in such a folder."""


def check_target(path: Path, *, force: bool) -> None:
    """Checks whether a file may be written, before anything is computed for it.

    Raises:
        ExportError: it may not; the message says why.
    """
    if path.is_dir():
        raise ExportError(f"{path} is a folder. Choose another name.")
    if path.exists() and not force:
        raise ExportError(f"{path} exists already. Choose another name, or replace it with --force (force=True).")
    if not path.parent.is_dir():
        raise ExportError(f"There is no folder {path.parent}. Make it first.")


def write_text(text: str, path: Path) -> None:
    """Writes a text file in one move.

    Raises:
        OSError: the disk is full, or the folder cannot be written to; the old file is still there.
    """
    with _temporary_file(path) as made:
        made.write_text(text, encoding="utf-8")


def write_bytes(data: bytes, path: Path) -> None:
    """Writes a file in one move.

    Raises:
        OSError: as `write_text`.
    """
    with _temporary_file(path) as made:
        made.write_bytes(data)


def write_export(path: Path, data: bytes) -> None:
    """Writes a file that somebody asked for, in one move.

    Raises:
        ExportError: the folder or the disk does not allow it.
    """
    try:
        write_bytes(data, path)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from error


def write_tensors(tensors: "Mapping[str, Tensor]", path: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file in one move, readable by everybody like the files beside it.

    Raises:
        OSError: as `write_text`.
    """
    # Here, since exports write files without torch.
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with _temporary_file(path) as made:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, made, metadata)
        except SafetensorError as error:
            # What the operating system said, which safetensors passes on as text only.
            number = re.search(r"\(os error (\d+)\)", str(error))
            raise (OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else error) from error
        umask = os.umask(0)
        os.umask(umask)
        made.chmod(0o666 & ~umask)


@contextmanager
def new_folder(folder: Path) -> Generator[Path]:
    """Yields a folder to fill, which then replaces `folder` in one move; after an error the old one stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (folder.with_name(f".{folder.name}.{os.getpid()}{ending}") for ending in (PARTIAL, ".old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if replaces := folder.exists():
            folder.rename(old)
        try:
            partial.rename(folder)
        except BaseException:
            if replaces:
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _temporary_file(path: Path) -> Generator[Path]:
    """Gives a place for a file before it is moved to `path`: in a folder of its own, removed with all that a writer leaves."""
    folder = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        folder.mkdir(exist_ok=True)
        yield folder / path.name
        (folder / path.name).replace(path)
    except OSError as error:
        # Named for what was to be written, not for where it was made; of a full disk Python names no file at all.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
