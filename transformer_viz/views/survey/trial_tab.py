"""The tab On trial: which maps point at the cause over a sample of the texts, beside chance."""

from collections.abc import Callable

import streamlit as st

from transformer_viz.analysis.survey import words
from transformer_viz.analysis.verdict import FLOOR_WORDS, LEAST, MAP_WORDS, Mean, Verdicts, left_out_words
from transformer_viz.terms import KIND_TITLES
from transformer_viz.views.components import table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "On trial", 3


def show(shown: Shown) -> None:
    """A sentence and the table."""
    found = shown.survey.verdict
    if found is None:
        st.info("No text of this survey was put on trial: `--verdict-texts 300` does it.", icon=":material/info:")
        return
    st.markdown(shown.heading(_sentence(found)))
    mode = found.mode or "word"
    top, rho = f"at the cause, {mode}", f"ρ, {mode}"
    columns = {
        "map": [table.words(each.name) for each in found.maps],
        top: [_share(each.top.value) for each in found.maps],
        "at the cause, 95 %": [table.words(_ends(each.top, _shares)) for each in found.maps],
        "by chance": [_share(found.chance.value)] * len(found.maps),
        rho: [table.number(each.rho.value) for each in found.maps],
        "ρ, 95 %": [table.words(_ends(each.rho, _numbers)) for each in found.maps],
    }
    table.show("survey-verdict-table", "Every map beside the cause", columns)
    st.caption(
        literal(
            f"{KIND_TITLES[found.kind].capitalize()}, over {words.texts(found.n_texts)} of the survey. Judged are "
            f"{found.n_judged:,} steps to which some token matters by {LEAST} nats or more; {left_out_words(found)}. "
            f"{MAP_WORDS}. ρ is Spearman's rank correlation; {FLOOR_WORDS}. "
            "Intervals resample the texts; where all are alike, that cannot say how far it holds."
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


def _share(value: float) -> table.Cell:
    return table.percent(value, 1)


def _ends(mean: Mean, written: Callable[[tuple[float, float]], str]) -> str:
    if mean.interval is None:
        return ""
    return "all alike" if mean.ends is None else written(mean.ends)


def _shares(ends: tuple[float, float]) -> str:
    return " to ".join(map(words.percent, ends))


def _numbers(ends: tuple[float, float]) -> str:
    return " to ".join(table.number(end).text for end in ends)
