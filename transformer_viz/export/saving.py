"""A run written to a file, whose ending says what it is. A file is whole or not there."""

from os import PathLike
from pathlib import Path
from typing import Any

from transformer_viz.errors import ExportError, OptionError, listed
from transformer_viz.export.content import PageTheme, page_title
from transformer_viz.export.drawings import WIDTH, Place, figure_of
from transformer_viz.export.pages import PlotlyJs, figure_html, html
from transformer_viz.export.pictures import SCALE, picture
from transformer_viz.export.tables import TABLE_FORMATS, table
from transformer_viz.figures.files import PICTURE_FORMATS
from transformer_viz.figures.shades import Scale
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.writing import check_target, write_bytes

FORMATS = ("html", *PICTURE_FORMATS, *TABLE_FORMATS)


def save(
    trace: Trace,
    path: str | PathLike[str],
    what: str = "player",
    *,
    force: bool = False,
    kind: Kind | None = None,
    layer: int | None = None,
    head: Head | None = None,
    step: int | None = None,
    theme: PageTheme = "auto",
    large: bool = False,
    with_answer: bool = True,
    plotlyjs: PlotlyJs = True,
    width: int = WIDTH,
    height: int | None = None,
    scale: float = SCALE,
    colours: Scale = "fixed",
    aligner: str | None = None,
) -> Path:
    """Writes the run as what the file's ending says: html, png, svg, pdf, csv, parquet or npz.

    Args:
        trace: the run.
        path: where to; the folder must be there.
        what: which picture, for html, png, svg and pdf; `player` as html is the whole run.
        force: replace a file that is there.
        kind: as `layer`, `head`, `step`, `theme`, `large` and `with_answer` in `html` and `picture`; a table has all.
        layer: likewise.
        head: likewise.
        step: likewise.
        theme: likewise; in a picture `auto` is `light`.
        large: likewise.
        with_answer: likewise.
        plotlyjs: of a page, as in `html`.
        width: of a picture, as `height` and `scale` in `picture`.
        height: likewise.
        scale: likewise.
        colours: as in `html` and `picture`.
        aligner: of the page of the whole run, as in `html`.

    Raises:
        OptionError: another ending, or an option with an impossible value.
        ExportError: the file is there already, or cannot be made or written.
    """
    path = Path(path)
    check_target(path, force=force)
    place = Place(kind, layer, head, step)._asdict()
    looks = {
        "theme": theme,
        "large": large,
        "with_answer": with_answer,
        "plotlyjs": plotlyjs,
        "colours": colours,
        "aligner": aligner,
    }
    size = {"width": width, "height": height, "scale": scale}
    write(path, made(trace, format_of(path), what, **place, **looks, **size))
    return path


def made(trace: Trace, format: str, what: str = "player", **options: Any) -> bytes:
    """The file's content; `options` are the other keywords of `save` but `force`."""
    if format in TABLE_FORMATS:
        return table(trace, format)
    if format not in FORMATS:
        raise OptionError(f"format {format!r} is not known; choose one of {listed(FORMATS)}")
    size = {name: options.pop(name) for name in ("width", "height", "scale") if name in options}
    if format == "html" and what == "player":
        return html(trace, **options).encode()
    if options.pop("aligner", None) is not None:
        raise OptionError("aligner is of the page of the whole run; leave it out, or make that page")
    plotlyjs = options.pop("plotlyjs", True)
    place = Place(**{name: options.pop(name) for name in Place._fields if name in options})
    if options.get("theme") == "auto":
        options["theme"] = "light"
    figure = figure_of(trace, what, place, **options)
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
