"""Rows times a matrix in parts are what they are as a whole."""

import pytest
import torch
import torch.nn.functional as F

from transformer_viz.model import projection


@pytest.fixture
def threads():
    """Sets how many there are, and puts the former number back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 16, 17])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("n_out", [6, 7, 512])
def test_a_matrix_in_parts_gives_the_same_product(monkeypatch, threads, n_rows, n_threads, has_bias, n_out):
    monkeypatch.setattr(projection, "_LARGE", 0)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    threads(n_threads)
    generator = torch.Generator().manual_seed(n_rows)
    weight, bias, rows = (torch.randn(*size, generator=generator).double() for size in ((n_out, 24), (n_out,), (n_rows, 24)))
    found = projection.projection(weight, bias if has_bias else None)(rows)
    assert found.shape == (n_rows, n_out)
    torch.testing.assert_close(found, F.linear(rows, weight, bias if has_bias else None), rtol=0, atol=1e-12)


def test_only_large_matrices_of_several_threads_with_mkl_are_parted(monkeypatch, threads):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    threads(4)
    large = torch.zeros(512, 512)
    assert projection._n_parts(large) == 4
    assert projection._n_parts(torch.zeros(510, 1024)) == 3
    assert projection._n_parts(torch.zeros(509, 1024)) == 1
    assert projection._n_parts(large[:, :-1]) == 1
    assert projection._n_parts(large[:256, :256].clone()) == 1
    assert projection._n_parts(large.t()) == 1
    assert projection._n_parts(large.half()) == 1
    threads(1)
    assert projection._n_parts(large) == 1
    threads(4)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert projection._n_parts(large) == 1
