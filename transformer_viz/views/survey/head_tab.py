"""The tab This head: its roles, its distribution over all texts, and the texts that show it."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.survey import words
from transformer_viz.analysis.survey.readings import best, estimate
from transformer_viz.analysis.survey.result import Distribution, SurveyedStatistic
from transformer_viz.export.survey_page import LISTS
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.survey_distribution import survey_distribution
from transformer_viz.numbers_in_words import count_words, interval_words, number_words
from transformer_viz.views.components import chart, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey import texts
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "This head", 0


def show(shown: Shown) -> None:
    """A sentence, the histogram, and three lists."""
    head = shown.head
    st.markdown(shown.heading(_sentence(shown)))
    drawn = _statistic(shown)
    if drawn is not None:
        of, found = drawn
        looks: dict[str, Any] = {"other": _beside(shown, of), "style": style.figure_style()}
        figure = plain(survey_distribution)(shown.survey, head.kind, head.layer, head.head, of.name, **looks)
        said = f"{count_words(found.n, 'text')} by {of.title} of {words.place(head)}: mean {number_words(found.mean)}"
        chart.show(figure, "survey-distribution", said, zooms=False, painted=True)
    if head.by is None:
        st.caption("No text tells this head's number, so that no text stands out.")
        return
    st.markdown(f"Texts by **{literal(shown.survey.statistic(head.by).title)}**. A click opens one in Explore, at this head.")
    if not texts.is_there(shown.survey.model.name):
        st.caption(
            f"{literal(shown.survey.model.name)} is not among the models of this machine, so that no text can be opened."
        )
    lists = {
        title.capitalize(): [texts.Line(number_words(each.value), each.text) for each in getattr(head, name)]
        for name, title in LISTS.items()
    }
    texts.show(lists, shown, "survey-texts")


def _sentence(shown: Shown) -> str:
    found = estimate(shown.head, shown.number.name)
    place = words.place(shown.head)
    said = f"{place[0].upper()}{place[1:]} is {words.role_words(shown.head)}."
    # Of the best head the page's own sentence has said it.
    if found is None or shown.number.role is not None or shown.head == best(shown.survey, shown.number.name):
        return said
    even = "" if found.even is None else f"; uniform attention {number_words(found.even)}"
    title = f"{shown.number.title[0].upper()}{shown.number.title[1:]}"
    return f"{said} {title}: {number_words(found.value)} on average (95 %: {interval_words((found.low, found.high))}){even}."


def _statistic(shown: Shown) -> tuple[SurveyedStatistic, Distribution] | None:
    """What is drawn: the chosen number, or where it is no statistic of this head the one that its texts are listed by."""
    for name in (shown.number.name, shown.head.by):
        found = None if name is None else shown.head.statistics.get(name)
        if name is not None and found is not None:
            return shown.survey.statistic(name), found
    return None


def _beside(shown: Shown, of: SurveyedStatistic) -> Distribution | None:
    """The same of the other survey, where its bins are the same."""
    if shown.beside is None or of not in shown.beside.statistics:
        return None
    return shown.beside.at(shown.head.kind, shown.head.layer, shown.head.head).statistics[of.name]
