"""A survey as a file and as a table: nothing is lost, and what does not fit together is refused by name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.survey import made
from transformer_viz.analysis.survey.file import NAME, load_survey
from transformer_viz.analysis.survey.result import Survey, share
from transformer_viz.errors import OptionError, SurveyError

LONG = "x" * 2001
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


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("format",), 2, "reads format 1; update"),
        (("format",), True, "reads format 1"),
        (("model", "name"), 7, r"the survey.model.name is 7; text"),
        (("model", "name"), LONG, "text of at most 2,000"),
        (("model", "parameters"), -1, "-1 parameters"),
        (("texts", "n"), 12, "12 were read and 1 failed"),
        (("texts", "failed", 0, "line"), 1.5, "a whole number is needed"),
        (("texts", "failed", 0, "line"), None, "a whole number is needed"),
        (("extra",), 1, "'extra', which does not belong"),
        (("kinds", "sideways"), {"layers": [0], "n_heads": 1}, "one of encoder, decoder, cross"),
        (("kinds", "cross", "layers"), [0, 0], "ascending numbers"),
        (("kinds", "cross", "n_heads"), 3, "4 heads; 5 by kind"),
        (("heads", 0, "head"), 5, "heads; 4 by kind, layer and head"),
        (("heads", 0, "roles"), {"mirror": 3}, "roles of 3 texts"),
        (("heads", 0, "roles"), {"<b>": 12}, "<b> is no role"),
        (("heads", 0, "statistics", "mass"), {"n": 1}, "lacks 'mean'"),
        (("heads", 0, "statistics", "distance", "mean"), 99, "not between"),
        (("heads", 0, "statistics", "distance", "counts", 0), -1, "3 that hold all"),
        (("heads", 0, "by"), "mass", "no text has .mass."),
        (("heads", 3, "by"), None, "highest has 3 texts by None"),
        (("heads", 3, "highest", 0, "line"), 10**20, "a whole number"),
        (("statistics", 0, "edges"), [0, 1, 1], "that ascend"),
        (("agreement", "cross", 0), [1.0], "rows of 2 numbers"),
        (("agreement", "cross", 0, 0), 1.5, "no share"),
        (("agreement", "decoder"), [[1.0]], "for 0 heads"),
        (("outputs", "n_exact"), 0, "adds up to"),
        (("outputs", "bleu"), 101, "from 0 to 100"),
        (("outputs", "confidence", "n_right", 0), 10**6, "more tokens are right"),
        (("outputs", "worst", 0, "confidence"), 1.5, "no probability"),
        (("verdict", "maps", 1, "top", "value"), 1.5, "not possible"),
        (("verdict", "n_texts"), 0, "0 texts of 12"),
        (("options", "seed"), {"a": 1}, "a list of these"),
    ],
)
def test_what_does_not_fit_is_refused(path, value, words):
    found: Any = json.loads(made.survey(**SMALL).to_json())
    at = found
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    with pytest.raises(SurveyError, match=words):
        Survey.from_json(json.dumps(found))


def test_what_is_made_here_is_checked_too():
    found = made.survey(**SMALL)
    with pytest.raises(SurveyError, match="3 heads; 4 by kind"):
        replace(found, heads=found.heads[:3])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "NaN", '{"format": 1, "format": 1}', b"\xff", "[" * 100000])
def test_what_is_no_survey_is_refused(text, tmp_path):
    with pytest.raises(SurveyError):
        Survey.from_json(text)
    (tmp_path / NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SurveyError, match=f"^{NAME} is not a survey that this program can read"):
        load_survey(tmp_path)
    with pytest.raises(SurveyError, match="There is no survey"):
        load_survey(tmp_path / "other.json")
