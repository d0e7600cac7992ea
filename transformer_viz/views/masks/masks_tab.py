"""Every mask of the batch, or of one sentence, by its reasons."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.language import later, say, sentences
from transformer_viz.terms import place_words
from transformer_viz.text_display import display_text
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code, screen, style, term_tips
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks import picture
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import focus, link

TITLE, ORDER = later("Masks"), 0

_VIEW_WORDS = {"batch": later("the whole batch"), "sentence": later("this sentence, large")}


def draw_view_box() -> None:
    """Draws the choice between masks of the whole batch and of one sentence."""
    link.segmented_control(say("Show"), _VIEW_WORDS, key="masks_of", label_visibility="collapsed")


def show(setup: Setup) -> None:
    """Draws the switch, and all masks of the batch, or one of the sentence large beside its weights; on a phone it alone."""
    traces, state = setup.forced(), st.session_state
    is_batch = not screen.is_narrow() and link.option("masks_of", _VIEW_WORDS) == "batch"
    with st.container(horizontal=True, vertical_alignment="center", key="mask-controls"):
        if not screen.is_narrow():
            draw_view_box()
        if is_batch and _differ_by_layer(traces):
            focus.layer_and_head_boxes()
    if not is_batch:
        picture.show_one(setup, traces[setup.sentence])
    chosen = range(len(traces)) if is_batch else [setup.sentence]
    layer, head = state.layer, state.head if isinstance(state.head, int) else 0
    parts = [call(mask_parts, traces[i], layer, head) for i in chosen]
    titles = [f"{i + 1}: {display_text(traces[i].source)}" for i in chosen]
    # The masks of one sentence have room for large letters.
    page = style.figure_style()
    looks: Any = {"columns": max(3, len(parts[0])) if is_batch else 3, "style": replace(page, large=page.large or not is_batch)}
    words = say("The encoder's, the decoder's and the cross mask of each sentence, each cell by its reason")
    calls = []
    # A phone has no room for all.
    if not screen.is_narrow():
        calls += [chart.draw(figures.mask_grid, parts, titles, key="lab-masks-chart", words=words, file="masks", **looks)]
    if not is_batch:
        looks, trace = {"style": style.figure_style()}, traces[setup.sentence]
        calls += [Call(figures.mask, trace, map_address(state.kind, layer, head), **looks)]
        calls += [Call(figures.attention, trace, map_address(state.kind, layer, state.head), **looks)]
    words = [
        say("row = the query, which looks · column = the key, looked at · as the run applied it."),
        say("The rows of padded queries do not count: nothing reads them."),
    ]
    if _differ_by_layer(traces):
        words.append(say("Masks differ from layer to layer here; these are of layer {layer}.", layer=layer + 1))
    trace = traces[setup.sentence]
    if "decoder" in trace.kinds and (seen := np.triu(trace.decoder.reasons == 0, 1)).any():
        # How far the decoder may look ahead, which it may in a prefix or by a change.
        last = place_words(int(np.nonzero(seen.any(axis=tuple(range(seen.ndim - 1))))[0][-1]))
        words.append(
            say("The decoder may look ahead, up to {last}: a prefix that it sees whole, or a mask that was changed.", last=last)
        )
    if setup.model.task is None:  # whose words are several tokens
        words.append(say("Masks and edits are about tokens, so this page has no words."))
    term_tips.show(term_tips.mark(sentences(words), told=("weight",)))
    code.show(*calls)


def _differ_by_layer(traces: list[Trace]) -> bool:
    """Tells whether it matters which layer is shown."""
    return any(attention.reasons.ndim == 4 for trace in traces for attention in trace.attentions.values())
