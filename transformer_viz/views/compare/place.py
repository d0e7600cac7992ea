"""Which kind, layer and head is large: of A, and of B where it is another one. Session names as on the other pages."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.comparison import Comparison, has_head
from transformer_viz.analysis.heads import COMBINED, Head, n_layers_heads
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import link

SAME = "same"
"""What B's boxes hold where they follow A's: an empty box would hold None."""
SCALES = ("fixed", "largest")
_SCALE_WORDS = {"fixed": "colours up to 1", "largest": "up to the largest"}


def start(comparison: Comparison) -> None:
    """From the link, or where attention differs most; what one of the runs does not have is brought into range."""
    state, kinds = st.session_state, comparison.kinds
    largest = comparison.largest
    if "kind" not in state:
        state.kind = link.choice("kind", link.take("kind"), kinds, largest.kind if largest else kinds[-1])
    if state.kind not in kinds:
        state.kind = kinds[-1]
    kind: Kind = state.kind
    layers, (_, n_heads) = comparison.a.layer_numbers(kind), n_layers_heads(comparison.a, kind)
    found = comparison.farthest(kind)
    layer, head = (found.layer, found.head) if found else (comparison.layers(kind)[0], 0)
    if "layer" not in state:
        state.layer = link.one_of("layer", link.take("layer"), layers, layer)
        state.head = link.head(link.take("head"), n_heads, head)
    if not has_head(comparison.a, kind, state.layer, state.head):
        state.layer, state.head = layer, head
    _start_b(comparison.b, kind)
    if state.get("scale") not in SCALES:
        state.scale = link.choice("scale", link.take("scale"), SCALES, SCALES[0])


def controls(comparison: Comparison) -> None:
    """Boxes for kind, layer and head of both sides: the keyboard's way to what a click on a tile does."""
    state = st.session_state
    quiet: dict[str, Any] = {"label_visibility": "collapsed"}
    kind: Kind = state.kind
    runs = (comparison.a, comparison.b)
    (_, n_heads), (_, b_heads) = (n_layers_heads(run, kind) for run in runs)
    layers, b_layers = (run.layer_numbers(kind) for run in runs)
    with st.container(horizontal=True, vertical_alignment="center", key="compare-place"):
        words = {name: KIND_TITLES[name] for name in comparison.kinds}
        st.segmented_control("Attention", comparison.kinds, key="kind", format_func=words.__getitem__, required=True, **quiet)
        st.selectbox("A: layer", layers, key="layer", format_func=lambda n: f"A layer {n + 1}", width=118, **quiet)
        st.selectbox("A: head", [*range(n_heads), *COMBINED], key="head", format_func=_head_words, width=124, **quiet)
        same_layer = [SAME] if state.layer in b_layers else []
        st.selectbox("B: layer", [*same_layer, *b_layers], key="b_layer", format_func=_b_layer_words, width=132, **quiet)
        same_head = [SAME] if isinstance(state.head, str) or state.head < b_heads else []
        st.selectbox(
            "B: head", [*same_head, *range(b_heads), *COMBINED], key="b_head", format_func=_b_head_words, width=132, **quiet
        )
        st.selectbox("Colours", SCALES, key="scale", format_func=_SCALE_WORDS.__getitem__, width=164, **quiet)


def go_to(kind: Kind, layer: int, head: Head) -> None:
    """To a head that both sides have."""
    state = st.session_state
    state.kind, state.layer, state.head, state.b_layer, state.b_head = kind, layer, head, SAME, SAME


def go_to_tile(tile: dict | None, comparison: Comparison) -> None:
    """To a clicked tile; what is none is passed over."""
    if not tile or tile.get("kind") not in comparison.kinds:
        return
    kind = tile["kind"]
    if tile.get("layer") in comparison.layers(kind) and tile.get("head") in range(comparison.n_heads(kind)):
        go_to(tile["kind"], tile["layer"], tile["head"])


def go_to_farthest(kind: object, comparison: Comparison) -> None:
    """To the head of a kind that differs most; what is no kind is passed over."""
    for known in comparison.kinds:
        if known == kind and (found := comparison.farthest(known)) is not None:
            go_to(known, found.layer, found.head)


def of_b() -> dict[str, Any]:
    """B's layer and head as keywords; None is A's."""
    state = st.session_state
    return {name: None if state[name] == SAME else state[name] for name in ("b_layer", "b_head")}


def is_same() -> bool:
    """Whether both sides show the same layer and head."""
    state, chosen = st.session_state, of_b()
    return chosen["b_layer"] in (None, state.layer) and chosen["b_head"] in (None, state.head)


def link_values() -> dict[str, str | None]:
    """What the URL says: kind, layer and head always, since what they are by default depends on both runs."""
    state = st.session_state
    places = {"layer": state.layer, "head": state.head, **of_b()}
    return {
        "kind": state.kind,
        **{name: str(value + 1) if isinstance(value, int) else value for name, value in places.items()},
        "scale": None if state.scale == SCALES[0] else state.scale,
    }


def _start_b(b: Trace, kind: Kind) -> None:
    """The same as A's, where B has that and nothing else was chosen."""
    state = st.session_state
    layers, (_, n_heads) = b.layer_numbers(kind), n_layers_heads(b, kind)
    if (given := link.take("b_layer")) is not None:
        number = link.one_of("b_layer", given, layers, -1)
        state.b_layer = SAME if number == -1 else number
    if (given := link.take("b_head")) is not None:
        number = link.head(given, n_heads, -1, key="b_head")
        state.b_head = SAME if number == -1 else number
    layer, head = state.get("b_layer", SAME), state.get("b_head", SAME)
    if layer not in layers:
        layer = SAME if state.layer in layers else layers[-1]
    if head == SAME or (isinstance(head, int) and head >= n_heads):
        head = SAME if isinstance(state.head, str) or state.head < n_heads else n_heads - 1
    state.b_layer, state.b_head = layer, head


def _head_words(head: Head) -> str:
    return f"A head {head + 1}" if isinstance(head, int) else f"A {head}"


def _b_layer_words(layer: int | str) -> str:
    return f"B layer {layer + 1}" if isinstance(layer, int) else "B same layer"


def _b_head_words(head: Head | str) -> str:
    return "B same head" if head == SAME else f"B head {head + 1}" if isinstance(head, int) else f"B {head}"
