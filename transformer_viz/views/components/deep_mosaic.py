"""The heads of a deep model: an overview of all by one number, and the small maps of as many as six layers have."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from transformer_viz.analysis.attribution_maps import is_of_heads, norms_of_rows
from transformer_viz.analysis.head_order import LAYERS
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.figures.figure_data import PlainFigure, plain
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.tiles import tile_map
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, player, screen, style
from transformer_viz.views.state import deep, levels, link
from transformer_viz.views.state.display_options import DisplayOptions
from transformer_viz.views.state.focus import Focus

OnTile = Callable[[dict[str, Any]], None]
_PHONE, _BESIDE, _LEAST_TILE, _LEAST_ROW, _HIGHEST_ROW = 350, 1000, 62, 76, 112
"""Pixels: what tiles have side by side on a phone, and beside the overview; the least width of one; the heights of a row."""


def show(trace: Trace, chosen: DisplayOptions, now: Focus, on_tile: OnTile, measure: Attribution | None = None) -> None:
    """Of the kind in focus alone. With the answer hidden there is no overview: its numbers are of the whole run."""
    deep.start(trace)
    is_covered = deep.is_covered(trace)
    norms = measure if measure is not None and measure.kind == now.kind and is_of_heads(trace, measure) else None
    _controls(trace, is_covered, is_by_value=norms is not None)
    left, right = st.columns([1, 3])
    if not is_covered:
        with left:
            _overview(trace, now, on_tile, norms)
    with right:
        heads = deep.heads(trace, st.session_state.heads_page)
        place = room(len(heads), trace.attentions[now.kind].n_heads)
        looks: dict[str, Any] = {"scale": chosen.scale, "measure": measure, "style": style.figure_style()}
        figure = plain(mosaic)(trace, now.kind, (now.layer, now.head), heads=heads, **place, **looks)
        show_mosaic(figure, now.kind, now, on_tile)


def room(n_tiles: int, most: int) -> dict[str, Any]:
    """How many tiles stand side by side, at most so many, and how high all are; for `mosaic` and `difference_mosaic`."""
    width = _PHONE if screen.is_narrow() else _BESIDE
    columns = min(most, width // _LEAST_TILE)
    return {"columns": columns, "height": 28 + -(-n_tiles // columns) * max(_LEAST_ROW, min(_HIGHEST_ROW, width // columns))}


def show_mosaic(figure: PlainFigure, kind: Kind, now: Focus, on_tile: OnTile, *, unfolds: bool = False) -> None:
    """A mosaic whose tiles hear clicks; it may fill as the steps come."""
    words = (
        f"Layers and heads of the {KIND_TITLES[kind]}. Choose one with the boxes for layer and head, which All controls shows."
    )
    chart.show(
        figure,
        f"{player.MOSAIC_KEY}-{kind}",
        words,
        run=now.run,
        clicks=("tile", on_tile),
        unfolds=now.step if unfolds else None,
    )


def _controls(trace: Trace, is_covered: bool, *, is_by_value: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="deep-controls"):
        if not is_covered:
            state = st.session_state
            if not is_by_value:
                with levels.only_in_all("overview-of", is_used=state.overview_of != deep.overview(trace)):
                    link.selectbox("Overview by", key="overview_of", width=270)
            with levels.only_in_all("head-order", is_used=state.head_order != LAYERS):
                link.selectbox("Heads in the order of", key="head_order", width=270)
        link.selectbox("Small maps of", key="heads_page", width=320)


def _overview(trace: Trace, now: Focus, on_tile: OnTile, norms: Attribution | None) -> None:
    """By what was chosen; where the maps are by value, by how much a head takes from all keys together."""
    by = deep.ORDERS[st.session_state.overview_of] if norms is None else f"{norms.title} of a row"
    values = deep.values(trace) if norms is None else norms_of_rows(trace, norms)
    layers, focus = trace.attentions[now.kind].layers, (now.layer, now.head)
    figure = tile_map(now.kind, layers, values, by, focus, style.figure_style())
    title = kind_title(trace, now.kind, in_full=False)
    show_overview(figure, f"Every head of the {title} by {by}", on_tile, now.run)


def show_overview(figure: PlainFigure, words: str, on_tile: OnTile, run: str | None = None) -> None:
    """An overview that hears clicks; `words` say what it is."""
    with st.container(key="overview"):
        chart.show(figure, "overview-chart", f"{words}. A click makes it the focus.", run=run, clicks=("tile", on_tile))
