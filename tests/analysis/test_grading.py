"""Grades against planted heads with known answers, and against plain Python over the run's data frame."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_viz as tv
from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.grading import alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import head_mass
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END, PAD, START

MIRROR = (5, 4, 3, 2, 1, None)


def test_a_planted_head_scores_one_and_a_uniform_one_its_share(make_run, on) -> None:
    """Guards masses that count the end step, and baselines over all keys instead of the allowed ones."""
    cross = np.stack([np.full((6, 7), 1 / 7, dtype=np.float32), on(MIRROR, 7)])[None]
    reasons = np.zeros((6, 7), dtype=np.uint8)
    reasons[:, 6] = 1  # the last key is masked
    cross[0, 0] = np.where(reasons, 0, 1 / 6)
    cross[0, 1, 5] = cross[0, 0, 5]
    run = make_run(5, 6, MIRROR, cross=Attention(weights=cross, reasons=reasons))
    best, even, *others = alignment(run)
    assert (best.kind, best.layer, best.head, best.mass, best.hit_rate, best.distance) == ("cross", 0, 1, 1.0, 1.0, 0.0)
    assert best.name == "mirror"
    assert even.name == "broad"
    assert even.mass == pytest.approx(1 / 6, abs=1e-7)
    assert even.entropy == pytest.approx(math.log(6), abs=1e-6)
    assert even.entropy_share == pytest.approx(1, abs=1e-6)
    for grade in (best, even):
        assert grade.uniform.mass == grade.uniform.hit_rate == pytest.approx(1 / 6, abs=1e-12)
        assert grade.uniform.entropy == pytest.approx(math.log(6), abs=1e-12)
        assert grade.uniform.entropy_share == pytest.approx(1, abs=1e-12)
    # Row t: mean over keys 0 to 5 of |key − (5 − t)|.
    assert even.uniform.distance == pytest.approx(np.mean([[abs(k - key) for k in range(6)] for key in MIRROR[:-1]]), abs=1e-12)
    assert [grade.kind for grade in others] == ["encoder"] * 2 + ["decoder"] * 2
    assert all(grade.mass is grade.hit_rate is None for grade in others)


def test_of_equal_weights_the_lowest_key_is_the_top(make_run) -> None:
    cross = np.zeros((1, 2, 3, 5), dtype=np.float32)
    cross[0, 0, :, (1, 3)] = 0.5
    cross[0, 1, :, (3, 1)] = 0.5
    for alignment_, hits in (((1, 1, 1), 1.0), ((3, 3, 3), 0.0), ((1, 3, None), 0.5)):
        graded = alignment(make_run(3, 3, alignment_, cross=cross))
        assert {graded.at(HeadAddress("cross", 0, head)).hit_rate for head in (0, 1)} == {hits}


def test_a_run_without_right_keys_or_without_a_kind_is_no_error(make_run) -> None:
    grades = alignment(make_run(5, 3))
    assert all(grade.mass is grade.hit_rate is grade.uniform.mass is None for grade in grades)
    assert all(grade.distance is None for grade in grades.of("cross"))
    assert all(grade.distance is not None for grade in grades.of("encoder"))
    only_decoder = alignment(make_run(5, 3, encoder=None, cross=None))
    assert only_decoder.kinds == ("decoder",)
    assert alignment(make_run(5, 3, attentions={})) == ()


def test_mass_is_that_of_head_mass_and_ranks_the_heads(hello: Trace) -> None:
    grades = tv.analysis.alignment(hello)
    mass = head_mass(hello)
    assert mass is not None
    assert len(grades) == 2 * 5 + 3 * 5 + 3 * 5
    for grade in grades.of("cross"):
        assert grade.mass == pytest.approx(mass[grade.layer, grade.head], abs=1e-12)
    ranked = [grade.mass for grade in grades[:15]]
    assert ranked == sorted(mass.ravel().tolist(), reverse=True)
    assert [grade.kind for grade in grades[15:]] == ["encoder"] * 10 + ["decoder"] * 15
    frame = grades.to_frame()
    assert frame["mass"].head(15).tolist() == ranked
    assert frame["untrained_mass"].isna().all()
    assert frame[["kind", "layer", "head"]].drop_duplicates().shape[0] == len(grades)


def test_no_such_head(hello: Trace) -> None:
    with pytest.raises(OptionError, match="heads 1 to 5 in each"):
        alignment(hello).at("cross.1.6")


def test_another_run_is_no_baseline(make_run) -> None:
    run, other = make_run(5, 6, MIRROR), make_run(5, 4)
    with pytest.raises(OptionError, match="shapes"):
        alignment(run, other)
    with pytest.raises(OptionError, match="different tokens"):
        alignment(run, make_run(5, 6, MIRROR, source_tokens=(START, *"yyyyy", END)))


def random_run(data: st.DataObject) -> Trace:
    """Any sizes, any masks, any true keys; some heads with rows of zeros, some rows not numbers, padding on both sides."""
    s, t = data.draw(st.sampled_from([(5, 3), (7, 11), (11, 2), (3, 13)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    attentions: dict[Kind, Attention] = {}
    shapes: dict[Kind, tuple[int, int, int, int]] = {"encoder": (1, 3, s, s), "decoder": (2, 3, t, t), "cross": (2, 2, t, s)}
    for kind, shape in shapes.items():
        n_layers, n_heads, q, k = shape
        masked = rng.random(shape if rng.random() < 0.5 else (q, k)) < 0.3
        raw = np.where(masked, 0, rng.random(shape) ** 6)
        raw[rng.random((n_layers, n_heads, q)) < 0.1] = 0
        found = (raw / np.where(raw.sum(-1) > 0, raw.sum(-1), 1)[..., None]).astype(np.float32)
        found[rng.random((n_layers, n_heads, q)) < 0.1] = np.nan
        attentions[kind] = Attention(weights=found, reasons=masked.astype(np.uint8))
    n_padded = int(rng.integers(0, 2))
    output = [*"abcdefghijklm"[: t - 1 - n_padded], END, *[PAD] * n_padded]
    return Trace(
        source="x",
        text="y",
        source_tokens=(START, *"x" * (s - 3), END, PAD),
        target_tokens=(START, *output[: t - 1 - n_padded], *[PAD] * n_padded),
        output_tokens=tuple(output),
        steps=tuple(Step(token=o, probability=0.5, log_probability=-0.7, rank=0, candidates=()) for o in output),
        attentions=attentions,
        finished="end",
        alignment=tuple(int(k) if k >= 0 else None for k in rng.integers(-1, s, t)),
        source_letters=(None, *range(s - 3), None, None),
        mistake="a mistake, or there could be no NaN",
    )


BY_HAND = ("mass", "hit_rate", "entropy", "entropy_share", "distance")


def by_hand(run: Trace, kind: str, layer: int, head: int) -> dict[str, Any]:
    """Every measure and its even baseline with loops over the rows of the data frame."""
    frame = run.to_frame()
    frame = frame[(frame.kind == kind) & (frame.layer == layer) & (frame["head"] == head)]
    sums: dict[str, list[float]] = {f"{b}{m}": [] for b in ("", "uniform_") for m in BY_HAND}
    n_rows = 0
    for query, row in frame.groupby("query"):
        query = int(str(query))
        weights = dict(zip(row["key"].tolist(), map(float, row.weight), strict=True))
        allowed = [int(k) for k in row[~row.masked]["key"]]
        total = sum(weights.values())
        if row["query_token"].iloc[0] == PAD or not allowed or math.isnan(total) or total == 0:
            continue
        n_rows += 1
        for prefix, used in (("", weights), ("uniform_", {k: 1 / len(allowed) for k in allowed})):
            entropy = -sum(w * math.log(w) for w in used.values() if w > 0)
            sums[f"{prefix}entropy"].append(entropy)
            if len(allowed) > 1:
                sums[f"{prefix}entropy_share"].append(entropy / math.log(len(allowed)))
            true = run.alignment[query] if kind == "cross" else query
            if true is None:
                continue
            sums[f"{prefix}distance"].append(sum(w * abs(k - true) for k, w in used.items()))
            if kind == "cross":
                sums[f"{prefix}mass"].append(used.get(true, 0.0))
                top = min(k for k, w in used.items() if w == max(used.values()))
                sums[f"{prefix}hit_rate"].append(float(top == true) if prefix == "" else used.get(true, 0.0))
    return {"n_rows": n_rows, **{name: sum(found) / len(found) if found else None for name, found in sums.items()}}


@settings(max_examples=8)
@given(st.data())
def test_all_grades_are_those_of_plain_python(data: st.DataObject) -> None:
    run = random_run(data)
    grades = alignment(run)
    for grade in grades:
        want = by_hand(run, grade.kind, grade.layer, grade.head)
        assert grade.n_rows == want["n_rows"]
        assert grade.n_rows + grade.n_left_out == len(run.attentions[grade.kind].queries)
        for name in BY_HAND:
            for prefix, measures in (("", grade), ("uniform_", grade.uniform)):
                value, wanted = getattr(measures, name), want[prefix + name]
                assert (value is None) == (wanted is None), (grade.kind, prefix + name)
                if value is not None:
                    assert value == pytest.approx(wanted, abs=1e-9), (grade.kind, prefix + name)
        assert (grade.name == "nothing") == (grade.score is None)


@settings(max_examples=20)
@given(st.data())
def test_every_measure_keeps_its_promises(data: st.DataObject) -> None:
    """The contract of a file in `analysis/measures/`: a finite number or none a head, a share between 0 and 1, no warning."""
    for grade in alignment(random_run(data)):
        assert list(grade.measures) == list(grade.uniform.measures) == list(MEASURES)
        for name, measure in MEASURES.items():
            for of, value in (("run", grade.measures[name]), ("uniform", grade.uniform.measures[name])):
                assert value is None or math.isfinite(value), (name, of)
                is_possible = value is None or not measure.is_share or -1e-9 <= value <= 1 + 1e-9
                assert is_possible, f"{name} of {of} is no share: {value}"
            if measure.of_uniform is not None and grade.uniform.measures[name] is not None:
                assert grade.uniform.measures[name] == pytest.approx(measure.of_uniform), name


def test_padding_is_what_comes_after_the_end_and_a_first_pad_is_a_token(make_run) -> None:
    """Some models begin with `<pad>`, and an untrained one writes it."""
    output = ("a", PAD, "b", END, PAD)
    steps = tuple(Step(token=o, probability=0.5, log_probability=-0.7, rank=0, candidates=()) for o in output)
    run = make_run(3, 5, output_tokens=output, steps=steps, target_tokens=(PAD, "a", PAD, "b", PAD))
    assert {grade.n_left_out for grade in alignment(run) if grade.kind != "encoder"} == {1}
