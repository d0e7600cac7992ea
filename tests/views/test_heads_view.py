"""The tabs Heads and By length through AppTest."""

import json

import pytest

from tests.views.drawn import pictures, said
from transformer_viz import Checkpoint, accuracy_by_length, decode, figures, untrained
from transformer_viz.analysis import alignment
from transformer_viz.evaluation.result import AccuracyAtLength, AccuracyByLength
from transformer_viz.views.cache import runs
from transformer_viz.views.explore.by_length import SAMPLES, summary


def test_heads_are_graded_beside_both_baselines(start, model):
    at = start(text="abc", explore_tab="Heads")
    run = decode(model, "abc")
    want = alignment(run, untrained(model, run))
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


def test_lengths_are_measured_when_asked_for_and_once(start, model, own_folder, monkeypatch):
    calls = []

    def few(given: Checkpoint, *, samples: int, on_progress: object = None) -> AccuracyByLength:
        calls.append(samples)
        return accuracy_by_length(given, [1, 2, 35], samples=3)

    monkeypatch.setattr(runs, "accuracy_by_length", few)
    at = start(text="abc", explore_tab="Heads", heads_part="By length")
    n_before = len(pictures(at))
    assert "trained on 1 to 32" in said(at)
    assert not calls
    at.toggle(key="by_length").set_value(True).run()
    assert calls == [SAMPLES[1]]
    found = few(model, samples=3)
    assert len(pictures(at)) == n_before + 1
    assert at.dataframe[0].value["exact_match"].tolist() == [point.exact_match for point in found.points]
    assert summary(found) in said(at)
    calls.clear()
    at.run()
    assert not calls, "the second time it is remembered"
    at.selectbox(key="by_length_samples").set_value(SAMPLES[0]).run()
    assert len(pictures(at)) == n_before, "another number needs to be asked for"


def test_each_kind_of_text_has_its_share_the_worst_first(start, own_folder):
    path = own_folder / "reverse" / "config.json"
    config = json.loads(path.read_text())
    config["metrics"]["by_source"] = {"uniform": 1.0, "few": 0.25, "wo*rds": 0.5}
    path.write_text(json.dumps(config))
    at = start(text="abc", explore_tab="Heads", heads_part="By length")
    assert at.dataframe[0].value.to_numpy().tolist() == [["few", 0.25], ["wo*rds", 0.5], ["uniform", 1.0]]
    assert "on 3 kinds of text, least of all *few*: 25.0 % right" in said(at)


def test_where_it_breaks_in_words():
    def point(length: int, n_exact: int) -> AccuracyAtLength:
        counts = {"n_strings": 4, "n_exact": n_exact, "n_letters": 1}
        return AccuracyAtLength(length=length, is_trained=3 <= length <= 4, token_accuracy=0.5, head_mass=None, **counts)

    points = (point(2, 0), point(3, 4), point(4, 3), point(5, 2), point(6, 1))
    words = summary(AccuracyByLength(checkpoint="x", points=points, trained=(3, 4), samples=4, seed=0))
    for part in ("training (3–4): 7 of 8 strings right", "shorter (2): 0 of 4", "longer (5–6): 3 of 8"):
        assert part in words
    assert words.endswith("is 6.")
