"""The heads of a deep model: an overview of all by one number, and in a chosen order the small maps of as many as six layers
have."""

import json
import weakref
from collections.abc import Callable
from typing import Any

import streamlit as st

from transformer_viz.analysis.head_order import LAYERS, ROLE, offered, ordered, statistic
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.figures.figure_data import plain, typed
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.theme import Style
from transformer_viz.figures.tiles import tile_map
from transformer_viz.language import english, later, say
from transformer_viz.sentences.attribution_maps import is_of_heads, norms_of_rows
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import screen
from transformer_viz.views.state import levels, link
from transformer_viz.views.state.display_options import DisplayOptions
from transformer_viz.views.state.focus import Focus

LAYERS_A_PAGE = 6
_OVERVIEW = "entropy_share"
ORDERS = {LAYERS: later("layer"), **{name: measure.title for name, measure in MEASURES.items()}, ROLE: later("role")}
"""The names of the orders, and of an overview."""
_PHONE, _BESIDE, _LEAST_TILE, _LEAST_ROW, _HIGHEST_ROW = 350, 1000, 62, 76, 112
"""Pixels: what tiles have side by side on a phone, and beside the overview; the least width of one; the heights of a row."""

_drawn: weakref.WeakKeyDictionary[Trace, tuple[Any, dict[str, Any], Attribution | None]] = weakref.WeakKeyDictionary()
"""The small maps of a run that were drawn last, and of what: half a second of a long run, and a press changes none."""


