"""Mounts the bridges that tell Python which cell of a heatmap, or which point of a scatter, was clicked."""

from collections.abc import Callable

import streamlit as st

from transformer_viz.views.parts.bridge import bridge


def show(chart_key: str, on_cell: Callable[[int | None, int | None], None]) -> None:
    """Listens to the chart in the container `chart_key`; `on_cell` gets query and key, None where a label was clicked."""
    key = f"clicks-{chart_key}"

    def heard() -> None:
        cell = (st.session_state.get(key) or {}).get("cell") or {}
        query, column = cell.get("query"), cell.get("key")
        if all(place is None or (isinstance(place, int) and 0 <= place < 512) for place in (query, column)):
            on_cell(query, column)

    bridge("cells")(key=key, data={"chart": chart_key}, on_cell_change=heard, height=1)


def show_points(chart_key: str, on_point: Callable[[int], None]) -> None:
    """Listens to a scatter in the container `chart_key`; `on_point` gets the `customdata` of the point, a whole number."""
    key = f"clicks-{chart_key}"

    def heard() -> None:
        point = (st.session_state.get(key) or {}).get("point")
        if isinstance(point, int) and point >= 0:
            on_point(point)

    bridge("points")(key=key, data={"chart": chart_key}, on_point_change=heard, height=1)
