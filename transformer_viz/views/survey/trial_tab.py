"""The tab On trial: which maps point at the cause over a sample of the texts, beside chance."""

from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz.analysis.survey import words
from transformer_viz.analysis.verdict import LEAST, Mean, Verdicts, left_out_words
from transformer_viz.terms import KIND_TITLES
from transformer_viz.views.components.markdown import literal, sentence
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "On trial", 3


def show(shown: Shown) -> None:
    """A sentence and the table."""
    found = shown.survey.verdict
    if found is None:
        st.info("No text of this survey was put on trial: `--verdict-texts 300` does it.", icon=":material/info:")
        return
    st.markdown(f"**{sentence(_sentence(found))}**")
    mode = found.mode or "word"
    top, rho = f"at the cause, {mode}", f"ρ, {mode}"
    table = pd.DataFrame(
        {
            "map": [each.name for each in found.maps],
            top: [each.top.value for each in found.maps],
            "at the cause, 95 %": [_ends(each.top, percent=True) for each in found.maps],
            "by chance": found.chance.value,
            rho: [each.rho.value for each in found.maps],
            "ρ, 95 %": [_ends(each.rho, percent=False) for each in found.maps],
        }
    )
    number = st.column_config.NumberColumn
    config: dict[str, Any] = dict.fromkeys((top, "by chance"), number(format="percent")) | {rho: number(format="%.2f")}
    height = min(420, 38 + 35 * len(table))
    st.dataframe(table, hide_index=True, height=height, column_config=config, placeholder="–")
    st.caption(
        literal(
            f"{KIND_TITLES[found.kind].capitalize()}, over {words.texts(found.n_texts)} of the survey. Judged are "
            f"{found.n_judged:,} steps to which some token matters by {LEAST} nats or more; {left_out_words(found)}. "
            "Intervals resample the texts."
        )
    )


def _sentence(found: Verdicts) -> str:
    """Which map points best, beside chance."""
    known = [each for each in found.maps if each.top.value == each.top.value]
    if not known:
        return f"No map was judged: {left_out_words(found)}."
    best = max(known, key=lambda each: each.top.value)
    return (
        f"{best.name} points where the cause is in {words.percent(best.top.value)} of the steps; by chance it would be in "
        f"{words.percent(found.chance.value)}."
    )


def _ends(mean: Mean, *, percent: bool) -> str:
    if mean.interval is None:
        return ""
    low, high = mean.interval
    return f"{low:.1%} to {high:.1%}" if percent else f"{low:.2f} to {high:.2f}"
