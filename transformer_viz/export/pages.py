"""`html` and its neighbours: a run, or a figure, as one HTML file that loads nothing from the network."""

import base64
import gzip
import hashlib
import html as markup
import json
import re
from collections.abc import Collection
from functools import cache
from os import fspath
from pathlib import Path
from typing import Any, Unpack

from transformer_viz.addresses import AttentionAddress, HeadAddress
from transformer_viz.analysis.alignment_head import aligner_of
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export import packed_heads
from transformer_viz.export.assets import FOLDER, asset, styles, templates
from transformer_viz.export.content import (
    DEFAULTS,
    PageTheme,
    PlotlyJs,
    ShownOptions,
    aligned,
    check_colours,
    content,
    focus_of,
    view,
)
from transformer_viz.figures import files, page_templates
from transformer_viz.figures.colour_scale import Scale
from transformer_viz.keywords import with_keywords
from transformer_viz.language import current, say, speaking
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.trace import limits
from transformer_viz.trace.trace import Trace
from transformer_viz.trace.window import window
from transformer_viz.viewer import modules, plotly_js, script_words

THEMES: tuple[PageTheme, ...] = ("auto", "light", "dark")
PAGE_STYLES = ("charts.css", "player.css", "lines.css", "viewer.css", "share.css", "page.css")


def html(
    trace: Trace,
    head: str | AttentionAddress | None = None,
    step: int | None = None,
    *,
    theme: PageTheme = "auto",
    large: bool = False,
    with_answer: bool = True,
    plotlyjs: PlotlyJs = True,
    colours: Scale = "fixed",
    aligner: str | HeadAddress | None = None,
    language: str | None = None,
) -> str:
    """Makes one HTML page of a whole run: step player, all heads, all masks. It opens from disk, without a network.

    Up to 2,097,152 weights are in it as they are. Those of a larger run are rounded to 16 bits, which the page says with the
    largest error, and a head is unpacked when it is chosen; it needs a browser of 2023 or later.

    Args:
        trace: the run.
        head: the head that the page opens with, such as `cross.2.3`, all heads of a layer (`cross.2.mean`, `cross.2.max`), or a
            kind alone (`decoder`); by default the head that looks best at the right tokens.
        step: from 0; by default the last letter.
        theme: `light`, `dark`, or `auto` for what the reader's system prefers; the page has a switch.
        large: bigger letters, for a projector.
        with_answer: mark true keys and wrong letters.
        plotlyjs: True puts plotly.js (1.5 MB) into the page; `"packed"` puts it in compressed (0.7 MB), for browsers of 2023
            and later; False leaves it out, and the page needs a `plotly-cartesian.min.js` beside it; a path or address says
            where else it is; `"cdn"` is the server of Plotly's makers, which the page then asks.
        colours: what has the strongest colour: `fixed` is a weight of 1, `head` a head's own largest, `log` is logarithmic.
        aligner: the head of cross-attention that says where a written word comes from, such as `cross.2.1`; or
            `cross.2.1.reads`, which is asked in the row that reads the word. The page draws its lines, and a click on a word
            asks it.
        language: of what the page says, such as `zh`; by default English. What a run holds stays as it is.

    Raises:
        OptionError: the run has no such head, step or aligner, or an option has an impossible value.

    Returns:
        The page; write it with `encoding="utf-8"`, or let `save` do so.

    Example:
        >>> import transformer_viz as tv
        >>> trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
        >>> page = tv.export.html(trace, head="cross.2.3", step=1, plotlyjs="packed")
        >>> page.startswith("<!doctype html>")
        True
    """
    if theme not in THEMES:
        raise OptionError(f"theme {theme!r} is not known; choose one of {join_names(THEMES)}")
    now = view(trace, head, step)
    check_colours(colours)
    aligner_head = None if aligner is None else aligner_of(trace, aligner)
    is_large = packed_heads.is_large(trace)
    with speaking(language):
        data = content(trace, theme=theme, large=large, with_answer=with_answer, colours=colours, in_parts=is_large)
        if is_large:
            _pack(data, trace, with_answer=with_answer)
        data["focus"] = focus_of(trace, now)
        data["aligner"] = aligned(trace, aligner_head)
        return page("page.html", data, FOLDER / "one_run.js", PAGE_STYLES, plotlyjs)


def _pack(data: dict[str, Any], trace: Trace, *, with_answer: bool) -> None:
    """Puts the heads of a large run into its page's data, packed, and says what that has changed."""
    error = 0.0
    for kind, attention in trace.attentions.items():
        packed, reasons = packed_heads.packed_kind(trace, kind, with_answer=with_answer), page_templates.seen_reasons(attention)
        kept = reasons if reasons.ndim == 2 else packed_heads.packed_reasons(reasons)
        data["kinds"][kind] |= {"packed": packed.heads, "reasons": kept}
        error = max(error, packed.error)
    data["made"].append(say("weights rounded to 16 bits, by at most {error}", error=rounded_words(error, 1)))


@with_keywords(ShownOptions, DEFAULTS)
def frame(trace: Trace, *, height: int = 820, plotlyjs: PlotlyJs = "packed", **options: Unpack[ShownOptions]) -> str:
    """The page as an HTML element for a notebook: a sandboxed frame that may run scripts and nothing else.

    Args:
        trace: the run.
        height: of the frame in pixels.
        plotlyjs: as in `html`; compressed it takes 0.7 MB of the notebook for each run that is shown.
        options: as in `html`: what the page opens with, and how it looks.

    Raises:
        OptionError: the run has no such kind, layer, head or step, or an option has an impossible value.
    """
    inner = markup.escape(html(trace, plotlyjs=plotlyjs, **options))
    with speaking(options.get("language")):
        title = markup.escape(say("Transformer Viz: one run, step by step"))
    element = (
        f'<iframe srcdoc="{inner}" sandbox="allow-scripts" title="{title}" '
        f'style="width: 100%; height: {int(height)}px; border: 0;" loading="lazy"></iframe>'
    )
    # ASCII alone: whatever a notebook takes the encoding for, the scripts keep the hashes by which they may run.
    return element.encode("ascii", "xmlcharrefreplace").decode()


