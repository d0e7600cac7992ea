"""A survey as a file and as a table: nothing is lost, and what does not fit together is refused by name."""

from dataclasses import replace
from typing import Any

import pytest

from tests.survey import made
from transformer_viz.analysis.survey.file import NAME, load_survey
from transformer_viz.analysis.survey.result import Survey, share
from transformer_viz.errors import OptionError, SurveyError

SMALL: dict[str, Any] = {"kinds": ("encoder", "cross"), "n_layers": 1, "n_heads": 2, "n": 12}


def test_nothing_is_lost(tmp_path):
    """NaN is not equal to itself, so the texts are compared too."""
    before = made.survey(outputs=None, verdict=None)
    assert Survey.from_json(before.to_json()) == before
    whole = made.survey()
    (tmp_path / NAME).write_text(whole.to_json(), encoding="utf-8")
    for path in (tmp_path, tmp_path / NAME):
        again = load_survey(path)
        assert again.to_json() == whole.to_json()
        assert again.outputs == whole.outputs and again.heads == whole.heads
    assert again.verdict is not None and again.verdict.at("L1 H1").rho.value != again.verdict.at("L1 H1").rho.value


def test_the_table_has_a_row_for_each_statistic_and_role():
    found = made.survey(**SMALL)
    frame = found.to_frame()
    assert list(frame)[:5] == ["kind", "layer", "head", "statistic", "n"]
    # Two statistics and two roles of each encoder head, one more of cross-attention.
    assert len(frame) == 2 * (2 + 2) + 2 * (3 + 2)
    row = frame.set_index(["kind", "layer", "head", "statistic"]).loc[("cross", 0, 1, "mass")]
    mass = found.at("cross", 0, 1).statistics["mass"]
    assert mass is not None and row["mean"] == mass.mean
    roles = frame[frame.statistic.str.startswith("role ")].groupby(["kind", "layer", "head"])["mean"].sum()
    assert (abs(roles - 1) < 1e-12).all()


def test_a_share_is_the_mean_of_zeros_and_ones():
    found = share(3, 12)
    assert (found.n, found.mean, found.min, found.max, found.counts) == (12, 0.25, 0, 1, (9, 3))
    assert found.sd == pytest.approx(0.4522670168666454)
    assert share(1, 1).sd == 0 and share(1, 1).low == share(1, 1).min == 1


def test_what_is_asked_for_and_not_there_is_named():
    found = made.survey(**SMALL)
    with pytest.raises(OptionError, match="encoder with layers 0 of 2 heads"):
        found.at("decoder", 0, 0)
    with pytest.raises(OptionError, match="mass, entropy_share, distance"):
        found.statistic("weight")


def test_what_is_made_here_is_checked_too():
    found = made.survey(**SMALL)
    with pytest.raises(SurveyError, match="3 heads; 4 by kind"):
        replace(found, heads=found.heads[:3])


def test_a_file_is_named_that_is_missing_or_no_survey(tmp_path):
    (tmp_path / NAME).write_text("[]")
    with pytest.raises(SurveyError, match=f"^{NAME} is not a survey that this program can read"):
        load_survey(tmp_path)
    with pytest.raises(SurveyError, match="There is no survey"):
        load_survey(tmp_path / "other.json")
