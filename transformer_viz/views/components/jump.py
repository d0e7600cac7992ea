"""A button that leads to the largest difference between two runs."""

import streamlit as st

from transformer_viz.analysis.comparison import IN_BOTH, Comparison
from transformer_viz.terms import head_label
from transformer_viz.views.state import focus


def to_largest(comparison: Comparison, words: str, key: str) -> None:
    """Where the largest change is, in `words`, with the way there; said first where the head in focus has no change at all."""
    largest, state = comparison.largest, st.session_state
    assert largest is not None
    place = (largest.kind, largest.layer, largest.head)
    if place == (state.kind, state.layer, state.head):
        st.markdown(words)
        return
    name = head_label(largest.layer, largest.head)
    if is_unchanged(comparison):
        words = f"**No difference in this head.** {words}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        focus.go_to_head_button(f"Go to {name}", key, place)


def is_unchanged(comparison: Comparison) -> bool:
    """Whether the head in focus has the same weights in both runs, wherever both have a cell."""
    state = st.session_state
    if state.kind not in comparison.kinds or state.layer not in comparison.layers(state.kind):
        return False
    maps = comparison.one_head(state.kind, state.layer, state.head)
    return not maps.broken.any() and not (maps.difference[maps.present == IN_BOTH] != 0).any()
