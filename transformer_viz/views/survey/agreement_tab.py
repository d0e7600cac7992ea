"""The tab Agreement: how often two heads look at the same key."""

import numpy as np
import streamlit as st

from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.surveys import survey_agreement
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.surveys.result import Survey
from transformer_viz.terms import Kind, head_title, kind_words
from transformer_viz.views.components import chart, screen
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = later("Agreement"), 1


def show(shown: Shown) -> None:
    """Draws a sentence, and a map for each kind."""
    survey = shown.survey
    there = [kind for kind in survey.kinds if survey.agreement.get(kind)]
    if not there:
        st.info(say("The heads of this survey were not compared with each other."), icon=":material/info:")
        return
    closest = " ".join(filter(None, (_closest(survey, kind) for kind in there)))
    st.markdown(
        say(
            "In how many rows two heads have their largest weight on the same key. Only rows with two "
            "allowed keys or more count. Heads that agree may replace each other. {closest}",
            closest=literal(closest),
        )
    )
    for kind, column in zip(there, screen.columns(len(there), "survey-agreement"), strict=True):
        with column:
            words = say("Agreement between heads of the {kind}", kind=kind_words(kind))
            chart.draw(plain(survey_agreement), survey, kind, key=f"survey-agreement-{kind}", words=words)


def _closest(survey: Survey, kind: Kind) -> str:
    """Says which two heads of a kind agree most; empty where there are no two."""
    of = survey.kinds[kind]
    names = [head_title(layer, head) for layer in of.layers for head in range(of.n_heads)]
    shares = np.array([[-1.0 if share is None else share for share in row] for row in survey.agreement[kind]])
    shares[np.tril_indices(len(shares))] = -1
    a, b = np.unravel_index(int(shares.argmax()), shares.shape)
    if shares[a, b] < 0:
        return ""
    return say(
        "In {kind} {names} and {names2} agree most, in {shares} of the rows.",
        kind=kind_words(kind),
        names=names[a],
        names2=names[b],
        shares=percent_words(shares[a, b]),
    )
