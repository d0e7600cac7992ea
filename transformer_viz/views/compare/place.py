"""The kind, layer and head that Compare shows large, for A and, if it differs, for B."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.comparison import Comparison
from transformer_viz.terms import Head, Kind
from transformer_viz.views.state import focus, link

SAME = "same"
"""What B's boxes hold where no other layer or head is chosen: an empty box would hold None."""
TO_LARGEST = "compare_to_largest"
"""In the session, until both have run: Compare goes to the head that changed most, of whatever kind."""
_ROUNDING = 1e-5
"""Of a weight."""
_BOXES = {"layer": "A: layer", "head": "A: head", "b_layer": "B: layer", "b_head": "B: head", "scale": "Colours"}
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
    # B's boxes have at first the same as A's, where B has that.
    state, of_b = st.session_state, comparison.b.attentions[kind]
    layers, heads = [*of_b.layers], focus.heads_of(comparison.b, kind)
    first = (SAME if state.layer in layers else layers[-1], SAME if state.head in heads else of_b.n_heads - 1)
    link.option("b_layer", [*([SAME] if first[0] == SAME else []), *layers], first[0], _b_layer_words)
    link.option("b_head", [*([SAME] if first[1] == SAME else []), *heads], first[1], _b_head_words)
    link.option("scale", _SCALE_WORDS)


def controls(*, with_words: bool) -> None:
    """Draws boxes for kind, layer and head of both sides: the keyboard's way to what a click on a tile does."""
    with st.container(horizontal=True, vertical_alignment="center", key="compare-place"):
        focus.kind_box()
        # The small maps and the table choose among heads too. Behind a button that says what is chosen, since boxes are what
        # takes a page that opens longest.
        # `A layer 2 head 1, B same head, colours up to 1`.
        state = st.session_state
        words = f"A {focus.layer_words(state.layer)} {focus.head_words(state.head)}, B "
        of_b = f"{_b_layer_words(state.b_layer)} {_b_head_words(state.b_head)}".replace("B ", "")
        words += f"{'same head' if is_same() else of_b}, {_SCALE_WORDS[state.scale]}"
        with st.popover(words, key="compare-heads"):
            for key, label in _BOXES.items():
                link.selectbox(label, key=key)
        if with_words:
            focus.unit_box()


def _go_to(kind: Kind, layer: int, head: Head) -> None:
    """Shows a head that both sides have."""
    state = st.session_state
    state.kind, state.layer, state.head, state.b_layer, state.b_head = kind, layer, head, SAME, SAME


def go_to_tile(tile: dict[str, Any], comparison: Comparison) -> None:
    """Shows the head of a clicked tile; what is none is passed over."""
    kind, layer, head = (tile.get(name) for name in ("kind", "layer", "head"))
    if kind in comparison.kinds and layer in comparison.layers(kind) and head in range(comparison.n_heads(kind)):
        _go_to(kind, layer, head)


def go_to_farthest(kind: object, comparison: Comparison) -> None:
    """Shows the head of a kind that differs most; what is no kind is passed over."""
    for known in comparison.kinds:
        if known == kind and (found := comparison.farthest(known)) is not None:
            _go_to(known, found.layer, found.head)


def of_b() -> dict[str, Any]:
    """B's layer and head as keywords; None is A's."""
    state = st.session_state
    return {name: None if state[name] == SAME else state[name] for name in ("b_layer", "b_head")}


def is_same() -> bool:
    """Whether both sides show the same layer and head."""
    state, chosen = st.session_state, of_b()
    return chosen["b_layer"] in (None, state.layer) and chosen["b_head"] in (None, state.head)


def _b_layer_words(layer: int | str) -> str:
    return f"B layer {layer + 1}" if isinstance(layer, int) else "B same layer"


def _b_head_words(head: Head | str) -> str:
    return "B same head" if head == SAME else f"B head {head + 1}" if isinstance(head, int) else f"B {head}"