def start(trace: Trace) -> None:
    """The order of the heads, by what they are overviewed, and the page, before their boxes are drawn."""
    state, measures = st.session_state, known_measures(trace)
    link.option("head_order", {name: ORDERS[name] for name in (LAYERS, *measures, ROLE)}, said=_said)
    link.option("overview_of", {name: ORDERS[name] for name in measures}, _first(measures), said=_said)
    # The page is the one that has the focus, until another is asked for.
    head = state.head if isinstance(state.head, int) else 0
    pages = range(-(-trace.attentions[state.kind].n_layers // LAYERS_A_PAGE))
    here = next((page for page in pages if (state.layer, head) in heads_of_page(trace, page)), 0)
    at = (state.run, state.kind, state.layer, state.head, _order(trace))
    if state.get("heads_at", at) != at:
        state.heads_page = here
    state.heads_at = at
    link.option(
        "heads_page",
        {page: page_words(trace, page) for page in pages},
        here,
        said={page: page_words(trace, page, said=say) for page in pages}.__getitem__,
    )


def boxes(trace: Trace, norms: Attribution | None) -> None:
    """Boxes for the order, the overview and the page, for which `start` has been called."""
    state = st.session_state
    if not _is_covered(trace):
        first = _first(known_measures(trace))
        if not _is_of_heads(trace, norms) and (levels.is_all() or state.overview_of != first):
            link.selectbox(say("Overview by"), key="overview_of", width=270)
        if levels.is_all() or state.head_order != LAYERS:
            link.selectbox(say("Heads in the order of"), key="head_order", width=270)
    link.selectbox(say("Small maps of"), key="heads_page", width=320)


def figures(
    trace: Trace, chosen: DisplayOptions, now: Focus, norms: Attribution | None
) -> tuple[dict[Kind, dict[str, Any]], dict[str, Any] | None]:
    """The small maps of the page and kind in focus, in the colours of a light page, and the overview of all heads.

    With the answer hidden there is no overview, since its numbers are of the whole run.
    """
    light = Style("light", chosen.is_large)
    heads = heads_of_page(trace, st.session_state.heads_page)
    place = room(len(heads), trace.attentions[now.kind].n_heads)
    key = (now.kind, heads, place, light, id(norms))
    kept = _drawn.get(trace)
    if kept is None or kept[0] != key:
        maps = plain(mosaic)(trace, now.kind, heads=heads, **place, measure=norms, style=light)
        # The measure too, so that its id stays its own.
        kept = _drawn[trace] = key, {"data": maps.data, "layout": maps.layout}, norms
    drawn = {now.kind: kept[1]}
    if _is_covered(trace):
        return drawn, None
    is_of_measure = norms is not None and _is_of_heads(trace, norms)
    by = say("{measure} of a row", measure=say(norms.title)) if is_of_measure else _said(st.session_state.overview_of)
    values = norms_of_rows(trace, norms) if is_of_measure else values_of_heads(trace)
    overview = tile_map(now.kind, trace.attentions[now.kind].layers, values, by, None, light)
    title = kind_title(trace, now.kind, in_full=False)
    # Each tile is a single cell of its own head, for clicks and for the frame of the one in focus.
    tiles = [[layer, head] for layer in trace.attentions[now.kind].layers for head in range(values.shape[1])]
    overview.layout["meta"] |= {"tiles": tiles, "rows": 1, "columns": 1}
    # It goes to the browser with what the page says, where JSON knows no arrays.
    figure = json.loads(json.dumps({"data": overview.data, "layout": overview.layout}, default=typed))
    return drawn, {**figure, "words": say("Every head of the {attention} by {by}", attention=title, by=by)}


def _said(by: str) -> str:
    return say(ORDERS[by])


def _first(measures: tuple[str, ...]) -> str:
    return _OVERVIEW if _OVERVIEW in measures else measures[0]


def _is_of_heads(trace: Trace, measure: Attribution | None) -> bool:
    return measure is not None and measure.kind == st.session_state.kind and is_of_heads(trace, measure)


def room(n_tiles: int, most: int) -> dict[str, Any]:
    """The number of tiles side by side, at most so many, and the height of all; for `mosaic` and `difference_mosaic`."""
    width = _PHONE if screen.is_narrow() else _BESIDE
    columns = min(most, width // _LEAST_TILE)
    return {"columns": columns, "height": 28 + -(-n_tiles // columns) * max(_LEAST_ROW, min(_HIGHEST_ROW, width // columns))}


# ---- which heads


def is_deep(trace: Trace) -> bool:
    """Tells whether the heads of a kind are too many for one picture."""
    return any(trace.attentions[kind].n_layers > LAYERS_A_PAGE for kind in trace.kinds)


def known_measures(trace: Trace) -> tuple[str, ...]:
    """The measures that heads of the focus' kind have."""
    kind = st.session_state.kind
    return _kept(("measures", kind), lambda: offered(trace, kind))


def values_of_heads(trace: Trace) -> Any:
    """The overview's number of every head, (layer, head)."""
    kind, name = st.session_state.kind, st.session_state.overview_of
    return _kept((name, kind), lambda: statistic(trace, kind, name))


def heads_of_page(trace: Trace, page: int) -> list[tuple[int, int]]:
    """Layer and head of those on a page."""
    kind, by = st.session_state.kind, _order(trace)
    size = LAYERS_A_PAGE * trace.attentions[kind].n_heads
    return _kept(("order", kind, by), lambda: ordered(trace, kind, by))[page * size : (page + 1) * size]


def page_words(trace: Trace, page: int, said: Callable[..., str] = english) -> str:
    """`layers 7 to 12`, or `heads 55 to 108 by entropy`, as a link has it, or `said` in another language."""
    heads, by = heads_of_page(trace, page), _order(trace)
    if by == LAYERS:
        first, last = heads[0][0] + 1, heads[-1][0] + 1
        if first == last:
            return said(later("layer {layer}"), layer=first)
        return said(later("layers {first} to {last}"), first=first, last=last)
    first = page * LAYERS_A_PAGE * trace.attentions[st.session_state.kind].n_heads + 1
    last, order = first + len(heads) - 1, said(ORDERS[by])
    return said(later("heads {first} to {last} by {order}"), first=first, last=last, order=order)


def _is_covered(trace: Trace) -> bool:
    """Tells whether the answer is hidden, which the numbers of a whole run would tell."""
    return st.session_state.hide_answer and trace.writes


def _order(trace: Trace) -> str:
    return LAYERS if _is_covered(trace) else st.session_state.head_order


def _kept(key: tuple[str, ...], compute: Callable[[], Any]) -> Any:
    """Returns what was computed of this run before: half a second for a run of many layers and tokens."""
    state = st.session_state
    if state.get("heads_of") != state.run:
        state.heads_of, state.heads_known = state.run, {}
    if key not in state.heads_known:
        state.heads_known[key] = compute()
    return state.heads_known[key]
