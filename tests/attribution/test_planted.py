"""Planted truth: where one head copies and the others decorate, every measure finds it; two that copy are each needless."""

import numpy as np
import pytest

import transformer_viz as tv
from tests.attribution import plain, planted
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.verdict import KS, verdict_words
from transformer_viz.vocabulary import UNKNOWN_ID


@pytest.fixture(scope="module")
def one():
    return planted.copying(0)


@pytest.mark.parametrize("mode", ["word", "position"])
def test_every_measure_finds_the_head_that_copies(one, mode):
    trace = tv.decode(one, planted.TEXT)
    assert trace.text == planted.TEXT
    cause = tv.attribute(one, trace, "occlusion", mode=mode)
    assert (cause.values.argmax(1) == np.arange(1, trace.n_steps + 1)).all()
    shares = list[float]()
    found = tv.judge_attention(one, trace, mode=mode, on_progress=shares.append)
    assert not found.missing
    # Each measure tells how far it is, too.
    assert shares == sorted(shares) and shares[-1] < 1 and {*np.arange(len(METHODS)) / len(METHODS)} <= {*shares}
    finds = ["L1 H1", "gradient", "rollout", "alti", "value_weighted L1 H1", "value_weighted_sum L1", "L1 mean"]
    assert {name: found.at(name).top.value for name in finds} == dict.fromkeys(finds, 1.0)
    chance = 1 / len(planted.TEXT)
    assert found.chance.value == pytest.approx(chance)
    for decorating in ("L1 H2", "L1 H3", "L1 H4", "value_weighted L1 H2", "value_weighted L1 H3", "value_weighted L1 H4"):
        assert found.at(decorating).top.value <= 2 * chance
    # What writes <end> is <end>, which is no content.
    assert (found.n_judged, found.n_left_out) == (len(planted.TEXT), 1)
    assert verdict_words(found.at("L1 H1"), found) == "points where the cause is in 100 % of 8 judged steps (12 % by chance)"


def test_two_heads_that_copy_are_needed_only_together():
    """Where a head looks is one thing, and whether it is needed another."""
    two = planted.copying(0, 1)
    texts = [planted.TEXT, "abba", "hgfedcba", "a"]
    exact = {edits: tv.measure_effect(two, texts, edits=edits.split()).exact_after for edits in
             ("cross.1.1:zero", "cross.1.2:zero", "cross.1.3:zero", "cross.1.1:zero cross.1.2:zero")}  # fmt: skip
    assert list(exact.values()) == [1.0, 1.0, 1.0, 0.0]
    found = tv.judge_attention(two, [tv.decode(two, text) for text in texts])
    for head in ("L1 H1", "L1 H2"):
        assert "in 100 % of 20 judged steps" in verdict_words(found.at(head), found)
    # The last text has one letter, among which nothing can be chosen.
    assert (found.n_texts, found.n_left_out) == (4, 5)


def test_what_a_copying_head_puts_first_carries_the_probability(one):
    trace, shares = tv.decode(one, planted.TEXT), list[float]()
    found = tv.faithfulness(one, trace, ["L1 H1", "L1 H2", "gradient"], on_progress=shares.append)
    curves = {each.name: each for each in found}
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] < 1
    assert list(curves) == ["L1 H1", "L1 H2", "gradient", "occlusion", "random"]
    assert tv.faithfulness(one, trace, "L1 H1")[0] == curves["L1 H1"], "without a list"
    for name in ("L1 H1", "gradient", "occlusion"):
        assert all(each.value > 0.99 for each in curves[name].comprehensiveness)
        assert all(abs(each.value) < 0.01 for each in curves[name].sufficiency)
    by_chance = [k / len(planted.TEXT) for k in KS]
    assert np.allclose([each.value for each in curves["random"].comprehensiveness], by_chance, atol=0.15)
    assert all(each.value > 0.3 for each in curves["random"].sufficiency)


def test_curves_are_a_loop_of_plain_passes(tiny, hello):
    """Without, or with nothing but, the k letters that a head looks at most."""
    source, read, written = plain.ids(tiny, hello)
    before, letters = plain.log_p(tiny, source, read), range(1, len(source) - 1)
    cause = tv.attribute(tiny, hello, "occlusion").values
    judged = [t for t in range(len(written)) if max(cause[t, j] for j in letters) >= 0.1]
    lost = {"comprehensiveness": np.zeros((4, len(judged))), "sufficiency": np.zeros((4, len(judged)))}
    for place, t in enumerate(judged):
        first = sorted(letters, key=lambda j: -hello.cross.weights[1, 2, t, j])
        for i, k in enumerate(KS):
            for name, gone in (("comprehensiveness", first[:k]), ("sufficiency", first[k:])):
                ids = [UNKNOWN_ID if j in gone else number for j, number in enumerate(source)]
                after = plain.log_p(tiny, ids, read)[t, written[t]]
                lost[name][i, place] = np.exp(before[t, written[t]]) - np.exp(after)
    [curve, _, _] = tv.faithfulness(tiny, hello, ["L2 H3"])
    for name, expected in lost.items():
        assert np.allclose([each.value for each in getattr(curve, name)], expected.mean(1), rtol=0, atol=1e-12)
    assert 0 < len(judged) < len(written) or len(judged) == len(written)
