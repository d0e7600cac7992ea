"""What the app sends of a figure is the figure: the same data as Plotly's own objects of it write down."""

from typing import Any

import numpy as np
import pytest

from tests.figures.conftest import same
from tests.figures.test_long_runs import long_run
from tests.figures.test_partial_runs import RUNS
from transformer_viz import figures
from transformer_viz.figures.mosaic import plain_mosaic
from transformer_viz.figures.plain import PlainFigure
from transformer_viz.figures.player import plain_player
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

LOOKS: list[dict[str, Any]] = [
    {"theme": "light", "large": False, "with_answer": True, "narrow": False},
    {"theme": "dark", "large": True, "with_answer": False, "narrow": True},
]


def all_of(trace: Trace, looks: dict[str, Any]) -> None:
    for kind in trace.kinds:
        for layer, head, step in ((None, 0, 0), (trace.attentions[kind].layers[-1], "mean", max(0, trace.n_steps - 1))):
            drawn = plain_player(trace, kind, layer, head, step, **looks)
            same(drawn, figures.player(trace, kind, layer, head, step, **looks))
        chosen = {name: looks[name] for name in ("theme", "large")}
        for focus in (None, (0, 0), (0, "max")):
            same(plain_mosaic(trace, kind, focus, **chosen), figures.mosaic(trace, kind, focus, **chosen))


@pytest.mark.parametrize("looks", LOOKS, ids=("light", "dark"))
def test_what_is_sent_is_the_figure(trace: Trace, looks: dict[str, Any]) -> None:
    assert trace.kinds == KINDS
    all_of(trace, looks)


@pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)
def test_of_runs_that_somebody_else_made(trace: Trace) -> None:
    all_of(trace, LOOKS[0])


def test_of_long_runs_too() -> None:
    """Mosaics of bytes, and a focus map that is sent once, under a cover."""
    all_of(long_run(), LOOKS[0])


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        PlainFigure([{"type": "bar", "x": [float("nan")]}], {}).to_json()
    with pytest.raises(TypeError, match="float32"):
        PlainFigure([{"type": "bar", "x": [np.float32(1)]}], {}).to_json()
