"""The tab On trial: which maps point at the cause over a sample of the texts, beside chance."""

from collections.abc import Callable

import streamlit as st

from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.verdict import FLOOR_WORDS, LEAST, MAP_WORDS, left_out_words
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words
from transformer_viz.terms import kind_words
from transformer_viz.views.components import table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = later("On trial"), 3


def show(shown: Shown) -> None:
    """Draws which map points best, beside chance, and the table of all."""
    verdicts = shown.survey.verdict
    if verdicts is None:
        st.info(say("This survey has no verdicts: make it with `--verdict-texts 300`."), icon=":material/info:")
        return
    words = say("No map was judged: {found}.", found=left_out_words(verdicts))
    if known := [verdict for verdict in verdicts.maps if verdict.top.value == verdict.top.value]:
        first = max(known, key=lambda verdict: verdict.top.value)
        share, chance = (percent_words(verdict.value, 1) for verdict in (first.top, verdicts.chance))
        words = say(
            "{name} points where the cause is in {share} of the steps; by chance it would be in {chance}.",
            name=first.name,
            share=share,
            chance=chance,
        )
    st.markdown(shown.heading(words))
    mode = verdicts.mode or "word"
    top, rho = f"at the cause, {mode}", f"ρ, {mode}"
    columns = {
        "map": [verdict.name for verdict in verdicts.maps],
        top: [verdict.top.value for verdict in verdicts.maps],
        "at the cause, 95 %": [
            _ends(verdict.top, lambda ends: interval_words(ends, percent_words, 1)) for verdict in verdicts.maps
        ],
        "by chance": [verdicts.chance.value] * len(verdicts.maps),
        rho: [verdict.rho.value for verdict in verdicts.maps],
        "ρ, 95 %": [
            _ends(verdict.rho, lambda ends: interval_words(ends, lambda end: f"{end + 0.0:.2f}")) for verdict in verdicts.maps
        ],
    }
    table.show(columns, say("Every map beside the cause"), percents=(top, "by chance"))
    st.caption(
        literal(
            say(
                "{attention}, over {texts} of the survey. Judged are {steps} in which a token matters by {least} nats or more; "
                "{left_out}. {maps}. ρ is Spearman's rank correlation; {floor}. Intervals resample the texts; where all are "
                "alike, that cannot say how far it holds.",
                attention=kind_words(verdicts.kind).capitalize(),
                texts=count_words(verdicts.n_texts, "text"),
                steps=count_words(verdicts.n_judged, "step"),
                least=LEAST,
                left_out=left_out_words(verdicts),
                maps=say(MAP_WORDS),
                floor=say(FLOOR_WORDS),
            )
        )
    )


def _ends(mean: Mean, written: Callable[[tuple[float, float]], str]) -> str:
    """The interval of a mean as a cell of the table."""
    if mean.interval is None:
        return ""
    return say("all alike") if mean.ends is None else written(mean.ends)
