"""A run written to a file, whose ending says what it is. A file is whole or not there."""

from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from transformer_viz.errors import ExportError, OptionError, listed
from transformer_viz.export.content import page_title
from transformer_viz.export.drawings import figure_of
from transformer_viz.export.options import DEFAULTS, FileOptions
from transformer_viz.export.pages import figure_html, html
from transformer_viz.export.pictures import picture
from transformer_viz.export.tables import TABLE_FORMATS, table
from transformer_viz.figures.files import PICTURE_FORMATS
from transformer_viz.keywords import with_keywords
from transformer_viz.trace.trace import Trace
from transformer_viz.writing import check_target, write_bytes

FORMATS = ("html", *PICTURE_FORMATS, *TABLE_FORMATS)


@with_keywords(FileOptions, DEFAULTS)
def save(
    trace: Trace, path: str | PathLike[str], what: str = "player", *, force: bool = False, **options: Unpack[FileOptions]
) -> Path:
    """Writes the run as what the file's ending says: html, png, svg, pdf, csv, parquet or npz.

    Args:
        trace: the run.
        path: where to; the folder must be there.
        what: which picture, for html, png, svg and pdf; `player` as html is the whole run.
        force: replace a file that is there.
        options: as in `html`, and of a picture `width`, `height` and `scale` as in `picture`; a table has all of the run.

    Raises:
        OptionError: another ending, or an option with an impossible value.
        ExportError: the file is there already, or cannot be made or written.
    """
    path = Path(path)
    check_target(path, force=force)
    write(path, made(trace, format_of(path), what, **options))
    return path


def made(trace: Trace, format: str, what: str = "player", **options: Unpack[FileOptions]) -> bytes:
    """The file's content; `options` are those of `save`."""
    if format in TABLE_FORMATS:
        return table(trace, format)
    if format not in FORMATS:
        raise OptionError(f"format {format!r} is not known; choose one of {listed(FORMATS)}")
    given: dict[str, Any] = dict(options)
    size = {name: given.pop(name) for name in ("width", "height", "scale") if name in given}
    if format == "html" and what == "player":
        return html(trace, **given).encode()
    if given.pop("aligner", None) is not None:
        raise OptionError("aligner is of the page of the whole run; leave it out, or make that page")
    plotlyjs = given.pop("plotlyjs", True)
    figure = figure_of(trace, what, **given)
    if format in PICTURE_FORMATS:
        return picture(figure, format, **size)
    return figure_html(figure, title=page_title(trace), plotlyjs=plotlyjs).encode()


def format_of(path: Path) -> str:
    """The format that a file's ending names.

    Raises:
        OptionError: it names none.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise OptionError(f"{path.name} does not end in .{', .'.join(FORMATS)}; the ending says what to make.")
    return ending


def write(path: Path, data: bytes) -> None:
    """Writes beside and renames, so that nobody ever finds half a file.

    Raises:
        ExportError: the folder or the disk does not allow it.
    """
    try:
        write_bytes(data, path)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from error
