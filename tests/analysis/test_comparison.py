"""`compare`: the difference turns its sign with the sides, a run differs from itself in nothing, absent is not zero."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import transformer_viz as tv
from tests.analysis.made_runs import run, runs
from tests.attentions import with_parts
from transformer_viz.addresses import map_address
from transformer_viz.comparison.compare import Comparison, compare
from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace

A, B = run(3, 2, 3, 5, 7), run(4, 3, 2, 7, 2)


def places(comparison: Comparison, kind: Kind) -> list[tuple[int, int]]:
    n_layers, n_heads = len(comparison.layers(kind)), comparison.n_heads(kind)
    return [(layer, head) for layer in range(n_layers) for head in range(n_heads)]


@given(runs(), runs())
def test_every_cell_is_that_of_a_minus_that_of_b_and_absent_cells_are_no_number(a: Trace, b: Trace) -> None:
    """Cell by cell, in Python."""
    comparison = compare(a, b)
    for kind in comparison.kinds:
        x, y = a.attentions[kind].weights, b.attentions[kind].weights
        for layer, head in places(comparison, kind):
            laid = comparison.one_head(map_address(kind, layer, head))
            np.testing.assert_array_equal(laid.difference, comparison.all_heads(kind).difference[layer, head])
            np.testing.assert_array_equal(laid.masked, comparison.all_heads(kind).masked[layer, head])
            assert laid.difference.shape == (max(x.shape[2], y.shape[2]), max(x.shape[3], y.shape[3]))
            for (query, key), value in np.ndenumerate(laid.difference):
                in_a = query < x.shape[2] and key < x.shape[3]
                in_b = query < y.shape[2] and key < y.shape[3]
                assert laid.present[query, key] == in_a + 2 * in_b
                if in_a and in_b:
                    assert value == x[layer, head, query, key] - y[layer, head, query, key]
                    masked = [masked_at(run, kind, layer, head, query, key) for run in (a, b)]
                    assert laid.masked[query, key] == masked[0] + 2 * masked[1]
                else:
                    assert np.isnan(value)
                    assert laid.masked[query, key] == 0


def masked_at(run: Trace, kind: Kind, layer: int, head: int, query: int, key: int) -> bool:
    masked = run.attentions[kind].mask
    return bool(masked[query, key] if masked.ndim == 2 else masked[layer, head, query, key])


def test_another_head_of_b_is_compared_where_it_is_asked_for() -> None:
    x, y = A.cross.weights, B.cross.weights
    found = compare(A, B).difference("cross.2.3", other="cross.3.1")
    np.testing.assert_array_equal(found[:2, :5], x[1, 2, :2, :5] - y[2, 0, :2, :5])
    with pytest.raises(OptionError, match=r"B has no head cross\.2\.3"):
        compare(A, B).difference("cross.2.3")


def test_masks_that_differ_are_counted_and_placed() -> None:
    reasons = np.zeros((7, 5), dtype=np.uint8)
    reasons[2, 4] = reasons[6, 0] = 1
    weights = np.full((2, 3, 7, 5), np.float32(0.2))
    open_run, closed = (
        replace(A, attentions=with_parts(A, "cross", weights=weights.copy(), reasons=array))
        for array in (np.zeros_like(reasons), reasons)
    )
    found = compare(open_run, closed).mask_difference("cross")
    assert found is not None
    assert (found.in_a_alone, found.in_b_alone, found.first, found.layer) == (0, 2, (2, 4), None)
    back = compare(closed, open_run).mask_difference("cross")
    assert back is not None
    assert (back.in_a_alone, back.in_b_alone) == (2, 0)


def test_a_mask_of_one_head_alone_is_placed_there() -> None:
    by_head = np.zeros((2, 3, 7, 5), dtype=np.uint8)
    by_head[1, 2, 3, 4] = 4
    both = replace(A, attentions=with_parts(A, "cross", reasons=np.zeros((7, 5), dtype=np.uint8)))
    found = compare(both, replace(both, attentions=with_parts(A, "cross", reasons=by_head))).mask_difference("cross")
    assert found is not None
    assert (found.layer, found.head, found.first, found.in_b_alone) == (1, 2, (3, 4), 1)


def test_what_is_no_number_in_one_run_is_infinitely_far() -> None:
    weights = np.array(A.cross.weights)
    weights[1, 0, 3, 2] = np.nan
    broken = replace(A, attentions=with_parts(A, "cross", weights=weights), mistake="negated-additive")
    found = compare(A, broken).farthest("cross")
    assert found is not None
    assert (found.layer, found.head, found.query, found.key, found.size) == (1, 0, 3, 2, -np.inf)
    assert compare(broken, broken).farthest("cross") is None
    laid = compare(A, broken).all_heads("cross")
    assert np.argwhere(laid.broken).tolist() == [[1, 0, 3, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_one_lacks_is_refused_with_the_common_ones(kind: Kind) -> None:
    others: Any = tuple(other for other in KINDS if other != kind)
    lacking = run(1, 2, 3, 5, 7, others)
    comparison = compare(A, lacking)
    assert comparison.kinds == others
    with pytest.raises(OptionError, match=f"B has no {kind} attention; both have {others[0]}, {others[1]}"):
        comparison.all_heads(kind)
    with pytest.raises(OptionError, match="is not known"):
        comparison.difference("sideways.1.1")


def test_layers_lie_upon_each_other_by_their_numbers():
    """Guards a run of chosen layers: its first row of maps is not the other's first."""
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    whole = tv.decode(checkpoint, "abcd")
    first, second = (tv.decode(checkpoint, "dcba", layers=[layer]) for layer in (0, 1))
    comparison = compare(second, whole)
    assert comparison.layers("cross") == (1,)
    expected = second.cross.weights[0] - whole.cross.weights[1]
    np.testing.assert_array_equal(comparison.all_heads("cross").difference[0], expected)
    farthest = comparison.farthest("cross")
    assert farthest is not None and farthest.layer == 1
    assert compare(first, second).kinds == ()
    with pytest.raises(OptionError, match="no layer is in both"):
        compare(first, second).all_heads("cross")
