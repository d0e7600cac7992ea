"""The kind, layer and head that Compare shows large."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.comparison import Comparison
from transformer_viz.views.state import focus, link

TO_LARGEST = "compare_to_largest"
"""In the session, until both have run: Compare goes to the head that changed most, of whatever kind."""
_ROUNDING = 1e-5
"""Of a weight."""
_BOXES = {"layer": "Layer", "head": "Head", "scale": "Colours"}
_SCALE_WORDS = {"fixed": "colours up to 1", "largest": "colours up to the largest"}


def start(comparison: Comparison) -> None:
    """Sets the boxes before they are drawn, by default to the head that differs most; what one of the runs does not have is
    brought into range."""
    largest = comparison.largest if st.session_state.pop(TO_LARGEST, False) else None
    if largest is not None and abs(largest.size) > _ROUNDING:
        focus.go_to_head(largest.kind, largest.layer, largest.head)
    focus.start_kind(comparison.kinds, comparison.kinds[-1])
    kind = st.session_state.kind
    found, default = comparison.farthest(kind), (comparison.layers(kind)[0], 0)
    # Rounding falls elsewhere on another machine, where a link would open another map.
    if found is not None and abs(found.size) > _ROUNDING:
        default = (found.layer, found.head)
    focus.start_head(comparison.a.attentions[kind].layers, focus.heads_of(comparison.a, kind), default)
    link.option("scale", _SCALE_WORDS)


def controls(comparison: Comparison, *, with_words: bool) -> None:
    """Draws boxes for kind, layer and head: the keyboard's way to what a click on a tile does."""
    with st.container(horizontal=True, vertical_alignment="center", key="compare-place"):
        focus.kind_box()
        # The small maps and the table choose among heads too. Behind a button that says what is chosen, since boxes are what
        # takes a page that opens longest.
        # `layer 2 head 1, colours up to 1`; and of B, where that has not as many.
        state, of_b = st.session_state, head_of_b(comparison)
        words = f"{focus.layer_words(state.layer)} {focus.head_words(state.head)}"
        if of_b:
            b_layer, b_head = of_b.get("b_layer", state.layer), of_b.get("b_head", state.head)
            words += f", B {focus.layer_words(b_layer)} {focus.head_words(b_head)}"
        words += f", {_SCALE_WORDS[state.scale]}"
        with st.popover(words, key="compare-heads"):
            for key, label in _BOXES.items():
                link.selectbox(label, key=key)
        if with_words:
            focus.unit_box()


def go_to_tile(tile: dict[str, Any], comparison: Comparison) -> None:
    """Shows the head of a clicked tile; what is none is passed over."""
    kind, layer, head = (tile.get(name) for name in ("kind", "layer", "head"))
    if kind in comparison.kinds and layer in comparison.layers(kind) and head in range(comparison.n_heads(kind)):
        focus.go_to_head(kind, layer, head)


def go_to_farthest(kind: object, comparison: Comparison) -> None:
    """Shows the head of a kind that differs most; what is no kind is passed over."""
    for known in comparison.kinds:
        if known == kind and (found := comparison.farthest(known)) is not None:
            focus.go_to_head(known, found.layer, found.head)


def head_of_b(comparison: Comparison) -> dict[str, int]:
    """B's last layer and head as keywords, each where B does not have A's."""
    state, attention = st.session_state, comparison.b.attentions[st.session_state.kind]
    found = {} if state.layer in attention.layers else {"b_layer": attention.layers[-1]}
    return found if state.head in focus.heads_of(comparison.b, state.kind) else {**found, "b_head": attention.n_heads - 1}
