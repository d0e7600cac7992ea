"""The one attention function, against torch's own."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.taps import FunctionTap
from transformer_viz.model.attention import attend
from transformer_viz.model.tap import Site, TapName, compose
from transformer_viz.trace.recorder import Recorder

B, H, Q, K, D_K, D_V = 2, 3, 5, 11, 7, 13
CROSS = Site("cross", 0)


@FunctionTap
def identity(site: Site, name: TapName, value: Tensor) -> Tensor:
    return value


def tensors(dtype: torch.dtype = torch.float64, n_queries: int = Q) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    shapes = ((B, H, n_queries, D_K), (B, H, K, D_K), (B, H, K, D_V))
    query, key, value = (torch.randn(shape, generator=g, dtype=torch.float64).to(dtype) for shape in shapes)
    return query, key, value


def some_mask(n_queries: int = Q) -> Tensor:
    masked = torch.rand(B, H, n_queries, K, generator=torch.Generator().manual_seed(1)) < 0.4
    masked[..., 0] = False
    return masked


def padding() -> Tensor:
    padded = torch.zeros(B, 1, 1, K, dtype=torch.bool)
    padded[1, ..., 3:8] = True
    return padded


@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
@pytest.mark.parametrize("mask", ["none", "padding", "cells"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_queries", [1, Q, K])
def test_attend_is_torchs_scaled_dot_product_attention(n_queries, causal, mask, tap):
    """Queries are the last of as many positions as there are keys. Guards an off-by-one in the triangle, and one that begins at
    the first key."""
    masked = {"none": None, "padding": padding(), "cells": some_mask(n_queries)}[mask]
    allowed = torch.ones(n_queries, K).tril(K - n_queries if causal else K).bool()
    allowed = allowed if masked is None else allowed & ~masked
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        query, key, value = tensors(dtype, n_queries)
        got = attend(query, key, value, masked, causal=causal, site=Site("decoder", 0, K - n_queries), tap=tap)
        want = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        torch.testing.assert_close(got, want, atol=tolerance, rtol=0)


@pytest.mark.parametrize("n_queries", [1, Q])
def test_identity_and_recording_taps_are_bitwise_equal(n_queries):
    """A step of decoding also without a tap."""
    query, key, value = tensors(torch.float32, n_queries)
    recorder: Any = Recorder(names=("scores", "mask", "weights", "heads"))
    taps = (identity, recorder, compose(identity, recorder), *((None,) if n_queries == 1 else ()))
    how: dict[str, Any] = {"causal": True, "site": Site("decoder", 0, K - n_queries)}
    first, *others = (attend(query, key, value, some_mask(n_queries), **how, tap=tap) for tap in taps)
    assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
def test_fully_masked_rows_are_zeros_in_every_precision(dtype, tap):
    """Guards NaN (-inf everywhere), the uniform 1/K of -1e9, and -1e9 overflowing float16."""
    masked = some_mask()
    masked[0, 1, 2] = masked[1, 2, 4] = True
    output = attend(*tensors(dtype), masked, causal=False, site=CROSS, tap=tap)
    assert output.dtype == dtype
    assert not output.isnan().any()
    assert torch.equal((output == 0).all(-1), masked.all(-1))


def test_the_tap_sees_the_documented_names_shapes_and_order():
    """Guards a mask with a query axis of 1: an edit of one row would then change all of them."""
    seen: dict[TapName, Tensor] = {}

    @FunctionTap
    def spy(site: Site, name: TapName, value: Tensor) -> Tensor:
        assert site == CROSS
        return seen.setdefault(name, value)

    query, key, value = tensors()
    output = attend(query, key, value, padding(), causal=False, site=CROSS, tap=spy)
    assert [(name, tuple(value.shape)) for name, value in seen.items()] == [
        ("query", (B, H, Q, D_K)),
        ("key", (B, H, K, D_K)),
        ("value", (B, H, K, D_V)),
        ("scores", (B, H, Q, K)),
        ("mask", (B, 1, Q, K)),
        ("weights", (B, H, Q, K)),
        ("heads", (B, H, Q, D_V)),
    ]
    torch.testing.assert_close(seen["scores"], torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(D_K))
    assert torch.equal(seen["heads"], output)
    assert torch.equal(seen["mask"], padding().expand(B, 1, Q, K))
    seen.clear()
    attend(query, key, value, None, causal=False, site=CROSS, tap=spy)
    assert seen["mask"].shape == (1, 1, Q, K)


def test_compose_applies_from_left_to_right():
    @FunctionTap
    def add(site: Site, name: TapName, value: Tensor) -> Tensor:
        return value + 1

    @FunctionTap
    def double(site: Site, name: TapName, value: Tensor) -> Tensor:
        return value * 2

    for taps, expected in (((add, double), 12), ((double, None, add), 11)):
        both = compose(*taps)
        assert both is not None and both(CROSS, "scores", torch.tensor(5.0)) == expected
    assert compose(None, add) is add and compose(None) is None


@pytest.mark.parametrize("is_tapped", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout_is_right_on_average(is_tapped, causal):
    """Guards a mask that leaks, a wrong scale, and the well-known fault of showing weights whose rows do not sum to 1."""
    n = 5_000
    torch.manual_seed(6)
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)[:, None, None]
    many = [tensor.repeat(n, 1, 1, 1) for tensor in (query, key, value, padding)]
    recorder: Any = Recorder(names=("weights",)) if is_tapped else None
    found = attend(*many, causal=causal, site=CROSS, tap=recorder, dropout=0.25).view(n, 2, 3, 5, 4)
    wanted = attend(query, key, value, padding, causal=causal, site=CROSS)
    assert float(found.std(0).max()) > 0.1
    error = (found.mean(0) - wanted).abs() / (found.std(0) / math.sqrt(n) + 1e-12)
    assert float(error.max()) < 5.5
    if is_tapped:
        sums = recorder.gathered("cross", "weights").sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-12, rtol=0)
