"""Planted patterns get their names, by number and by rule; what is no pattern gets none."""

import numpy as np
import pytest

from transformer_viz.analysis.grading import HeadGrade, alignment
from transformer_viz.analysis.head_names import BROAD, MARGIN, THRESHOLD, WIDTHS
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

N, T = 7, 5
"""Letters and steps: 9 source positions, so no map is square but the two of self-attention."""


def graded(run: Trace, kind: Kind) -> HeadGrade:
    return alignment(run).at(f"{kind}.1.1")


def one_head(make_run, kind: Kind, rows: np.ndarray, alignment_=None, **changes) -> HeadGrade:
    return graded(make_run(N, T, alignment_, **{kind: rows[None, None]}, **changes), kind)


def causal(keys: list[int]) -> np.ndarray:
    rows = np.zeros((T, T), dtype=np.float32)
    rows[range(T), keys] = 1
    return rows


CROSS = {
    "mirror": [7, 6, 5, 4, 3],
    "same place": [1, 2, 3, 4, 5],
    "previous": [None, 1, 2, 3, 4],
    "next": [2, 3, 4, 5, 6],
    "first": [0] * 5,
    "last": [8] * 5,
}
ENCODER = {
    "mirror": [None, 7, 6, 5, 4, 3, 2, 1, None],
    "same place": list(range(9)),
    "previous": [None, *range(8)],
    "next": [*range(1, 9), None],
    "first": [0] * 9,
    "last": [8] * 9,
}
DECODER = {"same place": [0, 1, 2, 3, 4], "previous": [0, 0, 1, 2, 3], "first": [0] * 5}


EVEN: dict[Kind, float] = {"cross": 1 / 9, "encoder": 1 / 9, "decoder": (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4}
PATTERNS = (
    [("cross", name) for name in CROSS] + [("encoder", name) for name in ENCODER] + [("decoder", name) for name in DECODER]
)


@pytest.mark.parametrize(("kind", "name"), PATTERNS)
def test_patterns(make_run, on, kind: Kind, name: str) -> None:
    """The decoder's `previous` and `first` agree at the first two rows; the first row, which has no choice, is not counted."""
    rows = causal(DECODER[name]) if kind == "decoder" else on((CROSS if kind == "cross" else ENCODER)[name], 9)
    grade = one_head(make_run, kind, rows)
    assert (grade.name, grade.score) == (name, 1.0)
    if (kind, name) not in (("encoder", "mirror"), ("encoder", "previous"), ("encoder", "next")):
        assert grade.score_uniform == pytest.approx(EVEN[kind], abs=1e-12)


def test_the_true_key_has_its_own_name_where_it_is_not_the_mirror(make_run, on) -> None:
    odd = [3, 1, 7, 2, None]
    grade = one_head(make_run, "cross", on(odd, 9), odd)
    assert (grade.name, grade.score, grade.mass) == ("right token", 1.0, 1.0)
    mirrored = CROSS["mirror"]
    assert one_head(make_run, "cross", on(mirrored, 9), mirrored).name == "mirror"


def test_a_rule_needs_half_of_the_weight_and_more_than_even_attention_has(make_run, on) -> None:
    even = np.full((T, 9), 1 / 9, dtype=np.float32)
    for share, is_named in ((THRESHOLD - 0.01, False), (THRESHOLD + 0.01, True)):
        mix = (share - 1 / 9) / (1 - 1 / 9)  # so that the pattern's key has `share` in all
        rows = (mix * on(CROSS["next"], 9) + (1 - mix) * even).astype(np.float32)
        grade = one_head(make_run, "cross", rows)
        assert (grade.name == "next") == is_named
    # With two keys uniform attention has half of the weight on each, which is no pattern.
    tiny = make_run(0, 3, cross=np.full((1, 1, 3, 2), 0.5, dtype=np.float32))
    assert graded(tiny, "cross").name == "broad"
    rows = np.tile(np.array([0.5 + MARGIN + 0.01, 0.5 - MARGIN - 0.01], dtype=np.float32), (1, 1, 3, 1))
    assert graded(make_run(0, 3, cross=rows), "cross").name == "first"


def test_a_pattern_of_few_rows_names_nothing(make_run, on) -> None:
    """One letter and five steps: only the first step has a mirrored letter."""
    rows = on([1, 0, 2, 0, 2], 3)
    run = make_run(1, 5, cross=rows[None, None])
    assert graded(run, "cross").name == "focused"


def test_the_highest_wins_and_of_equal_ones_the_first(make_run, on) -> None:
    rows = (0.6 * on(CROSS["first"], 9) + 0.4 * on(CROSS["next"], 9)).astype(np.float32)
    assert one_head(make_run, "cross", rows).name == "first"
    # A run of one letter: its mirror is its same place, and both are what the head looks at.
    rows = on([1, None], 3)
    assert graded(make_run(1, 2, cross=rows[None, None]), "cross").name == "mirror"


def test_widths(make_run, on) -> None:
    even = one_head(make_run, "cross", np.full((T, 9), 1 / 9, dtype=np.float32))
    assert even.name == "broad"
    assert even.score == pytest.approx(1, abs=1e-6)
    assert even.score_uniform == 1
    focused = one_head(make_run, "cross", on([3, 8, 1, 0, 5], 9))
    assert (focused.name, focused.score) == ("focused", 1.0)
    three = np.zeros((T, 9), dtype=np.float32)
    three[:, [1, 4, 6]] = 1 / 3
    mixed = one_head(make_run, "cross", three)
    assert mixed.name == "mixed"
    assert mixed.score == pytest.approx(1 / 3, abs=1e-6)


def test_a_head_without_weights_or_numbers_is_called_nothing(make_run) -> None:
    zeros = one_head(make_run, "cross", np.zeros((T, 9), dtype=np.float32), CROSS["mirror"])
    assert (zeros.name, zeros.score, zeros.mass, zeros.entropy, zeros.n_rows, zeros.n_left_out) == (
        *("nothing", None, None, None),
        *(0, T),
    )
    broken = one_head(make_run, "cross", np.full((T, 9), np.nan, dtype=np.float32), mistake="additive NaN")
    assert broken.name == "nothing"


def test_rows_without_numbers_do_not_spoil_the_others(make_run, on) -> None:
    rows = on(CROSS["mirror"], 9)
    rows[2] = np.nan
    grade = one_head(make_run, "cross", rows, CROSS["mirror"], mistake="additive NaN")
    assert (grade.name, grade.score, grade.mass, grade.n_left_out) == ("mirror", 1.0, 1.0, 1)


def test_the_rule_of_a_broad_head_says_its_threshold() -> None:
    assert str(BROAD) in WIDTHS["broad"]
