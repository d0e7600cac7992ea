"""The one attention function, against torch's own."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model.attention import attend
from transformer_viz.model.blocks import MultiHeadAttention
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.tap import Site, TapName, compose
from transformer_viz.trace.recorder import Recorder

B, H, Q, K, D_K, D_V = 2, 3, 5, 11, 7, 13
CROSS = Site("cross", 0)


def identity(site: Site, name: TapName, value: Tensor) -> Tensor:
    return value


def tensors(dtype: torch.dtype = torch.float64, seed: int = 0, n_queries: int = Q) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    shapes = ((B, H, n_queries, D_K), (B, H, K, D_K), (B, H, K, D_V))
    query, key, value = (torch.randn(shape, generator=g, dtype=torch.float64).to(dtype) for shape in shapes)
    return query, key, value


def some_mask(seed: int = 1) -> Tensor:
    masked = torch.rand(B, H, Q, K, generator=torch.Generator().manual_seed(seed)) < 0.4
    masked[..., 3] = False
    return masked


@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
@pytest.mark.parametrize("with_mask", [False, True])
def test_attend_is_torchs_scaled_dot_product_attention(tap, with_mask):
    query, key, value = tensors()
    masked = some_mask() if with_mask else None
    got = attend(query, key, value, masked, causal=False, site=CROSS, tap=tap)
    want = F.scaled_dot_product_attention(query, key, value, attn_mask=None if masked is None else ~masked)
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
@pytest.mark.parametrize("with_mask", [False, True])
def test_causal_is_torchs_triangle(tap, with_mask):
    """Guards an off-by-one in the triangle (a query that does not see itself, or sees the next one)."""
    query, key, value = tensors(n_queries=K)
    padded = torch.zeros(B, 1, 1, K, dtype=torch.bool)
    padded[1, ..., 8:] = with_mask
    got = attend(query, key, value, padded if with_mask else None, causal=True, site=Site("decoder", 0), tap=tap)
    allowed = torch.ones(K, K).tril().bool() & ~padded
    want = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("with_mask", [False, True])
def test_the_last_rows_alone_are_those_of_the_whole(with_mask, n):
    """Guards a triangle that begins at the first key, and a tap that changes a bit of a step."""
    query, key, value = tensors(n_queries=K)
    padded = torch.zeros(B, 1, 1, K, dtype=torch.bool)
    padded[1, ..., 3:8] = True
    arguments: Any = (key, value, padded if with_mask else None)
    whole = attend(query, *arguments, causal=True, site=Site("decoder", 0), tap=identity)
    site = Site("decoder", 0, K - n)
    plain, tapped = (attend(query[:, :, -n:], *arguments, causal=True, site=site, tap=tap) for tap in (None, identity))
    torch.testing.assert_close(plain, whole[:, :, -n:], atol=1e-12, rtol=0)
    torch.testing.assert_close(tapped, whole[:, :, -n:], atol=1e-12, rtol=0)
    assert n > 1 or torch.equal(plain, tapped)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("causal", [False, True])
def test_fused_equals_explicit(dtype, tolerance, causal):
    query, key, value = tensors(dtype)
    arguments: dict[str, Any] = {"causal": causal, "site": Site("decoder", 0, K - Q)}
    fused = attend(query, key, value, some_mask(), **arguments)
    explicit = attend(query, key, value, some_mask(), **arguments, tap=identity)
    torch.testing.assert_close(fused, explicit, atol=tolerance, rtol=0)


def test_identity_and_recording_taps_are_bitwise_equal():
    query, key, value = tensors(torch.float32)
    arguments: dict[str, Any] = {"causal": True, "site": Site("decoder", 0, K - Q)}
    recorder: Any = Recorder(names=("scores", "mask", "weights", "heads"))
    plain = attend(query, key, value, some_mask(), **arguments, tap=identity)
    recorded = attend(query, key, value, some_mask(), **arguments, tap=recorder)
    both = attend(query, key, value, some_mask(), **arguments, tap=compose(identity, recorder))
    assert torch.equal(plain, recorded)
    assert torch.equal(plain, both)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
def test_fully_masked_rows_are_zeros_in_every_precision(dtype, tap):
    """Guards NaN (-inf everywhere), the uniform 1/K of -1e9, and -1e9 overflowing float16."""
    query, key, value = tensors(dtype)
    masked = some_mask()
    masked[0, 1, 2] = masked[1, 2, 4] = True
    output = attend(query, key, value, masked, causal=False, site=CROSS, tap=tap)
    assert output.dtype == dtype
    assert not output.isnan().any()
    empty = masked.all(-1)
    assert int(empty.sum()) == 2
    assert (output[empty] == 0).all()
    assert (output[~empty] != 0).any(-1).all()


def test_the_tap_sees_the_documented_names_shapes_and_order():
    """Guards a mask with a query axis of 1: an edit of one row would then change all of them."""
    seen: list[tuple[TapName, tuple[int, ...]]] = []
    values: dict[TapName, Tensor] = {}

    def spy(site: Site, name: TapName, value: Tensor) -> Tensor:
        assert site == CROSS
        seen.append((name, tuple(value.shape)))
        values[name] = value
        return value

    query, key, value = tensors()
    padded = torch.zeros(B, 1, 1, K, dtype=torch.bool)
    padded[1, ..., 9:] = True
    output = attend(query, key, value, padded, causal=False, site=CROSS, tap=spy)
    assert seen == [
        ("query", (B, H, Q, D_K)),
        ("key", (B, H, K, D_K)),
        ("value", (B, H, K, D_V)),
        ("scores", (B, H, Q, K)),
        ("mask", (B, 1, Q, K)),
        ("weights", (B, H, Q, K)),
        ("heads", (B, H, Q, D_V)),
    ]
    torch.testing.assert_close(
        values["scores"], torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(D_K), atol=1e-12, rtol=0
    )
    assert torch.equal(values["heads"], output)
    assert torch.equal(values["mask"].expand(B, 1, Q, K), padded.expand(B, 1, Q, K))
    attend(query, key, value, None, causal=False, site=CROSS, tap=spy)
    assert seen[7 + 4] == ("mask", (1, 1, Q, K))


def test_compose_applies_from_left_to_right():
    def add(site: Site, name: TapName, value: Tensor) -> Tensor:
        return value + 1

    def double(site: Site, name: TapName, value: Tensor) -> Tensor:
        return value * 2

    for taps, expected in (((add, double), 12), ((double, None, add), 11)):
        both = compose(*taps)
        assert both is not None and both(CROSS, "scores", torch.tensor(5.0)) == expected
    assert compose(None, add) is add and compose(None) is None


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("with_mask", [False, True])
def test_multi_head_attention_is_torchs(bias, with_mask):
    """Output and every head's weights against torch.nn.MultiheadAttention, with key padding and a causal mask."""
    d_model = H * D_K
    config = ModelConfig(
        source_vocabulary_size=4, target_vocabulary_size=4, d_model=d_model, n_heads=H, attention_bias=bias, position="none"
    )
    torch.manual_seed(3)
    ours = MultiHeadAttention(config, "decoder", 0).double().eval()
    theirs = torch.nn.MultiheadAttention(d_model, H, bias=bias, batch_first=True, dtype=torch.float64)
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter)
    state = {
        "in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
        "out_proj.weight": ours.out.weight,
    }
    if bias:
        state["in_proj_bias"] = torch.cat([ours.query.bias, ours.key.bias, ours.value.bias])
        state["out_proj.bias"] = ours.out.bias
    theirs.load_state_dict(state)
    x = torch.randn(B, K, d_model, dtype=torch.float64)
    padding = torch.zeros(B, K, dtype=torch.bool)
    padding[1, 7:] = True
    recorder: Any = Recorder(names=("weights",))
    for tap in (None, recorder):
        got = ours(x, None, padding[:, None, None] if with_mask else None, causal=with_mask, tap=tap)
        want, weights = theirs(
            x,
            x,
            x,
            key_padding_mask=padding if with_mask else None,
            attn_mask=torch.ones(K, K).triu(1).bool() if with_mask else None,
            average_attn_weights=False,
        )
        torch.testing.assert_close(got, want, atol=1e-12, rtol=0)
    torch.testing.assert_close(recorder.gathered("decoder", "weights").squeeze(1), weights, atol=1e-12, rtol=0)


