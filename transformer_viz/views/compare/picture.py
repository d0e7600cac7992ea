"""The picture of Compare: two viewers that follow each other, and the difference of the head in focus and of all heads."""

import json
from typing import Any

import numpy as np
import streamlit as st

from transformer_viz import figures
from transformer_viz.comparison.compare import IN_A, IN_B, IN_BOTH, Comparison
from transformer_viz.comparison.word_pairs import pairs_that_differ
from transformer_viz.export.content import aligned, picture_title
from transformer_viz.export.strips import legend as legend_of_one
from transformer_viz.export.strips import output_strip, source_strip
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.figure_data import plain, typed
from transformer_viz.figures.page_templates import difference_dark_colours, difference_template
from transformer_viz.figures.theme import Style
from transformer_viz.figures.tiles import tile_map
from transformer_viz.language import later, say
from transformer_viz.sentences.run_sentences import say_sentence
from transformer_viz.terms import Kind, kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.compare import place
from transformer_viz.views.components import deep_mosaic, style, term_tips, viewer
from transformer_viz.views.components.measured import NOTHING
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.state import aligner, focus, levels
from transformer_viz.views.state.display_options import DisplayOptions

_QUIET: dict[str, Any] = {"remark": [], "ways": {}, "unfolds": False}
"""The parts that the page leaves out of all its runs."""


def show(comparison: Comparison, chosen: DisplayOptions) -> None:
    """Draws both runs and what differs, for which `place.start` has been called."""
    a, b = comparison.a, comparison.b
    names = tuple(map(focus.run_of, (a, b)))
    n_steps = max(len(a.rows), len(b.rows), 1)
    focus.start_run(a, "-".join(names), range(n_steps), n_steps - 1)
    is_deep, limit = any(map(deep_mosaic.is_deep, (a, b))), _limit(comparison)
    first = _first_layer(comparison) if is_deep else 0
    of_a, of_b = _parts(comparison)
    overview = _overview(comparison, chosen) if is_deep else None
    beside = viewer.Beside(
        trace=b,
        run=names[1],
        kinds=comparison.kinds,
        parts=of_b,
        difference=lambda: _difference(comparison, chosen, limit, first if is_deep else None),
        key=(names[1], id(b), limit, st.session_state.kind if is_deep else None, first),
    )
    looks = viewer.Looks({**of_a, "overview": overview}, maps={}, maps_key="none", with_candidates=False)
    viewer.show(a, chosen, looks, said=NOTHING.step_words, on_way=lambda _: None, beside=beside, page="compare")


def show_one(name: str, trace: Trace, chosen: DisplayOptions) -> None:
    """Draws the run of one side, where the other could not be run."""
    st.caption(say("**{name}** alone: there is nothing to compare it with yet.", name=name))
    focus.start(trace, None)
    parts = {"saved": picture_title(trace), "hasLines": levels.is_all(), **_QUIET}
    viewer.show(trace, chosen, viewer.Looks(parts), said=NOTHING.step_words, on_way=lambda _: None, page="compare")


def call(comparison: Comparison) -> Call:
    """The call that draws the three maps, for the code that makes them again."""
    looks: dict[str, Any] = {"limit": _limit(comparison), **place.head_of_b(comparison), "style": style.figure_style()}
    return Call(figures.difference, comparison.a, comparison.b, place.focused(), **looks)


def legend(comparison: Comparison) -> list[tuple[str, str]]:
    """Explains rows, columns and colours, and each pattern that is to be seen."""
    kind = st.session_state.kind
    laid = comparison.one_head(place.focused(), **place.head_of_b(comparison))
    patterns = {
        later("dotted: only one of them has the cell"): laid.present != IN_BOTH,
        later("hatched: masked"): laid.masked == IN_BOTH,
        later("crossed: masked in one alone"): (laid.masked == IN_A) | (laid.masked == IN_B),
    }
    of_one = legend_of_one(comparison.a, kind, with_marks=False)
    marks = [say("framed: the largest difference of this map")]
    marks += [say(words) for words, here in patterns.items() if here.any()]
    told = term_tips.mark(" · ".join([of_one, ""]))
    difference = say_sentence("{difference}: blue where A looks more, orange where B does", difference=("strong", "A − B"))
    more = (*difference, ("plain", "".join(f" · {words}" for words in marks)))
    return [*told, *term_tips.mark(more, told=("query", "key", "weight"))]


