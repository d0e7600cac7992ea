"""Writes a run to a file, or gives the file's bytes: pages, pictures, tables. No file is ever left half-written."""

import importlib.util
import io
import re
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from transformer_viz.atomic_files import check_target, write_export
from transformer_viz.errors import ExportError, OptionError, join_names
from transformer_viz.export.content import (
    DEFAULTS,
    SCALE,
    WIDTH,
    FileOptions,
    ShownOptions,
    View,
    page_title,
    picture_title,
    view,
)
from transformer_viz.export.drawings import figure_of
from transformer_viz.export.moving import OF_A_GIF, gif
from transformer_viz.export.pages import figure_html, html
from transformer_viz.figures import files
from transformer_viz.figures.files import PICTURE_FORMATS
from transformer_viz.figures.theme import escape
from transformer_viz.keywords import with_keywords
from transformer_viz.language import say, speaking
from transformer_viz.sentences.run_sentences import step_name
from transformer_viz.terms import place_words
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

TableFormat = Literal["csv", "parquet", "npz"]
TABLE_FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
FORMATS = ("html", *PICTURE_FORMATS, "gif", *TABLE_FORMATS)
_HEIGHT = 480
"""Pixels of a picture whose figure has no size of its own."""
_LONGEST = 40
_TITLE = 32
"""Pixels above a picture for its caption."""
_ON_PAPER = ("svg", "pdf")
_LEAST_OF_PLAYER = 400
"""Points that a map takes with its candidates beside it."""
_POINTS, _POINTS_OF_PIXEL, _SHRUNK = (72, 1500), 0.75, 0.82
"""Widths of a picture on paper; a pixel in points; and what letters of 13 pixels are shrunk by, to be 8 points high."""
_FLAT = {"mosaic": 0.5, "row": 0.45}
_HIGH = 0.75
"""The height of a picture on paper, as a part of its width."""


@with_keywords(FileOptions, DEFAULTS)
def save(
    trace: Trace, path: str | PathLike[str], what: str = "player", *, force: bool = False, **options: Unpack[FileOptions]
) -> Path:
    """Writes the run in the format of the file's ending: html, png, svg, pdf, gif, csv, parquet or npz.

    Args:
        trace: the run.
        path: where to; the folder must be there.
        what: which picture, for html, png, svg and pdf: `player`, `attention` (one map), `row` (one step of it), `mosaic` (all
            heads of a kind), `masks` or `search` (of a beam search); `player` as html is the whole run.
        force: replace a file that is there.
        options: as in `html`, and of a picture `width`, `height`, `scale` and `paper` as in `picture`; a table has all of
            the run.

    Returns:
        The path.

    Raises:
        OptionError: another ending, or an option with an impossible value.
        ExportError: the file is there already, or cannot be made or written.

    Example:
        >>> import pathlib, tempfile
        >>> import transformer_viz as tv
        >>> trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> tv.export.save(trace, folder / "hello.html", theme="dark").name  # the whole run
        'hello.html'
        >>> tv.export.save(trace, folder / "head.html", "attention", head="cross.2.3").name  # one figure
        'head.html'
        >>> tv.export.save(trace, folder / "head.png", "attention", head="cross.2.3").name  # doctest: +SKIP
        'head.png'
        >>> tv.export.save(trace, folder / "hello.csv").name  # every weight
        'hello.csv'
    """
    path = Path(path)
    check_target(path, force=force)
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise OptionError(f"{path.name} does not end in .{', .'.join(FORMATS)}; the ending says what to make.")
    write_export(path, render_bytes(trace, ending, what, **options))
    return path


def render_bytes(trace: Trace, format: str, what: str = "player", **options: Unpack[FileOptions]) -> bytes:
    """The file's content; `options` are those of `save`."""
    if format in TABLE_FORMATS:
        return table(trace, format)
    if format not in FORMATS:
        raise OptionError(f"format {format!r} is not known; choose one of {join_names(FORMATS)}")
    given: dict[str, Any] = dict(options)
    if format == "gif":
        other = (["what"] if what != "player" else []) + sorted(given.keys() - OF_A_GIF)
        if other:
            raise OptionError(f"{other[0]} is not of a moving picture, which is of one head and all steps")
        return gif(trace, **given)
    size = {name: given.pop(name) for name in ("width", "height", "scale", "paper") if name in given}
    if format == "html" and what == "player":
        return html(trace, **given).encode()
    if given.pop("aligner", None) is not None:
        raise OptionError("aligner is of the page of the whole run; leave it out, or make that page")
    plotlyjs = given.pop("plotlyjs", True)
    if format in PICTURE_FORMATS:
        return picture(trace, format, what=what, **size, **given)
    language = given.get("language")
    return figure_html(figure_of(trace, what, **given), title=page_title(trace), plotlyjs=plotlyjs, language=language).encode()


