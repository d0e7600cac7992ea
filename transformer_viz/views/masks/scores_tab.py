"""One head's way from scores to weights, and one row of it in numbers."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.softmax import FILL_WORDS, FILLS, PRECISIONS, Softmax, empty_row, head_softmax
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.terms import KIND_TITLES, REASON_WORDS, Kind, row_labels
from transformer_viz.text_display import display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import focus, link

TITLE, ORDER = "Scores to weights", 1


def show(setup: Setup) -> None:
    """Draws the controls, three maps, the row, and what became of it if all of it were masked."""
    trace, state = setup.forced()[setup.sentence], st.session_state
    focus.controls(trace, combined=False)
    kind, layer, head = state.kind, state.layer, state.head
    attention = trace.attentions[kind]
    with st.container(horizontal=True, vertical_alignment="center"):
        quiet: Any = {"label_visibility": "collapsed"}
        fill = link.segmented_control("Fill", FILLS, key="fill", **quiet)
        precision = link.segmented_control("Precision", PRECISIONS, key="precision", **quiet)
        names = row_labels(attention.queries, None if kind == "encoder" else trace.output_tokens)
        # At first the one that looks at anything: padding before a prompt does not.
        sound = setup.sound().forced()[setup.sentence].attentions[kind]
        first = int((sound.reasons == 0).any(-1).reshape(-1, len(sound.queries)).any(0).argmax())
        looks: Any = {"words": lambda i: f"row {names[i]}", "width": 190, "fallback": len(names) - 1, **quiet}
        row = link.selectbox("Row", range(len(names)), key="row", default=first, **looks)
        st.markdown(f"{FILL_WORDS[fill]}, in {precision}")
    if attention.scores is None:
        st.info(f"This model does not give the scores of its {KIND_TITLES[kind]}.", icon=":material/info:")
        return
    if not setup.is_changed and not _is_softmax(trace, kind, layer, head):
        st.warning("The weights of this run are not the softmax of these scores alone: this model does more.")
    computed = call(head_softmax, trace, map_address(kind, layer, head), fill, precision)
    with st.container(key="lab-scores"):
        words = "Scores before the mask, after it, and weights after the softmax. The table below has one row in numbers."
        known = range(len(attention.queries))
        heard: Any = {"clicks": ("cell", lambda query, _: state.update(row=query) if query in known else None)}
        name: Any = {"key": "lab-scores-chart", "words": words, "file": "scores", **heard}
        figure = chart.draw(figures.softmax_maps, trace, map_address(kind, layer, head), computed, row, **name)
    numbers, fates = st.columns([3, 2])
    with numbers:
        _row(attention, layer, head, row, computed)
    with fates:
        st.caption("What this row would become if all of it were masked:")
        scores = attention.head_scores(layer, head)[row]
        found = [(fill, precision, empty_row(scores, fill, precision)) for fill in FILLS for precision in PRECISIONS]
        st.dataframe(pd.DataFrame(found, columns=["masked scores become", "precision", "the row"]), hide_index=True)
        own = "This app: −∞, and masked weights 0 afterwards, in every precision."
        if setup.model.task is None:
            own = (
                "This model: −3.4·10³⁸ is added to what is masked, so such a row would look at everything alike; here it is "
                "zeros."
            )
        st.caption(f"{own} In float16 −10⁹ is −∞.")
    code.show(figure, Call("print({}.weights[{}])", computed, row))


def _is_softmax(trace: Trace, kind: Kind, layer: int, head: int) -> bool:
    """Whether the scores give what the run has, where a row may look at anything."""
    rows = ~trace.attentions[kind].head_mask(layer, head).all(-1)
    found, weights = head_softmax(trace, map_address(kind, layer, head)).weights, trace.attentions[kind].head(layer, head)
    return bool(np.allclose(found[rows], weights[rows], atol=1e-3))


def _row(attention: Attention, layer: int, head: int, row: int, computed: Softmax) -> None:
    """Draws one row in numbers."""
    reasons, total = attention.head_reasons(layer, head)[row], float(computed.weights[row].sum())
    sum_words = "are not numbers" if np.isnan(total) else f"add up to {total:.4f}"
    st.caption(f"Row {row + 1} in numbers; the weights {sum_words}.")
    frame = pd.DataFrame(
        {
            "key": range(1, len(reasons) + 1),
            "token": [display_token(token) for token in attention.keys],
            "score": attention.head_scores(layer, head)[row],
            "mask": [REASON_WORDS[int(code)] for code in reasons],
            "after the mask": [rounded_words(value, 4) for value in computed.filled[row]],
            "weight": computed.weights[row],
        }
    )
    bars = st.column_config.ProgressColumn("weight", min_value=0.0, max_value=1.0, format="%.4f")
    st.dataframe(frame, hide_index=True, column_config={"weight": bars})
