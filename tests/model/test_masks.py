"""Mask reasons against a definition written cell by cell."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.model import masks

lengths = st.lists(st.integers(0, 7), min_size=1, max_size=4)
widths = st.integers(1, 7)


def padding_of(lengths: list[int], width: int) -> torch.Tensor:
    rows = [[9] * min(n, width) + [0] * (width - min(n, width)) for n in lengths]
    return masks.padding(torch.tensor(rows), 0)


@given(lengths, widths, st.integers(1, 5))
def test_padding_reasons_by_cell(lengths, n_keys, n_queries):
    """A padded key is masked for every query, padded queries included; a real key for none."""
    reasons = masks.padding_reasons(padding_of(lengths, n_keys), n_queries)
    want = [[[1 if k >= n else 0 for k in range(n_keys)] for _ in range(n_queries)] for n in lengths]
    assert reasons.dtype == torch.uint8
    assert reasons.tolist() == want
    assert masks.masked(reasons).tolist() == [[[cell > 0 for cell in row] for row in matrix] for matrix in want]


@given(lengths, widths, st.data())
def test_decoder_reasons_by_cell_and_from_any_first_row(lengths, n_keys, data):
    """Guards the triangle's diagonal, the flag combination, and rows that ignore their offset."""
    first = data.draw(st.integers(0, n_keys - 1))
    want = [[[(k >= n) * 1 + (k > q) * 2 for k in range(n_keys)] for q in range(n_keys)] for n in lengths]
    padding = padding_of(lengths, n_keys)
    assert masks.decoder_reasons(padding).tolist() == want
    assert masks.decoder_reasons(padding, first).tolist() == [matrix[first:] for matrix in want]


@given(st.integers(1, 6), widths, st.integers(0, 5))
def test_causal_reasons_by_cell(n_queries, n_keys, first):
    want = [[2 if k > first + q else 0 for k in range(n_keys)] for q in range(n_queries)]
    assert masks.causal_reasons(n_queries, n_keys, first).tolist() == want
    assert masks.future(n_queries, n_keys, first).tolist() == [[cell > 0 for cell in row] for row in want]


def test_only_the_mask_that_masks_nothing_is_known_as_such():
    nothing = masks.nothing(3, 4, torch.device("cpu"))
    assert nothing.shape == (1, 1, 3, 4)
    assert not nothing.any()
    part = nothing[..., 1:, :2].expand(5, 2, -1, -1)
    assert masks.are_nothing([nothing, part])
    for other in (nothing.clone(), nothing | True, torch.zeros(1, 1, 3, 4, dtype=torch.bool)):
        assert not masks.are_nothing([other])
        assert not masks.are_nothing([nothing, part, other])
