"""A run written to a file, whose ending says what it is. A file is whole or not there."""

import contextlib
import os
from os import PathLike
from pathlib import Path
from typing import Any

from transformer_viz.errors import ExportError, OptionError, listed
from transformer_viz.export.content import page_title
from transformer_viz.export.drawings import What, figure_of
from transformer_viz.export.pages import figure_html, html
from transformer_viz.export.pictures import picture
from transformer_viz.export.tables import TABLE_FORMATS, table
from transformer_viz.figures.files import PICTURE_FORMATS
from transformer_viz.trace.trace import Trace

FORMATS = ("html", *PICTURE_FORMATS, *TABLE_FORMATS)


def save(trace: Trace, path: str | PathLike[str], what: What = "player", *, force: bool = False, **options: Any) -> Path:
    """Writes the run as what the file's ending says: html, png, svg, pdf, csv, parquet or npz.

    Args:
        trace: the run.
        path: where to; the folder must be there.
        what: which picture, for html, png, svg and pdf; `player` as html is the whole run.
        force: replace a file that is there.
        options: the keywords of `html` for a page, of `picture` for a picture; none for a table.

    Raises:
        OptionError: another ending, or an option with an impossible value.
        ExportError: the file is there already, or cannot be made or written.
    """
    path = Path(path)
    check(path, force=force)
    write(path, made(trace, format_of(path), what, **options))
    return path


def made(trace: Trace, format: str, what: What = "player", **options: Any) -> bytes:
    """The file's content; see `save`."""
    if format in TABLE_FORMATS:
        return table(trace, format)
    size = {name: options.pop(name) for name in ("width", "height", "scale") if name in options}
    if format in PICTURE_FORMATS:
        options.pop("plotlyjs", None)
        if options.get("theme") == "auto":
            options["theme"] = "light"
        return picture(figure_of(trace, what, **options), format, **size)
    if format != "html":
        raise OptionError(f"format {format!r} is not known; choose one of {listed(FORMATS)}")
    if what == "player":
        return html(trace, **options).encode()
    plotlyjs = options.pop("plotlyjs", True)
    if options.get("theme") == "auto":
        options["theme"] = "light"
    return figure_html(figure_of(trace, what, **options), title=page_title(trace), plotlyjs=plotlyjs).encode()


def format_of(path: Path) -> str:
    """The format that a file's ending names.

    Raises:
        OptionError: it names none.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise OptionError(f"{path.name} does not end in .{', .'.join(FORMATS)}; the ending says what to make.")
    return ending


def check(path: Path, *, force: bool) -> None:
    """Finds out before anything is made whether the file may be written.

    Raises:
        ExportError: it may not; the message says why.
    """
    if path.is_dir():
        raise ExportError(f"{path} is a folder. Choose another name.")
    if path.exists() and not force:
        raise ExportError(f"{path} exists already. Choose another name, or replace it with --force (force=True).")
    if not path.parent.is_dir():
        raise ExportError(f"There is no folder {path.parent}. Make it first.")


def write(path: Path, data: bytes) -> None:
    """Writes beside and renames, so that nobody ever finds half a file.

    Raises:
        ExportError: the folder or the disk does not allow it.
    """
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from error
