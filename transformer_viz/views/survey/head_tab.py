"""The tab This head: its roles, its distribution over all texts, and the texts that show it."""

from typing import Any

import streamlit as st

from transformer_viz.figures.figure_data import plain
from transformer_viz.numbers_in_words import count_words, interval_words, number_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import best
from transformer_viz.surveys.figures.survey_distribution import survey_distribution
from transformer_viz.surveys.page import LISTS
from transformer_viz.surveys.result import HeadStatistic
from transformer_viz.views.components import chart, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey import texts
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "This head", 0


def show(shown: Shown) -> None:
    """A sentence, the histogram, and three lists."""
    head, survey, examples = shown.head, shown.survey, shown.survey.texts_of(shown.head)
    st.markdown(shown.heading(_sentence(shown)))
    # The chosen number, or where it is no statistic of this head the one that its texts are listed by.
    names = [name for name in (shown.number.name, examples and examples.by) if name in {of.name for of in survey.statistics}]
    row = next((row for name in names if (row := survey.at(head, str(name))) is not None), None)
    if row is not None:
        of = survey.statistic(row.statistic)
        looks: dict[str, Any] = {"other": _beside(shown, row), "style": style.figure_style()}
        figure = plain(survey_distribution)(survey, head.kind, head.layer, head.head, of.name, **looks)
        said = f"{count_words(row.n, 'text')} by {of.title} of {sentences.head_words(head)}: mean {number_words(row.mean)}"
        chart.show(figure, "survey-distribution", said)
    if examples is None:
        st.caption("This number is not known for this head in any text, so no text stands out.")
        return
    st.markdown(f"Texts by **{literal(survey.statistic(examples.by).title)}**. A click opens one in Explore, at this head.")
    if not texts.is_there(survey.model.name):
        st.caption(f"{literal(survey.model.name)} is not among the models of this machine, so its texts cannot be opened.")
    lists = {
        title.capitalize(): [texts.Line(number_words(each.value), each.text) for each in getattr(examples, name)]
        for name, title in LISTS.items()
    }
    texts.show(lists, shown, "survey-texts")


def _sentence(shown: Shown) -> str:
    row = shown.survey.at(shown.head, shown.number.name)
    place = sentences.head_words(shown.head)
    said = f"{place[0].upper()}{place[1:]} is {sentences.role_words(shown.survey, shown.head)}."
    # Of the best head the page's own sentence has said it.
    if row is None or shown.number.role is not None or shown.head == best(shown.survey, shown.number.name):
        return said
    uniform = "" if row.uniform is None else f"; uniform attention {number_words(row.uniform)}"
    title = f"{shown.number.title[0].upper()}{shown.number.title[1:]}"
    return f"{said} {title}: {number_words(row.mean)} on average (95 %: {interval_words(row.interval)}){uniform}."


def _beside(shown: Shown, row: HeadStatistic) -> HeadStatistic | None:
    """The statistic of the other survey, where its bins are the same."""
    if shown.beside is None or shown.survey.statistic(row.statistic) not in shown.beside.statistics:
        return None
    return shown.beside.at(shown.head, row.statistic)
