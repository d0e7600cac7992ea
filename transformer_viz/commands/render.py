"""The command `render`."""

from pathlib import Path
from typing import Annotated, Any, Literal

from transformer_viz.atomic_files import check_target, write_export
from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import Force, Language, NoLimits, lifted_by_flag, load_trace, terminal_text
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.schema import Range

_ENDINGS = ("html", "png", "svg", "pdf", "gif", "csv", "parquet")
_TABLES = ("csv", "parquet")
_NUMBER, _SIZE, _POINTS = Range(1, 100_000), Range(50, 8000), Range(72, 1500)
_SECONDS = Range(0.05, 60)


def run(
    file: Annotated[Path, "a trace file, as the command `trace` writes it"],
    output: Annotated[Path, f"where to write: a name in .{', .'.join(_ENDINGS)}", Option("-o")],
    what: Annotated[str | None, "which figure: player, attention, row, mosaic, masks, search (player)"] = None,
    inside: Annotated[bool, "make a page of the numbers inside the heads that `trace --inside` saved"] = False,
    head: Annotated[
        str | None, "a head (cross.2.3), all heads of a layer (cross.2.mean, cross.2.max), or a kind (cross) (the best head)"
    ] = None,
    step: Annotated[int | None, "for a player: the step, from 1 (the last one)", _NUMBER] = None,
    theme: Annotated[Literal["auto", "light", "dark"], "auto, for pages only, follows the reader's system"] | None = None,
    large: Annotated[bool, "bigger letters, for a projector"] = False,
    language: Language = None,
    hide_answer: Annotated[bool, "do not show the right answer"] = False,
    colours: Annotated[
        Literal["fixed", "head", "log"],
        "the darkest colour is a weight of 1, or the head's largest weight; or a logarithmic scale (fixed)",
    ]
    | None = None,
    words: Annotated[bool, "join pieces of words: sum over keys, mean over queries"] = False,
    aligner: Annotated[str | None, "for a page: the head that aligns words, as in cross.2.1; `align-heads` finds it"] = None,
    width: Annotated[int | None, "for a picture: width in pixels (1200, of a GIF 800)", _SIZE] = None,
    height: Annotated[int | None, "for a picture: height in pixels (as needed)", _SIZE] = None,
    shape: Annotated[Literal["wide", "square"] | None, "for a GIF: 16 to 9, or as high as wide (wide)"] = None,
    seconds: Annotated[float | None, "for a GIF: seconds of a step (about 6 for all)", _SECONDS] = None,
    paper: Annotated[
        float | None,
        "for an SVG or PDF in a paper: its width in points, as 240 for a column, with letters of 8 points",
        _POINTS,
    ] = None,
    scale: Annotated[float | None, "for a PNG: N times as many pixels (2)", Range(0, above=True)] = None,
    plotlyjs: Annotated[
        str | None,
        "for a page: plotly.js is inside (1.5 MB), packed (0.7 MB, browsers since 2023), cdn, a path or an address (inside)",
        Option(either="plotly.js"),
    ] = None,
    without_plotlyjs: Annotated[
        bool,
        "for a page: load plotly.js from the same folder, and write it there if it is missing",
        Option(either="plotly.js"),
    ] = False,
    no_limits: NoLimits = False,
    force: Force = False,
) -> None:
    """Make a page, a picture or a table of a saved trace.

    The ending of --output says which. `.html` is the whole run, step by step, or with --what one figure; it needs no network.
    `.gif` is a run that is written step by step. It, `.png`, `.svg` and `.pdf` need kaleido and a Chrome or Chromium. `.csv`
    and `.parquet` hold every weight. Layers, heads and steps count from 1, in `.csv` and `.parquet` from 0.
    """
    ending = output.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise OptionError(f"{output.name} does not end in .{', .'.join(_ENDINGS)}; the ending says what to make.")
    place = {"head": head, "step": step}
    looks = {"hide_answer": hide_answer, "colours": colours, "aligner": aligner}
    drawn = {"what": what, **place, "theme": theme, "large": large, "language": language, **looks}
    size = {"width": width, "height": height, "scale": scale}
    moving = {"shape": shape, "seconds": seconds}
    on_paper = {"paper": paper}
    # What does not fit is told, and not passed over.
    unfitting = (
        (inside, "--inside", {"what": what, **place, **looks, "words": words, "without_plotlyjs": without_plotlyjs},
         "it shows all heads that the file holds. Leave one out"),
        (ending in _TABLES, f".{ending}", drawn, "a table holds every weight; it is of pictures and pages"),
        (ending not in ("png", "svg", "pdf", "gif"), f".{ending}", size, "it is of .png, .svg, .pdf and .gif"),
        (ending != "gif", f".{ending}", moving, "it is of .gif"),
        (ending not in ("svg", "pdf"), f".{ending}", on_paper, "it is of .svg and .pdf"),
        (bool(paper), "--paper", {"width": width, "scale": scale}, "both say how wide it is"),
        (ending == "gif", ".gif", {"what": what, "step": step, "large": large, "colours": colours, "aligner": aligner,
         "height": height, "scale": scale}, "a moving picture is of all steps of one head, and says no grades"),
        (ending != "html", f".{ending}", {"without_plotlyjs": without_plotlyjs, "inside": inside}, "it is of .html"),
    )  # fmt: skip
    for is_so, cause, options, why in unfitting:
        if is_so and (given := [name for name, value in options.items() if value]):
            raise OptionError(f"--{given[0].replace('_', '-')} cannot be used with {cause}: {why}.")

    from transformer_viz.analysis.word_pooling import by_words
    from transformer_viz.export import inside_html, packed_heads, saving
    from transformer_viz.trace import limits

    check_target(output, force=force)
    trace = load_trace(file, no_limits=no_limits)
    if inside:
        write_export(output, inside_html(trace, theme=theme or "auto", large=large, language=language).encode())
        _print_size(output)
        return
    trace, what = by_words(trace) if words else trace, what or "player"
    if not no_limits and (ending in _TABLES or (ending == "html" and what == "player")):
        with lifted_by_flag():
            limits.check_file(trace, str(file)[-200:], is_table=ending in _TABLES)
    if ending == "gif":
        from transformer_viz.export.moving import gif

        given = {"head": head, **moving, "theme": theme, "width": width, "language": language}
        moving_options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        write_export(output, gif(trace, **moving_options))
        _print_size(output)
        return
    options: dict[str, Any] = {}
    if ending not in _TABLES:
        n_steps = max(1, trace.n_steps)
        if step is not None and step > n_steps:
            raise OptionError(f"--step {step} is not possible; this run has 1 to {n_steps}")
        options = {
            "head": head,
            "step": None if step is None else step - 1,
            **size,
            **on_paper,
            "aligner": aligner,
            "language": language,
        }
        options = {name: value for name, value in options.items() if value is not None}
        options |= {"theme": theme or "auto", "large": large, "with_answer": not hide_answer, "colours": colours or "fixed"}
    if ending == "html":
        options["plotlyjs"] = not without_plotlyjs if plotlyjs in (None, "inside") else plotlyjs
    if ending == "html" and what == "player" and packed_heads.is_large(trace):
        # Before it is made, which takes seconds.
        size = bytes_words(packed_heads.estimated_size(trace))
        print(terminal_text(f"{output}: the heads, rounded to 16 bits, take about {size}"), flush=True)
    write_export(output, saving.render_bytes(trace, ending, what, **options))
    _print_size(output)
    if without_plotlyjs:
        from transformer_viz.viewer import plotly_js

        plotly = plotly_js.path()
        beside = output.with_name(plotly.name)
        if not beside.exists():
            write_export(beside, plotly.read_bytes())
            _print_size(beside)


def _print_size(path: Path) -> None:
    print(terminal_text(f"{path}: {bytes_words(path.stat().st_size)}"))
