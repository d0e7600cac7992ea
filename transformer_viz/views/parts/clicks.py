"""Mounts the bridge that tells Python which cell of a chart was clicked."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


def show(chart_key: str, on_cell: Callable[[int | None, int | None], None]) -> None:
    """Listens to the chart in the container `chart_key`; `on_cell` gets query and key, None where a label was clicked."""
    key = f"clicks-{chart_key}"

    def heard() -> None:
        cell = (st.session_state.get(key) or {}).get("cell") or {}
        query, column = cell.get("query"), cell.get("key")
        if all(place is None or (isinstance(place, int) and 0 <= place < 512) for place in (query, column)):
            on_cell(query, column)

    _component()(key=key, data={"chart": chart_key}, on_cell_change=heard, height=1)


@cache
def _component() -> Any:
    return st.components.v2.component(
        "transformer-viz-clicks", js=(Path(__file__).parent / "cells.js").read_text(encoding="utf-8")
    )
