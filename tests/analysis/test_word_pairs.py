"""Words of two runs upon each other: against every possible answer, and the maps against plain loops."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_runs import run
from transformer_viz.analysis.word_pooling import UNIT
from transformer_viz.analysis.word_starts import is_special
from transformer_viz.comparison.compare import compare
from transformer_viz.comparison.word_pairs import Pair, by_position, by_text
from transformer_viz.trace.trace import Trace

WORDS = st.lists(st.sampled_from(["the", "The", "house", "is", "[CLS]", "</s>"]), max_size=5)


def worth(pairs: Sequence[Pair], a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many pairs are of equal words, and how many of others that may stand for each other."""
    both = [(a[i], b[k]) for i, k in pairs if i is not None and k is not None]
    n_equal = sum(one.lower() == other.lower() for one, other in both)
    return n_equal, sum(is_special(one) == is_special(other) for one, other in both)


def every_answer(n_a: int, n_b: int) -> list[tuple[Pair, ...]]:
    """All ways to lay lists of these lengths upon each other in their order."""

    @cache
    def rest(i: int, k: int) -> list[tuple[Pair, ...]]:
        if i == n_a and k == n_b:
            return [()]
        steps = [(1, 1)] * (i < n_a and k < n_b) + [(1, 0)] * (i < n_a) + [(0, 1)] * (k < n_b)
        return [
            ((i if down else None, k if right else None), *more) for down, right in steps for more in rest(i + down, k + right)
        ]

    return rest(0, 0)


@given(WORDS, WORDS)
def test_no_other_order_has_more_equal_words_nor_more_pairs(a: list[str], b: list[str]) -> None:
    pairs = by_text(a, b)
    assert [i for i, _ in pairs if i is not None] == [*range(len(a))], "each place of A once and in order"
    assert [k for _, k in pairs if k is not None] == [*range(len(b))]
    assert worth(pairs, a, b) == max(worth(other, a, b) for other in every_answer(len(a), len(b)))
    assert by_text(b, a) == tuple((k, i) for i, k in pairs)


def test_a_frame_shifts_nothing_and_a_word_stands_for_another() -> None:
    a, b = "The house is small".split(), "[CLS] the house was very small [SEP]".split()
    assert by_text(a, b)[:3] == ((None, 0), (0, 1), (1, 2))
    assert by_text(a, b)[-2:] == ((3, 5), (None, 6))
    assert worth(by_text(a, b), a, b) == (3, 4), "is upon was, or upon very"
    assert by_text(a, a) == by_position(4, 4)
    assert by_position(1, 3) == ((0, 0), (None, 1), (None, 2))


def worded(seed: int, n_source: int, n_target: int) -> Trace:
    """A run whose tokens count as words."""
    made = run(seed, 2, 2, n_source, n_target)
    return replace(made, made_by={**made.made_by, "unit": UNIT})


SIZES = st.tuples(st.integers(0, 99), st.integers(1, 6), st.integers(1, 6))


@given(SIZES, SIZES)
def test_every_cell_is_that_of_its_words(a_sizes: tuple[int, int, int], b_sizes: tuple[int, int, int]) -> None:
    """Cell by cell, in Python."""
    a, b = worded(*a_sizes), worded(*b_sizes)
    comparison = compare(a, b)
    assert comparison.is_by_text and not compare(a, replace(b, made_by={})).is_by_text
    for kind in comparison.kinds:
        x, y = comparison.weights(kind)
        rows, columns = comparison.pairs(kind)
        laid = comparison.all_heads(kind)
        most = 0.0
        for (layer, head, row, column), value in np.ndenumerate(laid.difference):
            (i, k), (u, v) = rows[row], columns[column]
            in_a, in_b = i is not None and u is not None, k is not None and v is not None
            assert laid.present[row, column] == in_a + 2 * in_b
            if in_a and in_b:
                assert value == x[layer, head, i, u] - y[layer, head, k, v]
                most = max(most, abs(float(x[layer, head, i, u]) - float(y[layer, head, k, v])))
            else:
                assert np.isnan(value)
        found = comparison.farthest(kind)
        assert (found.size if found else 0) == pytest.approx(0 if found is None else most * np.sign(found.size))
        if found is None:
            assert most == 0
            continue
        assert float(x[found.layer, found.head, found.query, found.key]) == found.a
        assert float(y[found.layer, found.head, *(found.in_b or (found.query, found.key))]) == found.b
        np.testing.assert_array_equal(laid.difference, -np.array(compare(b, a).all_heads(kind).difference))
        assert comparison.by_head(kind).max() == pytest.approx(most)


def test_where_masks_differ_is_counted_among_the_words_that_both_have() -> None:
    a, b = worded(1, 3, 5), worded(3, 4, 6)
    comparison = compare(a, b)
    rows, columns = comparison.pairs("decoder")
    masks = [np.broadcast_to(each > 0, (2, 2, *each.shape[-2:])) for each in (a.decoder.reasons, b.decoder.reasons)]
    cells = [(i, u, k, v) for i, k in rows for u, v in columns if None not in (i, u, k, v)]
    by_head = max(each.ndim for each in (a.decoder.reasons, b.decoder.reasons)) > 2
    heads = [(layer, head) for layer in range(2) for head in range(2)] if by_head else [(0, 0)]
    apart = [(masks[0][*at, i, u], masks[1][*at, k, v]) for at in heads for i, u, k, v in cells]
    found = comparison.mask_difference("decoder")
    assert found is not None
    assert found.in_a_alone == sum(x and not y for x, y in apart)
    assert found.in_b_alone == sum(y and not x for x, y in apart)
