"""Which heads of a deep model a page shows: as many as six layers have, in a chosen order, with an overview of all."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from transformer_viz.analysis.head_order import LAYERS, ROLE, offered, ordered, statistic
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import link

LAYERS_A_PAGE = 6
_OVERVIEW = "entropy_share"
ORDERS = {LAYERS: "layer", **{name: measure.title for name, measure in MEASURES.items()}, ROLE: "role"}
"""What an order is called, and an overview."""


def is_deep(trace: Trace) -> bool:
    """Whether the heads of a kind are too many for one picture."""
    return any(trace.attentions[kind].n_layers > LAYERS_A_PAGE for kind in trace.kinds)


def start(trace: Trace) -> None:
    """Order, page and overview, after the focus. The page is the one that has the focus, until another is asked for."""
    state = st.session_state
    measures = known_measures(trace)
    link.option("head_order", {name: ORDERS[name] for name in (LAYERS, *measures, ROLE)})
    link.option("overview_of", {name: ORDERS[name] for name in measures}, overview(trace))
    here = page_of_focus(trace)
    at = (state.run, state.kind, state.layer, state.head, _order(trace))
    if state.get("heads_at", at) != at:
        state.heads_page = here
    state.heads_at = at
    link.option("heads_page", {page: page_words(trace, page) for page in range(n_pages(trace))}, here)


def overview(trace: Trace) -> str:
    """The number by which the overview is at first."""
    return _OVERVIEW if _OVERVIEW in known_measures(trace) else known_measures(trace)[0]


def page_of_focus(trace: Trace) -> int:
    """The page that has the head in focus."""
    state = st.session_state
    head = state.head if isinstance(state.head, int) else 0
    return next((page for page in range(n_pages(trace)) if (state.layer, head) in heads(trace, page)), 0)


def known_measures(trace: Trace) -> tuple[str, ...]:
    """The measures that heads of the focus' kind have."""
    kind = st.session_state.kind
    return _kept(("measures", kind), lambda: offered(trace, kind))


def values(trace: Trace) -> Any:
    """The overview's number of every head, (layer, head)."""
    kind, name = st.session_state.kind, st.session_state.overview_of
    return _kept((name, kind), lambda: statistic(trace, kind, name))


def heads(trace: Trace, page: int) -> list[tuple[int, int]]:
    """Layer and head of those on a page."""
    kind, by = st.session_state.kind, _order(trace)
    size = LAYERS_A_PAGE * trace.attentions[kind].n_heads
    return _kept(("order", kind, by), lambda: ordered(trace, kind, by))[page * size : (page + 1) * size]


def n_pages(trace: Trace) -> int:
    """How many there are."""
    return -(-trace.attentions[st.session_state.kind].n_layers // LAYERS_A_PAGE)


def page_words(trace: Trace, page: int) -> str:
    """`layers 7 to 12`, or `heads 55 to 108 by entropy`."""
    found, by = heads(trace, page), _order(trace)
    if by == LAYERS:
        first, last = found[0][0] + 1, found[-1][0] + 1
        return f"layer {first}" if first == last else f"layers {first} to {last}"
    first = page * LAYERS_A_PAGE * trace.attentions[st.session_state.kind].n_heads + 1
    return f"heads {first} to {first + len(found) - 1} by {ORDERS[by]}"


def is_covered(trace: Trace) -> bool:
    """Whether the answer is hidden, which the numbers of a whole run would tell."""
    return st.session_state.hide_answer and trace.writes


def _order(trace: Trace) -> str:
    return LAYERS if is_covered(trace) else st.session_state.head_order


def _kept(key: tuple[str, ...], compute: Callable[[], Any]) -> Any:
    """What was computed of this run before: half a second for a run of many layers and tokens."""
    state = st.session_state
    if state.get("heads_of") != state.run:
        state.heads_of, state.heads_known = state.run, {}
    if key not in state.heads_known:
        state.heads_known[key] = compute()
    return state.heads_known[key]
