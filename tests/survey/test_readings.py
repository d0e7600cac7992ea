"""What is read off a survey, beside plain loops."""

import numpy as np
import pytest

from tests.survey.made import survey
from transformer_viz.analysis.intervals import wilson
from transformer_viz.analysis.survey import words
from transformer_viz.analysis.survey.readings import calibration, estimate, reading, readings, roles, values
from transformer_viz.analysis.survey.result import Confidence
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import percent_words

MADE = survey()


def test_statistics_come_first_and_then_the_roles_that_heads_have():
    assert [*readings(MADE)] == ["mass", "entropy_share", "distance", "role mirror", "role mixed"]
    with pytest.raises(OptionError, match="'entropy' is no number of this survey; choose one of mass, "):
        reading(MADE, "entropy")


def test_a_number_of_every_head_stands_at_its_place():
    mass = values(MADE, "cross", "mass")
    for head in MADE.heads:
        known = head.statistics["mass"]
        if head.kind == "cross":
            assert known is not None and mass[head.layer, head.head] == known.mean
        else:
            assert estimate(head, "mass") is None
    assert np.isnan(values(MADE, "encoder", "mass")).all()


def test_a_role_is_a_share_of_the_texts_with_its_interval():
    head = MADE.at("decoder", 1, 2)
    found, n = estimate(head, "role mirror"), head.roles["mirror"]
    assert found is not None and (found.value, found.n) == (n / 1000, 1000)
    assert (found.low, found.high) == wilson(n, 1000)
    never = estimate(head, "role broad")
    assert never is not None and never.value == 0 < never.high
    assert sum(share for _, share in roles(head)) == pytest.approx(1)
    assert roles(head) == sorted(roles(head), key=lambda role: -role[1])


def test_calibration_is_what_a_loop_over_tokens_finds():
    rng = np.random.default_rng(4)
    edges = tuple((np.arange(11) / 10).tolist())
    p = rng.beta(3, 1, 500)
    is_right = rng.random(500) < p**2
    place = np.minimum((p * 10).astype(int), 9)
    counts = np.bincount(place, minlength=10)
    confidence = Confidence(
        edges=edges,
        counts=tuple((counts + 3).tolist()),
        n_judged=tuple(counts.tolist()),
        sum_p=tuple(np.bincount(place, p, minlength=10).tolist()),
        n_right=tuple(np.bincount(place, is_right, minlength=10).astype(int).tolist()),
    )
    bins, error = calibration(confidence)
    apart = 0.0
    for each in range(10):
        if (mine := place == each).any():
            apart += abs(p[mine].mean() - is_right[mine].mean()) * mine.sum() / 500
    assert apart > 0.05 and error == pytest.approx(apart, abs=1e-12)
    assert len(bins) == (counts > 0).sum() and all(each.low <= each.confidence <= each.high for each in bins)
    empty = Confidence(edges=(0.0, 1.0), counts=(4,), n_judged=(0,), sum_p=(0.0,), n_right=(0,))
    assert calibration(empty) == ([], None)


def test_sentences_have_the_numbers_of_the_survey():
    mass = values(MADE, "cross", "mass")
    layer, head = np.unravel_index(mass.argmax(), mass.shape)
    said = words.headline(MADE, "mass")
    assert f"layer {layer + 1} head {head + 1} of cross-attention: {mass.max():.3f} on average" in said
    most = max(head.roles["mirror"] for head in MADE.heads)
    assert percent_words(most / 1000, 1) in words.headline(MADE, "role mirror")
    read = "reverse (pre-norm, 100,000 parameters) over 1,000 texts (held-out, seed 0); 1 of 1,001 could not be read"
    assert read in words.made_of(MADE)
    assert MADE.outputs is not None
    assert f"{MADE.outputs.n_exact:,} of 1,000 outputs are right" in words.right(MADE.outputs)
