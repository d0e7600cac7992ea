"""What the app sends of a figure is the figure: the same data as Plotly's own objects of it write down."""

from inspect import signature

import plotly.graph_objects as go
import pytest

from tests.figures.conftest import same
from tests.figures.test_long_runs import long_run
from tests.figures.test_partial_runs import RUNS
from transformer_viz import figures
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.theme import Style
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

STYLES = Style(), Style("dark", large=True, narrow=True)


def all_of(trace: Trace, style: Style) -> None:
    for kind in trace.kinds:
        for layer, head, step in ((None, 0, 0), (trace.attentions[kind].layers[-1], "mean", max(0, trace.n_steps - 1))):
            drawn = plain(figures.player)(trace, kind, layer, head, step, style=style)
            same(drawn, figures.player(trace, kind, layer, head, step, style=style))
        for focus in (None, (0, 0), (0, "max")):
            same(plain(figures.mosaic)(trace, kind, focus, style=style), figures.mosaic(trace, kind, focus, style=style))


@pytest.mark.parametrize("style", STYLES, ids=("light", "dark"))
def test_what_is_sent_is_the_figure(trace: Trace, style: Style) -> None:
    assert trace.kinds == KINDS
    all_of(trace, style)


@pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)
def test_of_runs_that_somebody_else_made(trace: Trace) -> None:
    all_of(trace, STYLES[0])


def test_of_long_runs_too() -> None:
    """Mosaics of bytes, and a focus map that is sent once, under a cover."""
    all_of(long_run(), STYLES[0])


@pytest.mark.parametrize("name", [name for name in figures.__all__ if name != "Style"])
def test_every_figure_is_plain_data_and_its_help_promises_plotlys(name: str) -> None:
    figure = getattr(figures, name)
    assert plain(figure) is not figure
    assert signature(figure).return_annotation is go.Figure
    assert "style" in signature(figure).parameters