def _parts(comparison: Comparison) -> list[dict[str, Any]]:
    """The page's words and strips of each run; tokens that differ are framed."""
    reads = tuple(run.source_tokens for run in (comparison.a, comparison.b))
    writes = tuple(run.output_tokens for run in (comparison.a, comparison.b))
    found = []
    for side, run in enumerate((comparison.a, comparison.b)):
        strips = {}
        for name, strip, tokens in (("source", source_strip(run), reads), ("output", output_strip(run), writes)):
            apart = _apart(comparison, tokens, side)
            strips[name] = [
                {**token, "class": f"{token.get('class', '')} apart".strip()} if at in apart else token
                for at, token in enumerate(strip)
            ]
        about = {"saved": picture_title(run), "hasLines": levels.is_all(), **_QUIET}
        found.append({**strips, **about, "aligner": aligned(run, aligner.known(run))})
    return found


def _apart(comparison: Comparison, tokens: tuple[tuple[str, ...], ...], side: int) -> set[int | None]:
    """Finds where the tokens of one side are not those of the other."""
    if not all(tokens):
        return set()
    pairs = comparison.paired(*tokens)
    return {pairs[at][side] for at in pairs_that_differ(pairs, *tokens)}


def _difference(comparison: Comparison, chosen: DisplayOptions, limit: float, first: int | None) -> dict[str, Any]:
    """The difference as the browser fetches it, in the colours of a light page; of deep models the small maps of the kind in
    focus from layer `first` on."""
    a, b, light = comparison.a, comparison.b, Style("light", chosen.is_large)
    kinds = {kind: difference_template(a, b, kind, limit=limit, large=chosen.is_large) for kind in comparison.kinds}
    mosaics: dict[Kind, Any] = {}
    for kind in comparison.kinds if first is None else [st.session_state.kind]:
        some: dict[str, Any] = {}
        if first is not None:
            n_heads, layers = comparison.n_heads(kind), comparison.layers(kind)[first : first + deep_mosaic.LAYERS_A_PAGE]
            heads = [(layer, head) for layer in layers for head in range(n_heads)]
            some = {"heads": heads, **deep_mosaic.room(len(heads), n_heads)}
        figure = plain(difference_mosaic)(a, b, kind, limit=limit, style=light, **some)
        mosaics[kind] = {"data": figure.data, "layout": figure.layout}
    says = say("the difference A − B of the head in focus. The sentence and the table say where it is largest.")
    words = {kind: say("{attention}: {words}", attention=kind_words(kind), words=says) for kind in comparison.kinds}
    return {"kinds": kinds, "mosaics": {**dict.fromkeys(kinds), **mosaics}, "words": words, "dark": difference_dark_colours()}


def _first_layer(comparison: Comparison) -> int:
    """The first of the layers around the one in focus that small maps are drawn of, by its place."""
    kind, layer = st.session_state.kind, st.session_state.layer
    layers = comparison.layers(kind)
    return (layers.index(layer) if layer in layers else 0) // deep_mosaic.LAYERS_A_PAGE * deep_mosaic.LAYERS_A_PAGE


def _overview(comparison: Comparison, chosen: DisplayOptions) -> dict[str, Any]:
    """Draws how far each head of a deep model differs."""
    kind, values = st.session_state.kind, comparison.by_head(st.session_state.kind)
    layers = comparison.layers(kind)
    figure = tile_map(kind, layers, values, say("largest |A − B|"), None, Style("light", chosen.is_large))
    figure.layout["meta"] |= {
        "tiles": [[layer, head] for layer in layers for head in range(values.shape[1])],
        "rows": 1,
        "columns": 1,
    }
    data = json.loads(json.dumps({"data": figure.data, "layout": figure.layout}, default=typed))
    return {**data, "words": say("The largest difference of every head of the {kind}", kind=kind_words(kind))}


def _limit(comparison: Comparison) -> float:
    """The size of a difference that has the strongest colour: 1, or the largest of all heads."""
    if st.session_state.scale == "fixed":
        return 1.0
    sizes = [abs(found.size) for kind in comparison.kinds if (found := comparison.farthest(kind))]
    return min(1.0, max(sizes, default=1.0)) if np.isfinite(sizes).all() else 1.0
