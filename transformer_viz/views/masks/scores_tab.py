"""One head's way from scores to weights, and one row of it in numbers."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.softmax import FILL_WORDS, FILLS, PRECISIONS, Softmax, empty_row, head_softmax
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.terms import KIND_TITLES, REASON_WORDS, Kind, row_labels
from transformer_viz.text_display import display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, clicks, code, figure_file, style
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import focus, link

TITLE, ORDER = "Scores to weights", 1

_CHART = "lab-scores"


def has_focus(setup: Setup) -> bool:
    """Whether it shows boxes for the focus."""
    return True


def show(setup: Setup) -> None:
    """Controls, three maps, the row, and the fate of a fully masked row."""
    trace = setup.forced()[setup.sentence]
    focus.controls(trace, combined=False, with_best=False)
    kind, layer, head = st.session_state.kind, st.session_state.layer, st.session_state.head
    with st.container(horizontal=True, vertical_alignment="center"):
        fill = link.segmented_control("Fill", FILLS, key="fill", label_visibility="collapsed")
        precision = link.segmented_control("Precision", PRECISIONS, key="precision", label_visibility="collapsed")
        names = row_labels(trace.attentions[kind].queries, None if kind == "encoder" else trace.output_tokens)
        rows = range(len(names))
        looks: Any = {"words": lambda i: f"row {names[i]}", "width": 190, "label_visibility": "collapsed"}
        row = link.selectbox("Row", rows, key="row", default=_first_row(setup, kind), fallback=rows[-1], **looks)
        st.markdown(f"{FILL_WORDS[fill]}, in {precision}")
    if trace.attentions[kind].scores is None:
        st.info(f"This model does not give the scores of its {KIND_TITLES[kind]}.", icon=":material/info:")
        return
    if not setup.is_changed and not _is_softmax(trace, kind, layer, head):
        st.warning("The weights of this run are not the softmax of these scores alone: this model does more.")
    computed = call(head_softmax, trace, kind, layer, head, fill, precision)
    with st.container(key=_CHART):
        figure = call(figures.softmax_maps, trace, kind, layer, head, computed, row, style=style.figure_style())
        words = "Scores before the mask, after it, and weights after the softmax. The table below has one row in numbers."
        heard = clicks.cells(lambda query, key: _go_to_row(query, trace, kind))
        chart.show(figure, "lab-scores-chart", words, clicks=heard)
        figure_file.offer(figure, "scores")
    numbers, fates = st.columns([3, 2])
    with numbers:
        _row(trace.attentions[kind], layer, head, row, computed)
    with fates:
        _fates(trace.attentions[kind].head_scores(layer, head)[row], setup.model)
    code.show(figure, Call("print({}.weights[{}])", computed, row))


def _first_row(setup: Setup, kind: Kind) -> int:
    """The first that looks at anything: padding before a prompt does not."""
    trace = setup.forced(changed=False)[setup.sentence]
    looks = (trace.attentions[kind].reasons == 0).any(-1).reshape(-1, len(trace.attentions[kind].queries)).any(0)
    return int(looks.argmax())


def _is_softmax(trace: Trace, kind: Kind, layer: int, head: int) -> bool:
    """Whether the scores give what the run has, where a row may look at anything."""
    rows = ~trace.attentions[kind].head_mask(layer, head).all(-1)
    found, weights = head_softmax(trace, kind, layer, head).weights, trace.attentions[kind].head(layer, head)
    return bool(np.allclose(found[rows], weights[rows], atol=1e-3))


def _go_to_row(query: int | None, trace: Trace, kind: Kind) -> None:
    if query is not None and query < len(trace.attentions[kind].queries):
        st.session_state.row = query


def _row(attention: Attention, layer: int, head: int, row: int, computed: Softmax) -> None:
    """One row in numbers."""
    scores, reasons = attention.head_scores(layer, head)[row], attention.head_reasons(layer, head)[row]
    total = float(computed.weights[row].sum())
    sum_words = "are not numbers" if np.isnan(total) else f"add up to {total:.4f}"
    st.caption(f"Row {row + 1} in numbers; the weights {sum_words}.")
    frame = pd.DataFrame(
        {
            "key": range(1, len(reasons) + 1),
            "token": [display_token(token) for token in attention.keys],
            "score": scores,
            "mask": [REASON_WORDS[int(code)] for code in reasons],
            "after the mask": [rounded_words(value, 4) for value in computed.filled[row]],
            "weight": computed.weights[row],
        }
    )
    bars = st.column_config.ProgressColumn("weight", min_value=0.0, max_value=1.0, format="%.4f")
    st.dataframe(frame, hide_index=True, column_config={"weight": bars})


def _fates(scores: np.ndarray, model: LoadedModel) -> None:
    """What a row of these scores would become if all of it were masked, and what this model does."""
    st.caption("What this row would become if all of it were masked:")
    found = [(fill, precision, empty_row(scores, fill, precision)) for fill in FILLS for precision in PRECISIONS]
    st.dataframe(pd.DataFrame(found, columns=["masked scores become", "precision", "the row"]), hide_index=True)
    own = (
        "This app: −∞, and masked weights 0 afterwards, in every precision."
        if model.task is not None
        else "This model: −3.4·10³⁸ is added to what is masked, so such a row would look at everything alike; here it is zeros."
    )
    st.caption(f"{own} In float16 −10⁹ is −∞.")
