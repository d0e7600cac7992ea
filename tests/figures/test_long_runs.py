"""Runs too long to send their map once a step: a cover hides what is to come, and hides all of it."""

import numpy as np
import pytest

from tests.figures.sent import numbers, spec
from tests.figures.test_hovers import run as hovered
from transformer_viz import Trace, figures
from transformer_viz.figures.player import COVERED_FROM
from transformer_viz.terms import Kind

N_SOURCE, N_TARGET = 101, 103


@pytest.fixture(scope="module")
def run() -> Trace:
    return hovered(N_SOURCE, N_TARGET)


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_the_map_is_sent_once_and_covered(run: Trace, kind: Kind) -> None:
    sent = spec(figures.player(run, f"{kind}.1.2", 40))
    cover, weights = sent["data"][:2]
    z, full = numbers(weights["z"]), run.attentions[kind].weights
    allowed = ~run.attentions[kind].mask
    np.testing.assert_array_equal(z[allowed], full[0, 1][allowed])
    assert np.isnan(z[~allowed]).all()
    n_keys = len(run.attentions[kind].keys)
    # One cell a row, as wide as the map, above everything, and asked first what is under the hand.
    assert (cover["x0"] - cover["dx"] / 2, cover["x0"] + cover["dx"] / 2) == (-0.5, n_keys - 0.5)
    assert cover["zorder"] > max(drawn.get("zorder", 0) for drawn in sent["data"][1:])
    assert cover["hoverinfo"] == "none"
    for step in (0, 40, N_TARGET - 1):
        frame = sent["frames"][step]
        covered = numbers(frame["data"][0]["z"])
        assert covered.shape == (N_TARGET, 1)
        np.testing.assert_array_equal(np.flatnonzero(covered[:, 0] == 1), np.arange(step + 1, N_TARGET))
        assert np.isnan(covered[: step + 1]).all()
    np.testing.assert_array_equal(numbers(cover["z"]), numbers(sent["frames"][40]["data"][0]["z"]))


def test_a_short_run_and_the_encoder_have_no_cover(run: Trace) -> None:
    assert N_TARGET * N_TARGET * N_SOURCE >= COVERED_FROM
    assert len(figures.player(run, "encoder").data) == 3
    assert figures.player(run, "encoder").data[0].zorder is None
