"""The tab On trial: which maps point at the cause over a sample of the texts, beside chance."""

from collections.abc import Callable

import streamlit as st

from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.verdict import FLOOR_WORDS, LEAST, MAP_WORDS, Verdicts, left_out_words
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words
from transformer_viz.terms import KIND_TITLES
from transformer_viz.views.components import table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "On trial", 3


def show(shown: Shown) -> None:
    """A sentence and the table."""
    found = shown.survey.verdict
    if found is None:
        st.info("This survey has no verdicts: make it with `--verdict-texts 300`.", icon=":material/info:")
        return
    st.markdown(shown.heading(_sentence(found)))
    mode = found.mode or "word"
    top, rho = f"at the cause, {mode}", f"ρ, {mode}"
    columns = {
        "map": [each.name for each in found.maps],
        top: [each.top.value for each in found.maps],
        "at the cause, 95 %": [_ends(each.top, _shares) for each in found.maps],
        "by chance": [found.chance.value] * len(found.maps),
        rho: [each.rho.value for each in found.maps],
        "ρ, 95 %": [_ends(each.rho, _numbers) for each in found.maps],
    }
    table.show(columns, "Every map beside the cause", percents=(top, "by chance"))
    st.caption(
        literal(
            f"{KIND_TITLES[found.kind].capitalize()}, over {count_words(found.n_texts, 'text')} of the survey. Judged are "
            f"{count_words(found.n_judged, 'step')} in which a token matters by {LEAST} nats or more; "
            f"{left_out_words(found)}. {MAP_WORDS}. ρ is Spearman's rank correlation; {FLOOR_WORDS}. "
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
        f"{best.name} points where the cause is in {percent_words(best.top.value, 1)} of the steps; by chance it would be in "
        f"{percent_words(found.chance.value, 1)}."
    )


def _ends(mean: Mean, written: Callable[[tuple[float, float]], str]) -> str:
    if mean.interval is None:
        return ""
    return "all alike" if mean.ends is None else written(mean.ends)


def _shares(ends: tuple[float, float]) -> str:
    return interval_words(ends, percent_words, 1)


def _numbers(ends: tuple[float, float]) -> str:
    return " to ".join(f"{end + 0.0:.2f}" for end in ends)
