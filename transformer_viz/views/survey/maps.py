"""All heads of a survey, one map a kind side by side: by a number, or by how much it differs from another survey's."""

from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import PlainFigure, plain
from transformer_viz.surveys.columns import kinds
from transformer_viz.surveys.comparison import SurveyComparison
from transformer_viz.surveys.figures.survey_difference import survey_difference
from transformer_viz.surveys.figures.survey_heads import survey_heads
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.views.components import chart, screen, style
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.survey.shown import Shown

_WIDEST = 920
"""Pixels of a single map: one as wide as the page would be all tile."""


def show(shown: Shown, comparison: SurveyComparison | None) -> list[PlainFigure]:
    """The maps that have a number, which are returned; a click makes a head the focus."""
    there = kinds(shown.survey, shown.number.name)
    if comparison is not None:
        there = tuple(kind for kind in shown.survey.kinds if any(comparison.of(kind)))
    if not there:
        return []
    maps = [_figure(shown, comparison, kind) for kind in there]
    alone = [st.container(width=_WIDEST, key="survey-map")] if len(there) == 1 else []
    for figure, kind, column in zip(maps, there, alone or screen.columns(len(there), "survey-maps"), strict=True):
        with column:
            what = shown.number.title if comparison is None else f"difference of {shown.number.title}"
            words = f"Every head of the {KIND_TITLES[kind]} by {what}. A click makes it the focus."
            chart.show(figure, f"survey-chart-{kind}", words, clicks=("tile", partial(_go, shown)))
    st.caption(_caption(shown, comparison, there))
    return maps


def _figure(shown: Shown, comparison: SurveyComparison | None, kind: Kind) -> PlainFigure:
    looks: dict[str, Any] = {"style": style.figure_style()}
    focus = (shown.head.layer, shown.head.head) if shown.head.kind == kind else None
    if comparison is not None:
        return call(plain(survey_difference), comparison, kind, focus, **looks)
    return call(plain(survey_heads), shown.survey, kind, shown.number.name, focus, **looks)


def _caption(shown: Shown, comparison: SurveyComparison | None, there: tuple[Kind, ...]) -> str:
    missing = [KIND_TITLES[kind] for kind in shown.survey.kinds if kind not in there]
    without = (
        f" {' and '.join(missing).capitalize()} {'has' if len(missing) == 1 else 'have'} no such number." if missing else ""
    )
    if comparison is None:
        return f"Click a head to see what it does, and on which texts. Each map has its own scale, which its bar says.{without}"
    cautious = (
        " Both surveyed the same texts, so the intervals are too wide rather than too narrow."
        if comparison.is_same_texts
        else ""
    )
    return (
        "Blue: more in the second survey; orange: less; hatched: within the 95 % interval, so it may be chance. All maps "
        f"have one scale.{cautious}{without}"
    )


def _go(shown: Shown, tile: dict[str, Any]) -> None:
    """Makes the head of a clicked tile the focus; what is no head of this survey is passed over."""
    state = st.session_state
    try:
        head = shown.survey.place(tile.get("kind", ""), tile.get("layer", -1), tile.get("head", -1))
    except OptionError:
        return
    state.kind, state.layer, state.head = head.kind, head.layer, head.head
