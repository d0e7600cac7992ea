"""The sinusoid table against its formula, and where positions are counted from."""

import math

import pytest
import torch

from transformer_viz.model.config import ModelConfig
from transformer_viz.model.positions import Positions, sinusoid


@pytest.mark.parametrize("base", [100.0, 1000.0, 10000.0])
def test_sinusoid_is_the_formula_of_the_paper(base):
    n, d = 37, 14
    table = sinusoid(n, d, base)
    for position in range(n):
        for channel in range(d):
            angle = position / base ** (2 * (channel // 2) / d)
            want = math.cos(angle) if channel % 2 else math.sin(angle)
            assert float(table[position, channel]) == pytest.approx(want, abs=1e-13)


@pytest.mark.parametrize("kind", ["sinusoid", "learned", "none"])
def test_positions_are_added_from_the_first_one(kind):
    """In incremental decoding a new token stands where it is read; `test_incremental.py` compares that with the whole."""
    config = ModelConfig(
        source_vocabulary_size=4, target_vocabulary_size=4, d_model=6, n_heads=2, max_positions=13, position=kind
    )
    positions = Positions(config)
    x = torch.randn(2, 13, 6)
    whole = positions(x)
    torch.testing.assert_close(positions(x[:, :5]), whole[:, :5], atol=0, rtol=0)
    assert torch.equal(whole, x) == (kind == "none")
    if kind == "sinusoid":
        torch.testing.assert_close(whole - x, sinusoid(13, 6, 10000.0).float().expand(2, 13, 6), atol=1e-6, rtol=0)
        assert "table" not in positions.state_dict()
