"""Make a page, a picture or a table of a saved trace; the ending of OUT says which. Everything counts from 1, as on the page.

`.html` is one file that needs no network: the whole run, step by step, or with --what one figure. `.png`, `.svg` and `.pdf`
need kaleido and a Chrome or Chromium. `.csv` and `.parquet` hold every weight; there, and only there, numbers count from 0.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError, listed
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import KINDS

if TYPE_CHECKING:
    from transformer_viz.terms import Kind
    from transformer_viz.trace.trace import Trace

HELP = "make a page, picture or table of a trace"
_ENDINGS = ("html", "png", "svg", "pdf", "csv", "parquet")
_TABLES = ("csv", "parquet")
_OF_PICTURES = ("what", "kind", "layer", "head", "step", "theme", "large", "hide_answer", "colours", "aligner")
_NOT_INSIDE = ("what", "kind", "layer", "head", "step", "hide_answer", "colours", "words", "without_plotlyjs", "aligner")
_COLOURS = ("fixed", "head", "log")
_HIGHEST = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, OUT, what is drawn, how it looks."""
    number = _shared.whole(1, _HIGHEST)
    parser.add_argument("file", metavar="FILE.npz", type=Path, help="a trace that `trace` or `Trace.save` wrote")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", type=Path, help=f"where to write: a name in .{', .'.join(_ENDINGS)}"
    )
    parser.add_argument("--what", metavar="WHAT", help="player, attention, mosaic, masks, search or an added figure (player)")
    parser.add_argument(
        "--inside",
        action="store_true",
        help="a page of what the file holds of the inside of heads (trace --inside)",
    )
    parser.add_argument("--kind", choices=KINDS, help="which attention (cross, where the run has it)")
    parser.add_argument("--layer", type=number, metavar="N", help="from 1 (the best head's)")
    parser.add_argument("--head", type=_head, metavar="N", help="from 1, or mean or max (the best)")
    parser.add_argument("--step", type=number, metavar="N", help="from 1; player only (the last one that writes a token)")
    parser.add_argument(
        "--theme", choices=("auto", "light", "dark"), help="auto is for pages: what the reader's system prefers"
    )
    parser.add_argument("--large", action="store_true", help="bigger letters, for a projector")
    parser.add_argument(
        "--hide-answer", action="store_true", help="no ring, no mark on a wrong token, not a word on what is right"
    )
    parser.add_argument(
        "--colours", choices=_COLOURS, help="the strongest is a weight of 1, a head's own largest, or logarithmic (fixed)"
    )
    parser.add_argument("--words", action="store_true", help="pieces pooled to words: keys summed, queries averaged")
    parser.add_argument(
        "--aligner", metavar="HEAD", help="of a page: the head that says where a word comes from, as 2.1 (align-heads finds it)"
    )
    size = _shared.whole(50, 8000)
    parser.add_argument("--width", type=size, metavar="PIXELS", help="of a picture (1200)")
    parser.add_argument("--height", type=size, metavar="PIXELS", help="of a picture (what it needs)")
    parser.add_argument(
        "--scale", type=_shared.decimal(0, or_equal=False), metavar="X", help="of a png: its pixels for each (2)"
    )
    _add_plotlyjs(parser)
    _shared.add_limits(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def _add_plotlyjs(parser: argparse.ArgumentParser) -> None:
    """Where a page has it from."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--plotlyjs",
        default="inside",
        metavar="WHERE",
        help="of a page: inside (4.8 MB), packed (2 MB, for browsers of 2023 and later), cdn, a path or an address (inside)",
    )
    where.add_argument(
        "--without-plotlyjs",
        action="store_true",
        help="the page loads plotly.min.js beside it, written if it is missing",
    )


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is written."""
    path: Path = arguments.output
    ending = _checked(path, arguments)

    from transformer_viz.analysis.words import by_words
    from transformer_viz.export import inside_html, saving
    from transformer_viz.trace import limits

    saving.check(path, force=arguments.force)
    trace = _shared.load_trace(arguments.file, no_limits=arguments.no_limits)
    if arguments.inside:
        page = inside_html(trace, theme=arguments.theme or "auto", large=arguments.large)
        saving.write(path, page.encode())
        _say_size(path)
        return 0
    trace = by_words(trace) if arguments.words else trace
    what = arguments.what or "player"
    if not arguments.no_limits and (ending in _TABLES or (ending == "html" and what == "player")):
        with _shared.lifted_by_flag():
            limits.check_file(trace, str(arguments.file)[-200:], is_table=ending in _TABLES)
    saving.write(path, saving.made(trace, ending, what, **({} if ending in _TABLES else _options(trace, ending, arguments))))
    _say_size(path)
    if arguments.without_plotlyjs:
        _put_plotly_beside(path)
    return 0


def _head(text: str) -> int | str:
    return text if text in ("mean", "max") else _shared.whole(1, _HIGHEST)(text)


def _checked(path: Path, arguments: argparse.Namespace) -> str:
    """The ending; what does not fit it is said and not passed over."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise OptionError(f"{path.name} does not end in .{', .'.join(_ENDINGS)}; the ending says what to make.")
    groups = (
        (_OF_PICTURES, ending in _TABLES, "a table holds every weight; it is of pictures and pages"),
        (("width", "height", "scale"), ending not in ("png", "svg", "pdf"), "it is of .png, .svg and .pdf"),
        (("without_plotlyjs", "inside"), ending != "html", "it is of .html"),
    )
    if arguments.inside and (given := [name for name in _NOT_INSIDE if getattr(arguments, name) not in (None, False)]):
        name = given[0].replace("_", "-")
        raise OptionError(f"--{name} has no place with --inside, which shows all heads that the file holds. Leave one out.")
    for names, is_wrong, why in groups:
        given = [name for name in names if getattr(arguments, name) not in (None, False)]
        if is_wrong and given:
            raise OptionError(f"--{given[0].replace('_', '-')} has no place with .{ending}: {why}.")
    return ending


def _options(trace: "Trace", ending: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The keywords of `saving.made`, counted from 0."""
    _check_places(trace, arguments)
    options: dict[str, Any] = {name: getattr(arguments, name) for name in ("kind", "width", "height", "scale", "aligner")}
    for name in ("layer", "head", "step"):
        given = getattr(arguments, name)
        options[name] = given - 1 if isinstance(given, int) else given
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"theme": arguments.theme or "auto", "large": arguments.large, "with_answer": not arguments.hide_answer}
    options["colours"] = arguments.colours or "fixed"
    if ending == "html":
        options["plotlyjs"] = False if arguments.without_plotlyjs else _plotlyjs(arguments.plotlyjs)
    return options


