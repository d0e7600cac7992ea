"""Mask reasons against a definition written cell by cell."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.model import masks


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(1, 7), st.integers(1, 5), st.data())
def test_reasons_by_cell_and_from_any_first_row(lengths, n_keys, n_queries, data):
    """A padded key is masked for every query, padded queries included. Guards the triangle's diagonal, the combination of both
    reasons, and rows that ignore their offset."""
    first = data.draw(st.integers(0, n_keys - 1))
    padding = torch.tensor([[k >= n for k in range(n_keys)] for n in lengths])
    behind = [[[1 if k >= n else 0 for k in range(n_keys)] for _ in range(n_queries)] for n in lengths]
    assert masks.padding_reasons(padding, n_queries).dtype == torch.uint8
    assert masks.padding_reasons(padding, n_queries).tolist() == behind
    assert (masks.padding_reasons(padding, n_queries) > 0).tolist() == [
        [[cell > 0 for cell in row] for row in matrix] for matrix in behind
    ]
    both = [[[(k >= n) * 1 + (k > q) * 2 for k in range(n_keys)] for q in range(n_keys)] for n in lengths]
    assert masks.decoder_reasons(padding).tolist() == both
    ahead = [[k > first + q for k in range(n_keys)] for q in range(n_queries)]
    assert masks.future(n_queries, n_keys, first).tolist() == ahead
