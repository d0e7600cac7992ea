"""What is laid beside each other: tokens, numbers and their distances, against a plain loop."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_runs import runs
from transformer_viz.comparison.align import differing_places, distances, first_difference, largest, signed_size
from transformer_viz.comparison.compare import compare
from transformer_viz.comparison.diff import diff
from transformer_viz.trace.trace import Trace

NUMBERS = st.sampled_from([0.0, 0.25, 1.0, -3.5, math.nan, math.inf, -math.inf])


def test_places_apart_count_what_one_alone_has() -> None:
    assert differing_places(("a", "b", "c"), ("a", "x")) == [1, 2]
    assert differing_places((), ("a",)) == [0]
    assert differing_places((1, None), (1,)) == [1], "an entry that is None is not one that is not there"
    assert differing_places(("a",), ("a",)) == []
    assert first_difference(("a", "b"), ("a", "x")) == 1
    assert first_difference(("a",), ("a",)) is None


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_distances_and_their_signs(pairs: list[tuple[float, float]]) -> None:
    """Number by number, and mirrored."""
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    found = distances(a, b)
    np.testing.assert_array_equal(found, distances(b, a))
    for (x, y), size in zip(pairs, found, strict=True):
        is_same = x == y or (math.isnan(x) and math.isnan(y))
        assert (size == 0) == is_same
        if not is_same:
            assert abs(signed_size(x, y)) == size
            assert signed_size(x, y) == -signed_size(y, x)
            assert math.isnan(x) or math.isnan(y) or signed_size(x, y) == y - x
    assert found[largest(found)] == max(found)
    assert largest(found)[0] == list(found).index(max(found)), "of equal ones the first"


def test_numbers_are_subtracted_in_double() -> None:
    a, b = np.array([2.0**-30], np.float32), np.array([1.0], np.float32)
    assert float(distances(a, b)[0]) == 1 - 2.0**-30


@given(runs(), runs())
def test_the_verdict_and_the_pictures_find_the_same_cell(a: Trace, b: Trace) -> None:
    """Runs of any two sizes: `diff` names the cell that `compare` calls the farthest, its size with the other sign."""
    said = {found.where.kind: found for found in diff(a, b).differences if found.where.field == "attention"}
    comparison = compare(a, b)
    assert set(said) == {kind for kind in comparison.kinds if comparison.farthest(kind)}
    for kind, found in said.items():
        assert kind is not None
        far, where = comparison.farthest(kind), found.where
        assert far is not None
        assert (where.layer, where.head, where.query, where.key) == (far.layer, far.head, far.query, far.key)
        assert (found.before, found.after, found.size) == (far.a, far.b, -far.size)
        sizes = np.abs(comparison.all_heads(kind).difference)
        assert found.count == int((sizes > 0).sum())