def test_dropout_comes_after_the_recorded_weights():
    """Guards the well-known fault of showing weights whose rows do not sum to 1."""
    query, key, value = tensors()
    recorder: Any = Recorder(names=("weights",))
    torch.manual_seed(0)
    dropped = attend(query, key, value, None, causal=False, site=CROSS, tap=recorder, dropout=0.5)
    weights = recorder.gathered("cross", "weights").squeeze(1)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, Q, dtype=torch.float64), atol=1e-12, rtol=0)
    assert not torch.allclose(dropped, weights @ value)


@pytest.mark.parametrize("tap", [None, identity], ids=["fused", "explicit"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout_is_right_on_average(tap, causal):
    """Guards a mask that leaks, and a wrong scale."""
    n = 20_000
    torch.manual_seed(6)
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)[:, None, None]
    many = [tensor.repeat(n, 1, 1, 1) for tensor in (query, key, value, padding)]
    found = attend(*many, causal=causal, site=CROSS, tap=tap, dropout=0.25).view(n, 2, 3, 5, 4)
    wanted = attend(query, key, value, padding, causal=causal, site=CROSS)
    assert float(found.std(0).max()) > 0.1
    error = (found.mean(0) - wanted).abs() / (found.std(0) / math.sqrt(n) + 1e-12)
    assert float(error.max()) < 5.5
