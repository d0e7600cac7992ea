"""Buttons from Explore to Compare: this run beside another head or layer of it, an edited run, or another text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from transformer_viz.addresses import Place
from transformer_viz.edits import Edit, Force, HeadOff, MaskOff, written
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import KIND_TITLES, head_title
from transformer_viz.trace.trace import Trace
from transformer_viz.views.compare.place import SAME
from transformer_viz.views.compare.sides import A, B, put
from transformer_viz.views.components import navigation
from transformer_viz.views.state import focus


@dataclass(frozen=True)
class Way:
    """What stands beside the run as B.

    Attributes:
        name: of its button's key.
        words: on the button.
        edits: of B.
        place: B's layer and head, where they are not A's.
        has_text: whether B reads the same text.
        has_decoding: whether B decodes as A does; greedily otherwise.
    """

    name: str
    words: str
    edits: tuple[Edit, ...] = ()
    place: dict[str, int] = field(default_factory=dict)
    has_text: bool = True
    has_decoding: bool = True


def popover(trace: Trace, model: LoadedModel, decoding: dict[str, Any]) -> None:
    """Draws a button for each way.

    Args:
        trace: the run.
        model: that made it.
        decoding: how, as keywords of `decode`; nothing is greedily.
    """
    with st.popover("Compare with …", icon=":material/compare:", help="This run as A on the page Compare, beside it as B"):
        greedily = [Way("greedy", "the same text, decoded greedily", has_decoding=False)] if decoding else []
        for way in (*greedily, *_ways(trace)):
            key = f"compare-{way.name}"
            if st.button(way.words, key=key, on_click=_put, args=(trace.source, model.name, way, decoding), width="stretch"):
                navigation.go("Compare")


def _ways(trace: Trace) -> Iterator[Way]:
    """What this run can be compared with, seen from the head in focus."""
    now = focus.current()
    layers, n_heads = trace.attentions[now.kind].layers, trace.attentions[now.kind].n_heads
    if isinstance(now.head, int) and n_heads > 1:
        head = (now.head + 1) % n_heads
        yield Way("head", f"another head: {head_title(now.layer, head)}", place={"b_head": head})
    if len(layers) > 1:
        layer = layers[(layers.index(now.layer) + 1) % len(layers)]
        yield Way("layer", f"another layer: {head_title(layer, now.head)}", place={"b_layer": layer})
    if isinstance(now.head, int):
        place = Place(now.kind, now.layer, now.head)
        yield Way("off", "an edit: this head switched off", (HeadOff(place),))
        yield Way("uniform", "an edit: this head looks everywhere alike", (Force(place, None, ()),))
    for masked in (each for each, attention in trace.attentions.items() if attention.reasons.any()):
        yield Way(f"unmasked-{masked}", f"an edit: {KIND_TITLES[masked]} without its mask", (MaskOff(Place(masked)),))
    yield Way("text", "another text", has_text=False)


def _put(text: str, checkpoint: str, way: Way, decoding: dict[str, Any]) -> None:
    """Fills both sides of Compare; A's layer and head are those of Explore."""
    state, both = st.session_state, {"text": text, "checkpoint": checkpoint}
    put(A, {**both, **decoding})
    put(B, {**both, **(decoding if way.has_decoding else {}), **({"edits": written(way.edits)} if way.edits else {})})
    if not way.has_text:
        state.b_text_wanted = True
    for key in ("b_layer", "b_head"):
        state[key] = way.place.get(key, SAME)