def shown(trace: Trace) -> str | None:
    """The HTML that a notebook shows for a Trace; None for an empty one, which keeps its line of text.

    Of one that is too long for a cell it is a window: its first tokens, and a line that says so.
    """
    seen = window(trace, limits.MOST_IN_PAGE)
    n_weights = limits.n_weights(seen)
    if not 0 < n_weights <= limits.MOST_IN_PAGE:
        return None
    if seen is trace:
        return frame(trace)
    sides = (("source", trace.source_tokens, seen.source_tokens), ("target", trace.target_tokens, seen.target_tokens))
    parts = " and ".join(f"{len(some)} of {len(every)} {side} tokens" for side, every, some in sides if len(some) < len(every))
    more = "what later tokens got is not in it. The whole run: tv.save_trace(trace, 'run.npz'), and then the app"
    return f"<p>A window: the first {parts}; {more}.</p>{frame(seen)}"


def figure_html(figure: Any, *, title: str = "Transformer Viz", plotlyjs: PlotlyJs = True, language: str | None = None) -> str:
    """Makes an HTML page of any figure.

    Args:
        figure: from `transformer_viz.figures`.
        title: of the page; text, not markup.
        plotlyjs: as in `html`. Where a trace needs it (3D, geo, a table, a sunburst), it is the whole plotly.js (4.8 MB), and
            beside the page the `plotly.min.js` that the package plotly brings.
        language: of the page around it; the figure's own words are in the language in which it was drawn.

    Raises:
        OptionError: `plotlyjs` or `language` has an impossible value.
    """
    drawn = json.loads(figure.to_json())
    data = {"title": title, "figure": {key: drawn[key] for key in ("data", "layout")}}
    types = {trace.get("type", "scatter") for trace in drawn["data"]}
    with speaking(language):
        return page("figure.html", data, FOLDER / "figure.js", ("figure.css",), plotlyjs, types=types)


def page(
    template: str,
    data: Any = None,
    program: Path | None = None,
    sheets: tuple[str, ...] = (),
    plotlyjs: PlotlyJs | None = None,
    *,
    has_worker: bool = False,
    types: Collection[str] = (),
    **parts: Any,
) -> str:
    """A page with its data, its program and its policy, which lets nothing else be loaded, sent or run.

    Args:
        template: a file of `page/`.
        data: what the program reads.
        program: the module that it begins with.
        sheets: style sheets of `page/` and of the viewer, one after the other.
        plotlyjs: as in `html`; None for a page without figures.
        has_worker: whether the program may start a thread of its own, from what is in the page.
        types: of the traces that are drawn, where they may be others than this program's.
        parts: what the template needs more; text is not markup.
    """
    code = '(() => {\n"use strict";\n' + modules.one_script(program) + "\n})();" if program else ""
    elements, sources = ([], []) if plotlyjs is None else _plotly(plotlyjs, plotly_js.path(types))
    policy = ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'"]
    if program:
        policy += ["worker-src blob:"] if has_worker else []
        policy += [f"script-src {' '.join([*sources, _hash(code)])}", "img-src data: blob:"]
        if said := script_words.words(code):
            data = {**data, "words": said}
    default = {"title": "Transformer Viz", "root": {}, "policy": "; ".join(policy), "language": current()}
    own = {"style": styles(*sheets), "plotly": elements, "script": code, "data": data}
    return templates().get_template(template).render({**default, **own, **parts})


def _plotly(plotlyjs: PlotlyJs, file: Path) -> tuple[list[tuple[dict[str, str], str]], list[str]]:
    """The script elements that bring plotly.js, attributes and code, and what the page's policy must allow for them."""
    if plotlyjs is True:
        plotly = file.read_text(encoding="utf-8")
        return [({}, plotly)], [_hash(plotly)]
    if plotlyjs == "packed":
        unpack, packed = asset("unpack.js"), {"type": "text/plain", "id": "plotly-packed"}
        return [(packed, _packed(file)), ({}, unpack)], [_hash(file.read_text(encoding="utf-8")), _hash(unpack)]
    if plotlyjs == "cdn":
        address, digest = files.plotly_cdn()
        return [({"src": address, "integrity": digest, "crossorigin": "anonymous"}, "")], [address]
    where = file.name if plotlyjs is False else fspath(plotlyjs)
    return [({"src": where}, "")], [_source(where)]


def _source(where: str) -> str:
    """The source of scripts that the policy must allow."""
    if re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d+)?/[^\s;,'\"<>]*", where):
        return where
    if not where or re.search(r"[\s;,'\"<>]|^[a-z]+:|^//", where, re.IGNORECASE):
        raise OptionError(
            f"plotlyjs={where[:60]!r} is not possible; it is True, False, 'packed', 'cdn', an https address, or a path from "
            "the page without spaces"
        )
    # A page opened from disk has no origin of its own: 'self' alone would not let it load its neighbour.
    return "'self' file:"


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


@cache
def _packed(file: Path) -> str:
    return base64.b64encode(gzip.compress(file.read_bytes(), 9, mtime=0)).decode()