def _plotlyjs(given: str) -> bool | str:
    return True if given == "inside" else given


def _check_places(trace: "Trace", arguments: argparse.Namespace) -> None:
    """The figures' own messages count from 0."""
    kind: Kind = arguments.kind or ("cross" if "cross" in trace.kinds or not trace.kinds else trace.kinds[-1])
    if kind not in trace.kinds:
        raise OptionError(f"--kind {kind}: this run has no {kind} attention; it has {listed(trace.kinds)}")
    n_heads, numbers = trace.attentions[kind].n_heads, [number + 1 for number in trace.attentions[kind].layers]
    if arguments.layer is not None and arguments.layer not in numbers:
        which = f"1 to {numbers[-1]}" if len(numbers) == numbers[-1] else listed(numbers)
        raise OptionError(f"--layer {arguments.layer} is not possible; this run's {kind} attention has {which}")
    most = {"head": n_heads, "step": max(1, trace.n_steps)}
    for name, size in most.items():
        given = getattr(arguments, name)
        if isinstance(given, int) and given > size:
            more = ", mean or max" if name == "head" else ""
            raise OptionError(f"--{name} {given} is not possible; this run's {kind} attention has 1 to {size}{more}")


def _put_plotly_beside(path: Path) -> None:
    from transformer_viz.export import saving
    from transformer_viz.export.pages import BESIDE, plotly_file

    beside = path.with_name(BESIDE)
    if not beside.exists():
        saving.write(beside, plotly_file())
        _say_size(beside)


def _say_size(path: Path) -> None:
    print(_shared.visible(f"{path}: {bytes_words(path.stat().st_size)}"))
