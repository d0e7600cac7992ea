"""Agreement with the cause, by hand and against pandas; intervals resample texts."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from transformer_viz import Trace
from transformer_viz.analysis.intervals import Mean, mean_over_texts
from transformer_viz.attribution.result.verdict import (
    MapVerdict,
    content_keys,
    first_keys,
    judge_maps,
    left_out_words,
    merge_verdicts,
    spearman,
    verdict_words,
)
from transformer_viz.errors import OptionError
from transformer_viz.trace.attribution import Attribution


def run(weights: Any, n_keys: int, **changes: Any) -> Trace:
    weights = np.asarray(weights, np.float64)
    given: dict[str, Any] = {"source_tokens": ["<start>", *"abcdefgh"[: n_keys - 2], "<end>"], "normalised": False}
    return Trace.from_arrays(cross=weights, target_tokens=[str(t) for t in range(weights.shape[-2])], **{**given, **changes})


def cause_of(values: Any) -> Attribution:
    return Attribution("occlusion", "cross", np.asarray(values, np.float64), "word", "nats")


def test_by_hand():
    head = [[0.9, 0.1, 0.0, 0.0, 0.0], [0, 0.2, 0.2, 0.1, 0.5], [0, 0.3, 0.1, 0.6, 0], [0, 0.1, 0.2, 0.7, 0]]
    cause = [[9.0, 1.0, 0.0, -1.0, 0.0], [0, 0.2, 0.1, 0.0, 7], [0, 0.3, 0.9, 0.1, 0], [8, 0.09, 0.05, 0.0, 8]]
    found = judge_maps(run([head], 5), cause_of(cause))
    # Special tokens do not count: the third key of the first row is not first, the last step has no cause among the letters.
    assert found.steps == (0, 1, 2) and found.n_left_out == 1
    own = found.maps["L1 H1"]
    assert own.top == (1.0, 0.5, 0.0)  # of two largest keys one is the cause
    assert np.allclose(own.rho, [np.sqrt(3) / 2, np.sqrt(3) / 2, -1.0])
    assert np.allclose(found.chance, 1 / 3)
    assert merge_verdicts([found]).at("L1 H1").top == Mean(0.5)


def test_causes_that_are_rounding_are_ranked_as_equal():
    """Of eight keys two matter; the order of the other six is noise of either sign, which no map can know."""
    rng = np.random.default_rng(5)
    n_steps, n_keys = 300, 8
    cause = np.zeros((n_steps, n_keys + 2))
    cause[:, 1:-1] = rng.uniform(-9e-7, 9e-7, (n_steps, n_keys))
    cause[:, 1], cause[:, 2] = 2.0, 0.5
    head = np.full((1, n_steps, n_keys + 2), 0.01)
    head[:, :, 1], head[:, :, 2] = 0.6, 0.3
    for mode in ("word", "position", "deleted"):
        found = judge_maps(run(head, n_keys + 2), Attribution("occlusion", "cross", cause, mode, "nats"))
        np.testing.assert_allclose(found.maps["L1 H1"].rho, 1)
    # What is just as small but above the floor still counts, of either sign.
    cause = cause.copy()
    cause[:, 3], cause[:, 4] = 1.1e-6, -1.1e-6
    ranks = pd.DataFrame({"head": head[0, 0, 1:-1], "cause": [2, 0.5, 1.1e-6, -1.1e-6, 0, 0, 0, 0]}).rank()
    wanted = ranks["head"].corr(ranks["cause"])
    np.testing.assert_allclose(judge_maps(run(head, n_keys + 2), cause_of(cause)).maps["L1 H1"].rho, wanted)


def test_means_the_strongest_head_and_other_attributions_are_maps_too():
    heads = [[[0.0, 0.6, 0.4, 0.0]], [[0.0, 0.1, 0.9, 0.0]]]
    by_layer = Attribution("norm", "cross", np.array([[[[0.0, 3, 1, 0]]]]), layers=(2,))
    by_head = Attribution("heads", "cross", np.array([[[[0.0, 3, 1, 0]], [[0, 1, 3, 0]]]]), layers=(0,))
    others = [by_layer, by_head, Attribution("flow", "cross", np.eye(4)[:1])]
    tops = {name: each.top[0] for name, each in judge_maps(run([heads], 4), cause_of([[0, 5.0, 0, 0]]), others).maps.items()}
    own = {"L1 H1": 1, "L1 H2": 0, "L1 mean": 0, "L1 max": 0}
    assert tops == own | {"norm L3": 1.0, "heads L1 H1": 1.0, "heads L1 H2": 0.0, "flow": 0.5}


def test_spearman_is_that_of_pandas():
    rng = np.random.default_rng(1)
    for n in (2, 3, 7, 30):
        a, b = rng.integers(0, 5, n).astype(float), rng.normal(size=n)
        ranks = pd.DataFrame({"a": a, "b": b}).rank()
        with np.errstate(invalid="ignore"):  # pandas 2 divides by nothing where all are alike
            expected = ranks["a"].corr(ranks["b"])
        assert spearman(a, b) == pytest.approx(expected, nan_ok=True)
    assert np.isnan(spearman(np.ones(3), np.arange(3.0))) and np.isnan(spearman(np.array([1, np.nan]), np.arange(2.0)))


def test_intervals_resample_texts_and_not_steps():
    """Ten texts whose steps agree all or not at all: as wide as ten coins, not as four hundred."""
    texts = [np.full(40, float(i % 2)) for i in range(10)]
    found = mean_over_texts(texts, seed=0)
    assert found.value == 0.5 and found.interval is not None
    low, high = found.interval
    assert 0.15 <= low <= 0.25 and 0.75 <= high <= 0.85
    uneven = [np.full(3, value) for value in np.random.default_rng(2).random(10)]
    assert mean_over_texts(uneven, seed=0) == mean_over_texts(uneven, seed=0) != mean_over_texts(uneven, seed=1)
    assert mean_over_texts(texts[:1], seed=0).interval is None and np.isnan(mean_over_texts([np.empty(0)] * 2, seed=0).value)
    # Long texts count as many steps as they have; of texts that are all alike no interval says something.
    assert mean_over_texts([np.ones(30), np.zeros(10)], seed=0) == Mean(0.75, (0.0, 1.0))
    assert mean_over_texts([np.ones(3)] * 50, seed=0).ends is None
    some = mean_over_texts([np.ones(3)] * 49 + [np.zeros(3)], seed=0)
    assert some.ends == some.interval is not None


def test_words():
    none, some = (merge_verdicts([judge_maps(run(np.ones((1, 4)) / 4, 4), cause_of([[0, cause, 0, 0]]))]) for cause in (0, 5.0))
    left_out = "has nothing to point at: 1 step is left out: 1 in which no token matters by 0.1 nats or more"
    assert verdict_words(none.at("L1 H1"), none) == left_out
    found = MapVerdict("L1 H1", Mean(0.943), Mean(0.5))
    assert verdict_words(found, some) == "points where the cause is in 94 % of 1 judged step (50 % by chance)"
    assert left_out_words(some) == "no step is left out"
    with pytest.raises(OptionError, match="there is no map 'L9 H9'"):
        some.at("L9 H9")
    # Of a text of one letter no key can be chosen, whatever its cause.
    letter = judge_maps(run(np.ones((2, 3)) / 3, 3), cause_of([[0, 5.0, 0], [0, 0, 0]]))
    letters = judge_maps(run(np.ones((3, 4)) / 4, 4), cause_of([[0, 5.0, 0, 0], [9, 0.01, 0, 9], [0, 0, 0, 0]]))
    assert (letter.n_left_out, letter.n_without_choice, letters.n_left_out, letters.n_without_choice) == (2, 2, 2, 0)
    said = (
        "4 steps are left out: 2 in which no token matters by 0.1 nats or more and 2 with fewer than two tokens to choose from"
    )
    assert left_out_words(merge_verdicts([letter, letters])) == said


def test_as_a_table():
    rng = np.random.default_rng(3)
    each = [judge_maps(run(rng.random((1, 2, 5, 6)), 6), cause_of(rng.normal(1, 1, (5, 6)))) for _ in range(3)]
    found = merge_verdicts(each)
    assert [*merge_verdicts(each[:1]).to_frame().columns] == ["map", "top", "rho"]
    table = found.to_frame().set_index("map")
    assert [*table.index] == ["L1 H1", "L1 H2", "L1 mean", "L1 max", "by chance"]
    for name in table.index[:-1]:
        top, rho = found.at(name).top, found.at(name).rho
        assert table.loc[name].tolist() == [top.value, *(top.interval or ()), rho.value, *(rho.interval or ())]
    assert table.loc["by chance", "top"] == found.chance.value and table.loc["by chance", "rho"] == 0


def test_the_first_keys():
    row, among = np.array([9.0, 1, 3, 3, np.nan]), np.array([False, True, True, True, True])
    found = [first_keys(row, among, k).nonzero()[0].tolist() for k in (1, 2, 9)]
    assert found == [[2], [2, 3], [1, 2, 3, 4]]
    trace = Trace.from_arrays(
        decoder=np.tril(np.ones((3, 3))), target_tokens=["<start>", "a", "b"], masks={"decoder": "causal"}, normalised=False
    )
    # Of what the decoder reads only what is there by then.
    assert content_keys(trace, "decoder").tolist() == [[False] * 3, [False, True, False], [False, True, True]]
