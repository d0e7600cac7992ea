"""Which kind, layer and head is large: of A, and of B where it is another one. Session names as on the other pages."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.comparison import Comparison, LargestDifference
from transformer_viz.analysis.heads import COMBINED, Head, n_layers_heads
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import focus, link
from transformer_viz.views.state.controls import SAME

_ROUNDING = 1e-5
"""Of a weight."""
_SCALE_WORDS = {"fixed": "colours up to 1", "largest": "colours up to the largest"}


def start(comparison: Comparison) -> None:
    """From the link, or where attention differs most; what one of the runs does not have is brought into range."""
    kinds, largest = comparison.kinds, _noticed(comparison.largest)
    kind: Kind = link.start("kind", kinds, largest.kind if largest else kinds[-1], fallback=kinds[-1])
    found = _noticed(comparison.farthest(kind))
    focus.start_head(comparison.a, kind, (found.layer, found.head) if found else (comparison.layers(kind)[0], 0))
    _start_b(comparison.b, kind)
    # Always said: their defaults depend on both runs.
    for key in ("kind", "layer", "head"):
        link.leave_out(key)


def _noticed(found: LargestDifference | None) -> LargestDifference | None:
    """A difference that is more than rounding, which falls elsewhere on another machine: a link would open another map."""
    return found if found is not None and abs(found.size) > _ROUNDING else None


def controls(comparison: Comparison, *, with_words: bool) -> None:
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
        # The small maps and the table choose among heads too. Behind a button that says what is chosen, since boxes are what
        # takes a page that opens longest.
        with st.popover(_words(), key="compare-heads"):
            st.selectbox("A: layer", layers, key="layer", format_func=lambda n: f"A layer {n + 1}")
            st.selectbox("A: head", [*range(n_heads), *COMBINED], key="head", format_func=_head_words)
            same_layer = [SAME] if state.layer in b_layers else []
            st.selectbox("B: layer", [*same_layer, *b_layers], key="b_layer", format_func=_b_layer_words)
            same_head = [SAME] if isinstance(state.head, str) or state.head < b_heads else []
            st.selectbox("B: head", [*same_head, *range(b_heads), *COMBINED], key="b_head", format_func=_b_head_words)
            st.selectbox("Colours", list(_SCALE_WORDS), key="scale", format_func=_SCALE_WORDS.__getitem__)
        if with_words:
            focus.unit_box()


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


def _start_b(b: Trace, kind: Kind) -> None:
    """The same as A's, where B has that and nothing else was chosen."""
    state, layers, (_, n_heads) = st.session_state, b.layer_numbers(kind), n_layers_heads(b, kind)
    has_layer, has_head = state.layer in layers, isinstance(state.head, str) or state.head < n_heads
    link.start("b_layer", [*([SAME] if has_layer else ()), *layers], SAME if has_layer else layers[-1])
    link.start("b_head", [*([SAME] if has_head else ()), *range(n_heads), *COMBINED], SAME if has_head else n_heads - 1)
    link.leave_out("b_layer", SAME)
    link.leave_out("b_head", SAME)


def _head_words(head: Head) -> str:
    return f"A head {head + 1}" if isinstance(head, int) else f"A {head}"


def _words() -> str:
    """`A layer 2 head 1, B same head, colours up to 1`."""
    state = st.session_state
    of_a = f"A layer {state.layer + 1} {_head_words(state.head).removeprefix('A ')}"
    of_b = "same head" if is_same() else f"{_b_layer_words(state.b_layer)} {_b_head_words(state.b_head)}".replace("B ", "")
    return f"{of_a}, B {of_b}, {_SCALE_WORDS[state.scale]}"


def _b_layer_words(layer: int | str) -> str:
    return f"B layer {layer + 1}" if isinstance(layer, int) else "B same layer"


def _b_head_words(head: Head | str) -> str:
    return "B same head" if head == SAME else f"B head {head + 1}" if isinstance(head, int) else f"B {head}"
