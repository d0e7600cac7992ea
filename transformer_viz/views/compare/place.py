"""The kind, layer and head that Compare shows large."""

import streamlit as st

from transformer_viz.addresses import map_address
from transformer_viz.comparison.compare import Comparison
from transformer_viz.language import later, say
from transformer_viz.views.state import focus, link

TO_LARGEST = "compare_to_largest"
"""In the session, until both have run: Compare goes to the head that changed most, of whatever kind."""
_OWN = "compare_own_place"
"""In the session: the kind, layer and head to which Compare itself went."""
_ROUNDING = 1e-5
"""The rounding of a weight."""
_SCALE_WORDS = {"fixed": later("colours up to 1"), "largest": later("colours up to the largest")}


def start(comparison: Comparison) -> None:
    """Sets the boxes before they are drawn, by default to the head that differs most; what one of the runs does not have is
    brought into range."""
    state, largest = st.session_state, comparison.largest
    # Rounding falls elsewhere on another machine, where a link would open another map.
    if largest is not None and abs(largest.size) <= _ROUNDING:
        largest = None
    if state.pop(TO_LARGEST, False) | _is_own() and largest is not None:
        focus.lend_head(largest.kind, largest.layer, largest.head)
    focus.start_kind(comparison.kinds, comparison.kinds[-1] if largest is None else largest.kind, comparison.kinds[-1])
    kind = state.kind
    farthest, default = comparison.farthest(kind), (comparison.layers(kind)[0], 0)
    if farthest is not None and abs(farthest.size) > _ROUNDING:
        default = (farthest.layer, farthest.head)
    focus.start_head(comparison.a.attentions[kind].layers, focus.heads_of(comparison.a, kind), default)
    if largest is not None and (here := focus.place()) == (largest.kind, largest.layer, largest.head):
        state[_OWN] = here
    link.option("scale", _SCALE_WORDS)


def _is_own() -> bool:
    """Whether nobody has chosen the head in focus: no address, and no press. Then it is the one that the sentence names."""
    state, here, back = st.session_state, focus.place(), focus.taken_back()
    if _OWN in state:
        return here in (state[_OWN], back)
    state[_OWN] = ()
    # Explore, too, has heads at which it opens by itself.
    _, places = state.get("shown_before") or (None, ())
    is_named = {"kind", "layer", "head"} & link.address().keys()
    return not is_named and (here == (None, None, None) or here in [("cross", *place) for place in places])


def controls(*, with_words: bool) -> None:
    """Draws boxes for the colours, and for tokens or words."""
    with st.container(horizontal=True, vertical_alignment="center", key="compare-place"):
        link.selectbox(say("Colours"), key="scale", label_visibility="collapsed", width=230)
        if with_words:
            focus.unit_box()


def focused() -> str:
    """The address of A's head."""
    state = st.session_state
    return map_address(state.kind, state.layer, state.head)


def go_to_farthest(kind: object, comparison: Comparison) -> None:
    """Shows the head of a kind that differs most; what is no kind is passed over."""
    for known in comparison.kinds:
        if known == kind and (found := comparison.farthest(known)) is not None:
            focus.go_to_head(known, found.layer, found.head)


def head_of_b(comparison: Comparison) -> dict[str, str]:
    """The keyword for B's head where B does not have A's: its last layer or its last head."""
    state, attention = st.session_state, comparison.b.attentions[st.session_state.kind]
    layer = state.layer if state.layer in attention.layers else attention.layers[-1]
    head = state.head if state.head in focus.heads_of(comparison.b, state.kind) else attention.n_heads - 1
    return {} if (layer, head) == (state.layer, state.head) else {"other": map_address(state.kind, layer, head)}
