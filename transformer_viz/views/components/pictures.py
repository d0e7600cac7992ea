"""Makes the calls that draw a run's pictures: for the code that makes them again, and for what is covered."""

from typing import Any

from transformer_viz.addresses import map_address
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.player import player as player_figure
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import style
from transformer_viz.views.components.measured import NOTHING, Measured
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.state import focus
from transformer_viz.views.state.display_options import DisplayOptions


def map_call(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured) -> Call:
    """The call that draws the large map."""
    looks: dict[str, Any] = {"measure": measured.results.get(now.kind), "style": style.figure_style()}
    return Call(plain(player_figure), trace, map_address(now.kind, now.layer, now.head), now.step, **looks)


def picture_calls(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured = NOTHING) -> list[Call]:
    """The calls that draw the large map and all heads of every kind."""
    return [map_call(trace, chosen, now, measured), *mosaic_calls(trace, chosen, now, measured).values()]


def mosaic_calls(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured = NOTHING) -> dict[Kind, Call]:
    """The calls that draw all heads of every kind."""
    looks: dict[str, Any] = {"style": style.figure_style()}
    tiles = {kind: (now.layer, now.head) if kind == now.kind else None for kind in trace.kinds}
    return {kind: Call(plain(mosaic), trace, kind, tile, measure=measured.of(kind), **looks) for kind, tile in tiles.items()}
