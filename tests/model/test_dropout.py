"""Our dropout: how many values go, which, and what becomes of the others and of the gradient."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.model import dropout as module
from transformer_viz.model.attention import attend
from transformer_viz.model.dropout import Dropout, dropout
from transformer_viz.model.tap import Site, TapName

MANY = 400_000


@pytest.mark.parametrize("probability", [2**-16, 0.001, 0.1, 0.25, 0.5, 0.9, 0.999])
def test_as_many_are_dropped_as_asked_for(probability):
    """Within five standard deviations of the binomial distribution."""
    torch.manual_seed(1)
    n = int((dropout(torch.ones(MANY), probability) == 0).sum())
    assert abs(n - MANY * probability) <= 5 * math.sqrt(MANY * probability * (1 - probability)) + MANY * 2**-17


SHAPES = st.lists(st.integers(0, 5), max_size=4)
TYPES = st.sampled_from([torch.float32, torch.float64])


@given(SHAPES, st.floats(0, 1, exclude_max=True), TYPES)
def test_what_stays_is_scaled_so_that_the_mean_stays(shape, probability, dtype):
    """Every size, also one that is no multiple of what a draw decides upon, and none at all."""
    x = torch.randn(shape, dtype=dtype).transpose(0, -1) if shape else torch.randn((), dtype=dtype)
    y = dropout(x, probability)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    n_dropped = min(round(probability * 65536), 65535)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * 65536 / (65536 - n_dropped))
    if n_dropped == 0:
        assert torch.equal(x, y)


def test_the_gradient_passes_where_the_value_did():
    torch.manual_seed(2)
    x = torch.ones(1001, requires_grad=True)
    y = dropout(x, 0.3)
    y.backward(torch.full_like(x, 2.0))
    assert x.grad is not None
    torch.testing.assert_close(x.grad, 2 * y.detach())
    assert 0 < int((y == 0).sum()) < 1001


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 8])
def test_no_value_says_anything_about_its_neighbour(apart):
    """Four neighbours are decided upon by the bits of one draw."""
    torch.manual_seed(3)
    gone = (dropout(torch.ones(MANY), 0.3) == 0).float()
    both = float((gone[apart:] * gone[:-apart]).sum())
    assert abs(both - MANY * 0.09) < 5 * math.sqrt(MANY * 0.09 * 0.91) + MANY * 2**-16


def test_every_bit_of_a_draw_is_a_coin():
    torch.manual_seed(4)
    draws = module._draws(MANY).to(torch.int32) + 2**15
    assert 0 <= int(draws.min()) < int(draws.max()) < 2**16
    for bit in range(16):
        ones = int((draws >> bit & 1).sum())
        assert abs(ones - MANY / 2) < 5 * math.sqrt(MANY) / 2


def test_the_seed_decides():
    def drawn(seed):
        torch.manual_seed(seed)
        return dropout(torch.ones(999), 0.5)

    assert torch.equal(drawn(5), drawn(5))
    assert not torch.equal(drawn(5), drawn(6))


def test_the_module_drops_in_train_mode_only():
    drop, x = Dropout(0.5), torch.ones(100)
    assert not torch.equal(drop(x), x)
    assert torch.equal(drop.eval()(x), x)
    assert "0.5" in str(drop)


def test_another_device_uses_its_own_kernel():
    x = torch.empty(3, 4, device="meta", dtype=torch.bfloat16)
    y = dropout(x, 0.5)
    assert (y.device.type, y.shape, y.dtype) == ("meta", x.shape, x.dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_drops_weights_and_is_right_on_average(causal, masked):
    """The mean over many draws is attention without dropout: a mask that leaks, or a scale that is wrong, would show."""
    torch.manual_seed(6)
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)[:, None, None] if masked else None
    site = Site("decoder" if causal else "cross", 0)
    many = [torch.cat([t] * 20_000) for t in (query, key, value)]
    everywhere = None if padding is None else torch.cat([padding] * 20_000)
    found = attend(*many, everywhere, causal=causal, site=site, dropout=0.25).view(20_000, 2, 3, 5, 4)
    wanted = attend(query, key, value, padding, causal=causal, site=site)
    assert float(found.std(0).max()) > 0.1
    error = (found.mean(0) - wanted).abs() / (found.std(0) / math.sqrt(20_000) + 1e-12)
    assert float(error.max()) < 5.5


def test_attention_drops_the_same_with_a_tap_and_without():
    torch.manual_seed(7)
    query, key, value = (torch.randn(2, 3, 5, 4) for _ in range(3))

    def seen(site: Site, name: TapName, value: torch.Tensor) -> torch.Tensor:
        return value

    outputs = []
    for tap in (None, seen):
        torch.manual_seed(8)
        outputs.append(attend(query, key, value, None, causal=True, site=Site("decoder", 0), tap=tap, dropout=0.4))
    assert torch.equal(*outputs)
