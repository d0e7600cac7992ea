"""*By length* in the tab Heads: how often the model is right for each kind and length of text, measured on request."""

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.errors import TransformerVizError
from transformer_viz.evaluation.result import AccuracyByLength
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import link

if TYPE_CHECKING:
    pass

SAMPLES = (20, 50, 100, 200)
"""Strings per length that a visitor may ask for."""


def show(shown: Shown) -> None:
    """Draws a toggle and, while it is on, the share of right texts by length as a figure and a table."""
    # Here, because a file has the other tabs where there is no model.
    from transformer_viz.evaluation.evaluate import default_lengths, trained_lengths
    from transformer_viz.views.cache import runs

    checkpoint = shown.checkpoint
    assert checkpoint is not None
    # The share of each kind of text that came out right when the checkpoint was judged, the worst first, where its task has
    # several: clauses of German, or ways to write a date.
    judged = checkpoint.metrics.get("by_source") or {}
    if len(judged) > 1:
        kinds = sorted(judged, key=lambda kind: (judged[kind], kind))
        least = f"{percent_words(judged[kinds[0]], 1)} right"
        worst = f"least of all *{literal(kinds[0])}*: {least}" if judged[kinds[0]] < 1 else "all right"
        st.markdown(f"Judged after training on {len(kinds)} kinds of text, {worst}.")
        with st.expander("Each kind of text"):
            bar = st.column_config.ProgressColumn("texts right", min_value=0.0, max_value=1.0, format="percent")
            rows = pd.DataFrame({"kind of text": kinds, "texts right": [judged[kind] for kind in kinds]})
            st.dataframe(rows, hide_index=True, column_config={"texts right": bar})
    lengths = default_lengths(checkpoint)
    first, last = trained_lengths(checkpoint)
    st.markdown(
        f"Fresh strings of {lengths[0]} to {lengths[-1]} tokens, decoded greedily. "
        f"{literal(checkpoint.name)} was trained on {first} to {last}."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        samples = link.selectbox("Strings per length", SAMPLES, key="by_length_samples", default=50, width=170)
        of = (checkpoint.name, str(checkpoint.device), samples)
        is_asked = link.asking_toggle("Measure", key="by_length", of=of)
    if not is_asked:
        words = "Some seconds on a CPU; a result is kept for the next visitor."
        st.caption(f"{len(lengths) * samples:,} strings. {words}")
        return
    try:
        found = runs.by_length(checkpoint, samples)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    st.markdown(literal(summary(found)))
    words = f"Exact match by source length. {summary(found)}"
    figure = chart.draw(figures.accuracy_by_length, found, key="by-length-chart", words=words, file="by-length")
    frame = call(AccuracyByLength.to_frame, found)
    with st.expander("The numbers"):
        st.dataframe(frame, hide_index=True)
        st.download_button(
            "CSV of the lengths", frame.to_csv(index=False).encode(), "by-length.csv", "text/csv", key="by-length-csv"
        )
    code.show(figure, frame, key="code_of_tab")


def summary(found: AccuracyByLength) -> str:
    """How many were right in training's lengths and outside them, and where it breaks."""
    below = [point for point in found.points if point.length < found.trained[0]]
    inside = [point for point in found.points if point.is_trained]
    beyond = [point for point in found.points if point.length > found.trained[1]]
    parts = []
    for name, points in (("Lengths of training", inside), ("shorter", below), ("longer", beyond)):
        if points:
            right, n = sum(point.n_exact for point in points), sum(point.n_strings for point in points)
            first, last = points[0].length, points[-1].length
            span = f"{first}" if first == last else f"{first}–{last}"
            parts.append(f"{name} ({span}): {right:,} of {n:,} strings right")
    words = "; ".join(parts) + "."
    breaks = next((point for point in beyond if point.n_exact < point.n_strings / 2), None)
    if inside and breaks is not None:
        words += f" The first length beyond training at which fewer than half come out right is {breaks.length}."
    return words
