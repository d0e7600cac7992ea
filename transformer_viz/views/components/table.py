"""A table of a handful of columns, in Streamlit's grid: it sorts, and a row of it can be chosen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz.language import known, later
from transformer_viz.views import glossary

_COLUMNS = (later("rank"), later("text"), later("tokens"), later("answer"), later("map"), later("score"), later("log p"))
"""Titles of columns that are no terms of the glossary; they are said where they are drawn."""


def show(columns: Mapping[str, Sequence[Any]], label: str, *, percents: Sequence[str] = (), places: int = 2) -> None:
    """The table.

    Args:
        columns: by their titles: texts, shares or numbers; NaN is a dash.
        label: what it is a table of, for a screen reader.
        percents: the titles of those that are shares.
        places: of the other numbers behind the point.
    """
    frame = pd.DataFrame(dict(columns))
    st.dataframe(frame, alt=label, **_looks(frame, percents, places))


def choose(
    columns: Mapping[str, Sequence[Any]],
    label: str,
    key: str,
    here: int | None,
    on_choice: Callable[[int], None],
    *,
    percents: Sequence[str] = (),
    places: int = 2,
) -> None:
    """Draws a table of which one row can be chosen.

    Args:
        columns, label, percents, places: as of `show`.
        key: of the table.
        here: the row that is chosen now.
        on_choice: is called with the place of another one, before the page runs again.
    """
    frame = pd.DataFrame(dict(columns))

    def chosen() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows and rows[0] != here and 0 <= rows[0] < len(frame):
            on_choice(rows[0])

    selected: Any = {"selection": {"rows": [] if here is None else [here]}}
    if key in st.session_state and [*st.session_state[key]["selection"]["rows"]] != selected["selection"]["rows"]:
        st.session_state[key] = selected
    st.dataframe(
        frame,
        alt=label,
        key=key,
        on_select=chosen,
        selection_mode="single-row",
        selection_default=selected,
        **_looks(frame, percents, places),
    )


def _looks(frame: pd.DataFrame, percents: Sequence[str], places: int) -> dict[str, Any]:
    config = {}
    for title in frame.columns:
        help_ = glossary.sentence(title) if title.lower() in glossary.TERMS else None
        if title in percents:
            config[title] = st.column_config.NumberColumn(known(title), format="percent", help=help_)
        elif frame[title].dtype == float:
            config[title] = st.column_config.NumberColumn(known(title), format=f"%.{places}f", help=help_)
        else:
            config[title] = st.column_config.Column(known(title), help=help_)
    return {"hide_index": True, "column_config": config, "placeholder": "–"}
