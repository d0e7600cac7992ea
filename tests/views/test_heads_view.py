"""The tab Heads through AppTest."""

import json

import pytest

from tests.views.drawn import pictures, said
from transformer_viz import decode, decode_untrained, figures
from transformer_viz.analysis import alignment


def test_heads_are_graded_beside_both_baselines(start, model):
    at = start(text="abc", explore_tab="Heads")
    run = decode(model, "abc")
    want = alignment(run, decode_untrained(model, run))
    table = at.dataframe[0].value
    assert len(table) == len(want) == 3 * (1 + 2 + 2)
    for (_, row), grade in zip(table.iterrows(), want, strict=True):
        assert (row["attention"], row["layer"], row["head"], row["name"], row["rule"]) == (
            *(grade.kind, grade.layer + 1, grade.head + 1),
            *(grade.name, grade.rule),
        )
        assert grade.untrained is not None
        for value, column in (
            (grade.score, "fit"),
            (grade.mass, "right token"),
            (grade.uniform.mass, "right token, uniform"),
            (grade.untrained.hit_rate, "on top, untrained"),
            (grade.entropy, "entropy"),
            (grade.distance, "distance"),
        ):
            assert row[column] == pytest.approx(value, abs=1e-6) if value is not None else row[column] != row[column]
    drawn = json.loads(figures.grades(want, "mass").to_json())
    assert [t["text"] for t in pictures(at)[-1]["data"] if "text" in t] == [t["text"] for t in drawn["data"] if "text" in t]
    assert "of its weight is on the right token" in said(at) and "an untrained model" in said(at)