@with_keywords(ShownOptions, DEFAULTS)
def picture(
    shown: Any,
    format: str = "png",
    *,
    width: int = WIDTH,
    height: int | None = None,
    scale: float = SCALE,
    what: str = "player",
    paper: float | None = None,
    **options: Unpack[ShownOptions],
) -> bytes:
    """Makes a picture, as the bytes of its file. A Chrome or Chromium of the system draws it, in about three seconds.

    Args:
        shown: a figure from `transformer_viz.figures`, or a Trace.
        format: `png`, `svg` or `pdf`.
        width: in pixels of the figure.
        height: in pixels of the figure; by default what the figure asks for.
        scale: pixels of a PNG for each of those.
        what: of a Trace: `player` is one step's map with its candidates, `attention` a whole map, `row` the weights of one
            step as bars, `mosaic` all heads of a kind, `masks` every mask by its reasons, `search` the tree of a beam search.
        paper: of an SVG or PDF for a paper, its width in points (1/72 inch), as LaTeX says it of a column by
            `\\the\\columnwidth`; letters are then 8 points high, no caption is in it, and `height` is in points too.
        options: of a Trace, as in `html`; the theme `auto` is `light`.

    Raises:
        OptionError: an option has an impossible value.
        ExportError: kaleido or a browser is missing; the message says what to install.
    """
    figure = shown
    if paper is not None:
        width, height, scale = _on_paper(format, paper, height, width, what)
    if isinstance(shown, Trace) and paper is not None:
        figure = figure_of(shown, what, **options)
    elif isinstance(shown, Trace):
        figure = figure_of(shown, what, **options)
        now = view(shown, options.get("head"), options.get("step"))
        # A caption that says of which run. Other figures than the player have a title of their own, which says the head.
        with speaking(options.get("language")):
            words = _caption(shown, now) if what == "player" else picture_title(shown)
        own = f" · {figure.layout.title.text}" if figure.layout.title.text else ""
        at = {"x": 0, "xanchor": "left", "xref": "container", "y": 1, "yanchor": "top", "yref": "container"}
        figure.update_layout(
            title={"text": escape(words) + own, "font": {"size": 15}, "pad": {"t": 8, "l": 8}, **at},
            margin_t=(figure.layout.margin.t or 0) + _TITLE,
            height=(figure.layout.height or _HEIGHT) + _TITLE,
        )
    return files.picture_of(figure, format, width, height or int(figure.layout.height or _HEIGHT), scale)


def _caption(trace: Trace, now: View) -> str:
    """The caption of a picture of the player."""
    of_head = picture_title(trace, now.kind, now.layer, now.head)
    step = say("step {step}", step=now.step + 1) if trace.writes else place_words(now.step)
    return say("{picture}, {step}", picture=of_head, step=step)


def _on_paper(format: str, paper: float, height: int | None, width: int, what: str) -> tuple[int, int, float]:
    """Width, height and scale of a picture that is so wide on paper.

    Raises:
        OptionError: another format, another width beside this one, or an impossible one.
    """
    if format not in _ON_PAPER:
        raise OptionError(f"paper={paper:g} is of {join_names(_ON_PAPER)}; a {format.upper()} has a width in pixels")
    if width != WIDTH:
        raise OptionError("width and paper cannot be used together: both say how wide it is")
    least, most = _POINTS
    if not least <= paper <= most:
        raise OptionError(f"paper={paper:g} is not possible; a width on paper is {least} to {most:,} points")
    if what == "player" and paper < _LEAST_OF_PLAYER:
        raise OptionError(
            f"paper={paper:g} is too narrow for a step with its candidates, which takes {_LEAST_OF_PLAYER} points; "
            "what='attention' is the map alone"
        )
    pixels = paper / _POINTS_OF_PIXEL / _SHRUNK
    high = pixels * _FLAT.get(what, _HIGH) if height is None else height / _POINTS_OF_PIXEL / _SHRUNK
    return round(pixels), round(high), _SHRUNK


def table(trace: Trace, format: str = "csv") -> bytes:
    """The bytes of a table with one row for each weight, as CSV (UTF-8) or Parquet; or of the whole run as `.npz`.

    Layers, heads and positions count from 0, as in `trace.to_frame()`.

    Raises:
        OptionError: no such format.
        ExportError: Parquet without pyarrow.
    """
    if format not in TABLE_FORMATS:
        raise OptionError(f"format {format!r} is no table; choose one of {join_names(TABLE_FORMATS)}")
    if format == "npz":
        return to_bytes(trace)
    frame = trace.to_frame()
    if format == "csv":
        return frame.to_csv(index=False).encode()
    if importlib.util.find_spec("pyarrow") is None:
        raise ExportError("Parquet needs pyarrow: pip install pyarrow. CSV holds the same numbers.")
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


def file_name(trace: Trace, format: str, now: View) -> str:
    """`attention-hello-reverse-cross-layer2-head1-step4.png`; what holds the whole run names no head. Counts from 1."""
    texts = (trace.source, str(trace.made_by.get("checkpoint") or ""))
    # ASCII letters, digits and `_`; anything else is `_`.
    source, checkpoint = (re.sub(r"[^A-Za-z0-9]+", "_", text[:_LONGEST]).strip("_") for text in texts)
    parts = ["attention", source or "run", checkpoint]
    if format in PICTURE_FORMATS:
        head = now.head if isinstance(now.head, str) else f"head{now.head + 1}"
        parts += [now.kind, f"layer{now.layer + 1}", head, f"{step_name(trace)}{now.step + 1}"]
    return "-".join(filter(None, parts)) + f".{format}"
