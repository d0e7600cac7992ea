"""A survey as a file and as a table, and what is read off it and off two of them, beside plain loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.surveys import made
from transformer_viz import app_folders
from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import difference, wilson
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import calibration, column, columns, compare_surveys, values
from transformer_viz.surveys.result import NAME, Confidence, Survey, load_survey, role_share
from transformer_viz.surveys.workers import fingerprint

SMALL: dict[str, Any] = {"kinds": ("encoder", "cross"), "n_layers": 1, "n_heads": 2, "n": 12}
MADE = made.survey()
HEAD = HeadAddress("cross", 1, 0)


def test_nothing_is_lost(tmp_path):
    """NaN is not equal to itself, so the texts are compared too."""
    before = made.survey(outputs=None, verdict=None)
    assert Survey.from_json(before.to_json()) == before
    (tmp_path / NAME).write_text(MADE.to_json(), encoding="utf-8")
    for path in (tmp_path, tmp_path / NAME):
        again = load_survey(path)
        assert again.to_json() == MADE.to_json()
        assert (again.outputs, again.heads, again.examples) == (MADE.outputs, MADE.heads, MADE.examples)
    assert again.verdict is not None and np.isnan(again.verdict.at("L1 H1").rho.value)
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
    mass = found.at(HeadAddress("cross", 0, 1), "mass")
    assert mass is not None and row["mean"] == mass.mean and (row["low"], row["high"]) == mass.interval
    roles = frame[frame.statistic.str.startswith("role ")].groupby(["kind", "layer", "head"])["mean"].sum()
    assert (abs(roles - 1) < 1e-12).all()
    assert [*columns(MADE)] == ["mass", "entropy_share", "distance", "role mirror", "role mixed"]
    assert all(values(MADE, "cross", "mass")[row.layer, row.head] == row.mean for row in MADE.heads if row.statistic == "mass")
    assert np.isnan(values(MADE, "encoder", "mass")).all() and MADE.at(HeadAddress("encoder", 0, 0), "mass") is None


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
    with pytest.raises(OptionError, match="this survey has no decoder attention; it has encoder"):
        found.find("decoder.1.1")
    for ask in (found.roles, found.texts_of, lambda head: found.at(head, "entropy")):
        with pytest.raises(OptionError, match="this survey has no decoder attention"):
            ask("decoder.1.1")
    with pytest.raises(OptionError, match="mass, entropy_share, distance"):
        found.statistic("weight")
    with pytest.raises(OptionError, match="'entropy' is no number of this survey; choose one of mass, "):
        column(found, "entropy")
    with pytest.raises(SurveyError, match=r"cross\.1\.1: roles of 0 texts"):
        replace(found, heads=tuple(row for row in found.heads if row.place != HeadAddress("cross", 0, 0)), examples=())


def test_calibration_is_what_a_loop_over_tokens_finds():
    rng, edges = np.random.default_rng(4), tuple((np.arange(11) / 10).tolist())
    p = rng.beta(3, 1, 500)
    is_right, place = rng.random(500) < p**2, np.minimum((p * 10).astype(int), 9)
    n_judged, sum_p, n_right = (np.bincount(place, weights, minlength=10) for weights in (None, p, is_right))
    counts = {"n_judged": n_judged, "sum_p": sum_p, "n_right": n_right.astype(int), "counts": n_judged + 3}
    bins, error = calibration(Confidence(edges=edges, **{name: tuple(each.tolist()) for name, each in counts.items()}))
    bins_of_tokens = [place == number for number in range(10) if (place == number).any()]
    apart = sum(abs(p[mine].mean() - is_right[mine].mean()) * mine.sum() / 500 for mine in bins_of_tokens)
    assert apart > 0.05 and error == pytest.approx(apart, abs=1e-12)
    assert len(bins) == len(bins_of_tokens) and all(each.low <= each.confidence <= each.high for each in bins)
    assert calibration(Confidence(edges=(0.0, 1.0), counts=(4,), n_judged=(0,), sum_p=(0.0,), n_right=(0,))) == ([], None)


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


def test_a_role_that_one_of_both_lacks_has_the_share_0_and_other_sizes_are_not_compared():
    rows = [row for row in MADE.heads if not row.statistic.startswith("role ")]
    broad = replace(MADE, heads=(*rows, *(role_share(place, "broad", 1000, 1000) for place in MADE.places)))
    found = compare_surveys(MADE, broad, "role broad")
    assert {head.difference for head in found.heads} == {1.0} and len([*found.significant()]) == len(MADE.places)
    with pytest.raises(OptionError, match="reverse and reverse differ in their numbers of layers or heads"):
        compare_surveys(MADE, made.survey(n_heads=2), "mass")
    with pytest.raises(OptionError, match="'nope' is no number of this survey"):
        compare_surveys(MADE, MADE, "nope")


CHECKPOINTS = sorted(path for path in (app_folders.ROOT / "checkpoints").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=lambda path: path.name)
def test_each_checkpoint_has_a_survey_of_itself(folder):
    checkpoint, found = tv.load_checkpoint(folder.name, "cpu"), load_survey(folder / "survey")
    assert (found.model.name, found.model.fingerprint) == (folder.name, fingerprint(checkpoint))
    assert found.texts.n_read == found.texts.n > 500
    assert found.outputs is not None and found.outputs.n_known > 0
    assert found.verdict is not None and found.verdict.n_texts == 100
    assert [path.name for path in (folder / "survey").iterdir()] == [NAME]
    assert (folder / "survey" / NAME).stat().st_size < 300_000
