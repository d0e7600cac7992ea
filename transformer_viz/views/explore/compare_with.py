"""Buttons from Explore to Compare: this run beside an edited run, or another text."""

from typing import Any

import streamlit as st

from transformer_viz.addresses import AttentionAddress
from transformer_viz.edits import Edit, Force, HeadOff, MaskOff, parse, written
from transformer_viz.language import say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.compare.place import TO_LARGEST
from transformer_viz.views.compare.sides import A, B, put
from transformer_viz.views.state import focus, link


def popover(trace: Trace, model: LoadedModel, decoding: dict[str, Any]) -> None:
    """Draws a button for each run that this one can be compared with, seen from the head in focus.

    Args:
        trace: the run.
        model: that made it.
        decoding: how, as keywords of `decode`; nothing is greedily.
    """
    greedy = {"text": trace.source, "checkpoint": model.name}
    a, now = {**greedy, **decoding}, focus.current()

    def offer(name: str, words: str, *edits: Edit, b: dict[str, Any] = a, same_text: bool = True) -> None:
        """Draws a button to B with these edits."""
        b = {**b, "edits": written(edits)} if edits else b
        if st.button(words, f"compare-{name}", on_click=_put, args=(a, b), kwargs={"same_text": same_text}, width="stretch"):
            link.go_to("Compare")

    with st.popover(
        say("Compare with …"), icon=":material/compare:", help=say("This run as A on the page Compare, beside it as B")
    ):
        if decoding:
            offer("greedy", say("the same text, decoded greedily"), b=greedy)
        if isinstance(now.head, int):
            place = AttentionAddress(now.kind, now.layer, now.head)
            offer("off", say("an edit: this head switched off"), HeadOff(place))
            offer("uniform", say("an edit: this head looks everywhere alike"), Force(place, None, ()))
        for masked in (each for each, attention in trace.attentions.items() if attention.reasons.any()):
            offer(
                f"unmasked-{masked}",
                say("an edit: {masked} without its mask", masked=kind_words(masked)),
                MaskOff(AttentionAddress(masked)),
            )
        offer("text", say("another text"), same_text=False)


def _put(a: dict[str, Any], b: dict[str, Any], *, same_text: bool) -> None:
    """Fills both sides of Compare; A's layer and head are those of Explore, but where that head was switched off: its own
    weights do not change."""
    st.session_state[TO_LARGEST] = any(isinstance(edit, HeadOff) for edit in parse(b.get("edits", "")))
    put({A: a, B: b})
    if not same_text:
        st.session_state.b_text_wanted = True
