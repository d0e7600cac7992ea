"""A model as one HTML file: type a text, and see every head of every step at once. Asks nothing of the network."""

from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack

from transformer_viz.atomic_files import write_export
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import OptionError
from transformer_viz.export import pages
from transformer_viz.export.content import PageTheme, PlotlyJs, content, focus_of, view
from transformer_viz.figures import page_templates
from transformer_viz.keywords import with_keywords
from transformer_viz.language import say, speaking
from transformer_viz.live.assets import engine_script
from transformer_viz.live.model_data import WeightPrecision, model_data
from transformer_viz.terms import Reason
from transformer_viz.tracing.decode import decode
from transformer_viz.viewer import modules, script_words


class LiveOptions(TypedDict, total=False):
    """Options of a live page; `live_html` says more of each."""

    precision: WeightPrecision
    theme: PageTheme
    large: bool
    plotlyjs: PlotlyJs
    language: str | None


def live_html(
    checkpoint: Checkpoint,
    source: str | None = None,
    *,
    precision: WeightPrecision = "int16",
    theme: PageTheme = "auto",
    large: bool = False,
    plotlyjs: PlotlyJs = "packed",
    language: str | None = None,
) -> str:
    """A page that runs the model itself, as text.

    Args:
        checkpoint: from `load_checkpoint`; at most 20 million parameters, and of a task whose texts the page can read.
        source: the text that the page opens with; by default the task's first example.
        precision: of the weights in the page: `int16`, whole numbers with one scale a row, or `float32`, twice as large.
        theme: `light`, `dark`, or `auto` for what the reader's system prefers; the page has a switch.
        large: bigger letters, for a projector.
        plotlyjs: as in `html`; compressed by default, since browsers that can unpack weights can unpack it too.
        language: as in `html`.

    Returns:
        The page as HTML.

    Raises:
        OptionError: a model that a page cannot run, or an impossible option.
        InputError: a text that the model cannot read.

    Examples:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> tv.live_html(model, "planet", plotlyjs=False).startswith("<!doctype html>")
        True
    """
    if theme not in pages.THEMES:
        raise OptionError(f"theme {theme!r} is not known; choose one of auto, light and dark")
    with speaking(language):
        return _page(checkpoint, source, precision, theme, plotlyjs, large=large)


def _page(
    checkpoint: Checkpoint, source: str | None, precision: WeightPrecision, theme: PageTheme, plotlyjs: PlotlyJs, *, large: bool
) -> str:
    """The page in the language of now."""
    model, engine = model_data(checkpoint, precision), engine_script("worker.js")
    examples = [example.text for example in checkpoint.task.examples()]
    trace = decode(checkpoint, examples[0] if source is None else source)
    # Of the masks that a rule makes, one is of the future; all others are made by a click.
    codes = (int(Reason.FUTURE), int(Reason.EDITED))
    data = content(trace, theme=theme, large=large, with_answer=True, codes=codes)
    data["focus"] = focus_of(trace, view(trace))
    for kind, shown in data["kinds"].items():
        shown["tiles"] = page_templates.tile_template(trace, kind, large=large)
    data["about"] = say("{name} {does}; nobody told it how.", name=checkpoint.name, does=say(checkpoint.task.about))
    data["live"] = {
        "model": model,
        "source": trace.source,
        "examples": list(dict.fromkeys([trace.source, *examples])),
        "made": [checkpoint.name, checkpoint.variant, say("computed in this page")],
        "words": script_words.words(engine),
    }
    sheets = (*pages.PAGE_STYLES, "live.css")
    program = modules.FOLDER / "live.js"
    return pages.page("live.html", data, program, sheets, plotlyjs, has_worker=True, engine=engine)


@with_keywords(LiveOptions, {"precision": "int16", "theme": "auto", "large": False, "plotlyjs": "packed"})
def live_page(
    checkpoint: Checkpoint, path: str | PathLike[str], source: str | None = None, **options: Unpack[LiveOptions]
) -> None:
    """Writes a page that runs the model itself.

    Args:
        checkpoint: as in `live_html`.
        path: of the file, which ends in `.html`.
        source: as in `live_html`.
        options: as in `live_html`.

    Raises:
        OptionError: as in `live_html`, or the name does not end in `.html`.
        InputError: as in `live_html`.

    Examples:
        >>> import os, tempfile
        >>> import transformer_viz as tv
        >>> page = os.path.join(tempfile.mkdtemp(), "live.html")
        >>> tv.live_page(tv.load_checkpoint("reverse-small", device="cpu"), page)
        >>> os.path.exists(page)
        True
    """
    file = Path(path)
    if file.suffix.lower() != ".html":
        raise OptionError(f"{file.name} does not end in .html, as a page does")
    write_export(file, live_html(checkpoint, source, **options).encode())
