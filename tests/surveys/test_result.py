"""A survey as a file and as a table, and what is read off it and off two of them, beside plain loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.surveys import made
from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import difference, wilson
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import calibration, column, columns, values
from transformer_viz.surveys.comparison import compare_surveys
from transformer_viz.surveys.result import NAME, Confidence, Survey, load_survey, role_share

SMALL: dict[str, Any] = {"kinds": ("encoder", "cross"), "n_layers": 1, "n_heads": 2, "n": 12}
MADE = made.survey()
HEAD = HeadPlace("cross", 1, 0)


def test_nothing_is_lost(tmp_path):
    """NaN is not equal to itself, so the texts are compared too."""
    before = made.survey(outputs=None, verdict=None)
    assert Survey.from_json(before.to_json()) == before
    (tmp_path / NAME).write_text(MADE.to_json(), encoding="utf-8")
    for path in (tmp_path, tmp_path / NAME):
        again = load_survey(path)
        assert again.to_json() == MADE.to_json()
        assert (again.outputs, again.heads, again.examples) == (MADE.outputs, MADE.heads, MADE.examples)
    assert again.verdict is not None and again.verdict.at("L1 H1").rho.value != again.verdict.at("L1 H1").rho.value


def test_a_file_is_named_that_is_missing_or_no_survey(tmp_path):
    (tmp_path / NAME).write_text("[]")
    with pytest.raises(SurveyError, match=f"^{NAME} is not a survey that this program can read"):
        load_survey(tmp_path)
    with pytest.raises(SurveyError, match="There is no survey"):
        load_survey(tmp_path / "other.json")


def test_the_table_has_a_row_for_each_statistic_and_role():
    found = made.survey(**SMALL)
    frame = found.to_frame()
    assert list(frame)[:5] == ["kind", "layer", "head", "statistic", "n"]
    # Two statistics and two roles of each encoder head, one more of cross-attention.
    assert len(frame) == 2 * (2 + 2) + 2 * (3 + 2)
    row = frame.set_index(["kind", "layer", "head", "statistic"]).loc[("cross", 0, 1, "mass")]
    mass = found.at(HeadPlace("cross", 0, 1), "mass")
    assert mass is not None and row["mean"] == mass.mean and (row["low"], row["high"]) == mass.interval
    roles = frame[frame.statistic.str.startswith("role ")].groupby(["kind", "layer", "head"])["mean"].sum()
    assert (abs(roles - 1) < 1e-12).all()


def test_a_role_is_the_mean_of_zeros_and_ones_with_the_interval_of_a_share():
    share = role_share(HEAD, "mirror", 3, 12)
    assert (share.n, share.mean, share.min, share.max, share.counts) == (12, 0.25, 0, 1, (9, 3))
    assert share.sd == pytest.approx(0.4522670168666454) and share.interval == wilson(3, 12)
    assert role_share(HEAD, "mirror", 1, 1).sd == 0
    never = MADE.at(HEAD, "role broad")
    assert never is not None and never.mean == 0 < never.interval[1]
    roles = MADE.roles(HEAD)
    assert sum(share for _, share in roles) == pytest.approx(1) and roles == sorted(roles, key=lambda role: -role[1])


def test_what_is_not_there_is_named():
    found = made.survey(**SMALL)
    with pytest.raises(OptionError, match="encoder with layers 0 of 2 heads"):
        found.place("decoder", 0, 0)
    with pytest.raises(OptionError, match="mass, entropy_share, distance"):
        found.statistic("weight")
    with pytest.raises(OptionError, match="'entropy' is no number of this survey; choose one of mass, "):
        column(found, "entropy")
    with pytest.raises(SurveyError, match=r"cross\.1\.1: roles of 0 texts"):
        replace(found, heads=tuple(row for row in found.heads if row.place != HeadPlace("cross", 0, 0)), examples=())


def test_a_number_of_every_head_stands_at_its_place():
    assert [*columns(MADE)] == ["mass", "entropy_share", "distance", "role mirror", "role mixed"]
    mass = values(MADE, "cross", "mass")
    for row in MADE.heads:
        if row.statistic == "mass":
            assert row.kind == "cross" and mass[row.layer, row.head] == row.mean
    assert np.isnan(values(MADE, "encoder", "mass")).all() and MADE.at(HeadPlace("encoder", 0, 0), "mass") is None


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
    for number in range(10):
        if (mine := place == number).any():
            apart += abs(p[mine].mean() - is_right[mine].mean()) * mine.sum() / 500
    assert apart > 0.05 and error == pytest.approx(apart, abs=1e-12)
    assert len(bins) == (counts > 0).sum() and all(each.low <= each.confidence <= each.high for each in bins)
    empty = Confidence(edges=(0.0, 1.0), counts=(4,), n_judged=(0,), sum_p=(0.0,), n_right=(0,))
    assert calibration(empty) == ([], None)


def test_sentences_have_the_numbers_of_the_survey():
    mass = values(MADE, "cross", "mass")
    layer, head = np.unravel_index(mass.argmax(), mass.shape)
    said = sentences.headline(MADE, "mass")
    assert f"layer {layer + 1} head {head + 1} of cross-attention: {mass.max():.3f} on average" in said
    most = max(row.mean for row in MADE.heads if row.statistic == "role mirror")
    assert percent_words(most, 1) in sentences.headline(MADE, "role mirror")
    read = "reverse (pre-norm, 100,000 parameters) over 1,000 texts (held-out, seed 0); 1 of 1,001 could not be read"
    assert read in sentences.survey_words(MADE)
    assert MADE.outputs is not None
    assert f"{MADE.outputs.n_exact:,} of 1,000 outputs are right" in sentences.right(MADE.outputs)


def test_the_head_that_was_moved_changed_most():
    before = MADE.at(HEAD, "mass")
    assert before is not None
    other = made.changed(MADE, HEAD, "mass", mean=before.mean + 0.1)
    found = compare_surveys(MADE, other, "mass")
    largest = found.largest
    assert largest is not None and largest.place == HEAD
    assert [*found.significant()] == [largest] and len(found.heads) == 6
    half = 1.96 * (2 * before.sd**2 / before.n) ** 0.5
    assert (largest.difference, *largest.interval) == pytest.approx((0.1, 0.1 - half, 0.1 + half), abs=1e-9)
    back = compare_surveys(other, MADE, "mass").largest
    assert back is not None and back.interval == pytest.approx((-0.1 - half, -0.1 + half), abs=1e-9)
    said = sentences.changed(found, "one", "two")
    assert "changed most in layer 2 head 1 of cross-attention" in said and "+0.100" in said and "1 of 6 heads" in said
    near = compare_surveys(MADE, made.changed(MADE, HEAD, "mass", mean=before.mean + 0.001), "mass")
    assert near.largest is None
    assert sentences.changed(near, "one", "two").startswith(
        "From one to two no head's weight on the right token differs by more"
    )


def test_shares_have_the_interval_of_the_paper():
    """Newcombe 1998, table II: 56/70 − 48/80, method 10."""
    a, b = wilson(48, 80), wilson(56, 70)
    assert difference(48 / 80, a, 56 / 70, b) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_role_that_one_of_both_lacks_has_the_share_0():
    rows = [row for row in MADE.heads if not row.statistic.startswith("role ")]
    broad = replace(MADE, heads=(*rows, *(role_share(place, "broad", 1000, 1000) for place in MADE.places)))
    found = compare_surveys(MADE, broad, "role broad")
    assert {head.difference for head in found.heads} == {1.0} and len([*found.significant()]) == len(MADE.places)


def test_models_of_other_sizes_are_not_compared():
    with pytest.raises(OptionError, match="reverse and reverse differ in their numbers of layers or heads"):
        compare_surveys(MADE, made.survey(n_heads=2), "mass")
    with pytest.raises(OptionError, match="'nope' is no number of this survey"):
        compare_surveys(MADE, MADE, "nope")
