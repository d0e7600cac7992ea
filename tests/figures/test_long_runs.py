"""Runs too long to send their map once a step: a cover hides what is to come, and hides all of it."""

import numpy as np
import pytest

from tests.figures.sent import numbers, spec
from transformer_viz import Trace, figures
from transformer_viz.figures.player import COVERED_FROM
from transformer_viz.terms import Kind

N_SOURCE, N_TARGET = 101, 103


def long_run() -> Trace:
    rng = np.random.default_rng(0)

    def rows(queries: int, keys: int, causal: bool = False) -> np.ndarray:
        weights = rng.random((2, 3, queries, keys)) * (np.tri(queries, keys) if causal else 1)
        return weights / weights.sum(-1, keepdims=True)

    tokens = [f"t{i}" for i in range(N_TARGET)]
    return Trace.from_arrays(
        encoder=rows(N_SOURCE, N_SOURCE),
        decoder=rows(N_TARGET, N_TARGET, causal=True),
        cross=rows(N_TARGET, N_SOURCE),
        masks={"decoder": "causal"},
        source_tokens=[f"s{i}" for i in range(N_SOURCE)],
        target_tokens=["<s>", *tokens[:-1]],
        output_tokens=tokens,
        probabilities=[0.5] * N_TARGET,
        alignment=[t % N_SOURCE for t in range(N_TARGET)],
    )


@pytest.fixture(scope="module")
def run() -> Trace:
    return long_run()


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_the_map_is_sent_once_and_covered(run: Trace, kind: Kind) -> None:
    sent = spec(figures.player(run, kind, 1, 2, 40))
    cover, weights = sent["data"][:2]
    z, full = numbers(weights["z"]), run.attentions[kind].weights
    allowed = ~run.attentions[kind].mask
    np.testing.assert_array_equal(z[allowed], full[1, 2][allowed])
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
