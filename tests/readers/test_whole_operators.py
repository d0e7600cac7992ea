"""Composed operators of a module are seen whole, and what is seen and returned is what it is when they are taken apart."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from transformer_viz.readers.modules.operators import Softmax, is_parameter, without_fused_kernels
from transformer_viz.readers.modules.passes import Pass, Passes

WIDTH = 6


class Calls(nn.Module):
    """A module with one linear layer whose forward is a function of it and of hidden states (2, 5, width)."""

    def __init__(self, function: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.function, self.n_runs = nn.Linear(WIDTH, WIDTH), function, 0

    def forward(self, x: Tensor) -> Any:
        self.n_runs += 1
        return self.function(self, x)


def hidden_states() -> Tensor:
    return torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(2))


def seen(function: Callable[[Any, Tensor], Any], **options: Any) -> Pass:
    """A pass; its output is that of the module that nobody sees, to the last bit."""
    model, x = Calls(function).eval(), hidden_states()
    with torch.no_grad(), without_fused_kernels():
        want = model(x)
    found = Passes(model, model).run(x, **options)
    if "changes" not in options:
        torch.testing.assert_close(found.returned, want, rtol=0, atol=0)
    return found


def attend(y: Tensor) -> Tensor:
    return (y @ y.mT).softmax(-1) @ y


# torch's own attention


MASKS: dict[str, Tensor | None] = {
    "none": None,
    "bool": torch.rand(4, 7, generator=torch.Generator().manual_seed(3)) < 0.6,
    "a row without keys": torch.tensor([[True] * 7, [False] * 7, [True] * 7, [False, *[True] * 6]]),
    "nothing hidden": torch.ones(4, 7, dtype=torch.bool),
    "of keys": torch.tensor([[[[True] * 5 + [False] * 2]]]).expand(2, 1, 1, 7),
    "low numbers": torch.full((4, 7), -1e9).triu(2),
    "a bias": torch.linspace(-2, 2, 28).view(4, 7),
    "a bias with -inf": torch.linspace(-2, 2, 28).view(4, 7) + torch.full((4, 7), -math.inf).triu(3),
}


def independent(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Any:
    """Scores before the mask, what is hidden, weights and output in float64, weight by weight."""
    q, k, v = (each.double() for each in (q, k, v))
    if k.shape[1] != q.shape[1]:
        k, v = (each[:, [i * k.shape[1] // q.shape[1] for i in range(q.shape[1])]] for each in (k, v))
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    hidden, bias = torch.zeros_like(scores, dtype=torch.bool), torch.zeros_like(scores)
    if is_causal:
        hidden = torch.arange(k.shape[-2]) > torch.arange(q.shape[-2])[:, None]
    elif mask is not None and mask.dtype == torch.bool:
        hidden = ~mask
    elif mask is not None:
        hidden = mask <= -1e9
        bias = mask.double().masked_fill(hidden, 0)
    hidden = hidden.expand(scores.shape)
    exponents = torch.where(hidden, 0.0, (scores + bias).exp())
    weights = exponents / exponents.sum(-1, keepdim=True).clamp(min=1e-300)
    return scores + bias, hidden, weights, (weights[..., None] * v[..., None, :, :]).sum(-2)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [torch.double, torch.float, torch.bfloat16, torch.half])
def test_every_argument_of_torchs_attention(mask, dtype):
    torch.manual_seed(4)
    tolerance = {torch.double: 1e-12, torch.float: 2e-6, torch.bfloat16: 0.02, torch.half: 0.002}[dtype]
    for n_heads, scale, is_causal in itertools.product((4, 2), (None, 0.3, -0.4), (False, True)):
        given = MASKS[mask]
        if is_causal and given is not None:
            continue
        q, k, v = (torch.randn(2, heads, n, width) for heads, n, width in ((4, 4, 6), (n_heads, 7, 6), (n_heads, 7, 3)))
        q, k, v = (each.to(dtype) for each in (q, k, v))
        if given is not None and given.is_floating_point():
            given = given.to(dtype)
        options: dict[str, Any] = {"is_causal": is_causal, "scale": scale, "enable_gqa": n_heads == 2}
        found = seen(lambda _, x, own=(q, k, v, given), rest=options: F.scaled_dot_product_attention(*own, **rest))
        (softmax,) = found.seen.softmaxes
        scores, hidden, weights, output = independent(q, k, v, given, is_causal, scale)
        case, shape = str((n_heads, scale, is_causal)), scores.shape
        assert torch.allclose(softmax.weights.double().view(shape), weights, rtol=0, atol=tolerance), case
        assert softmax.applied is not None and torch.equal(softmax.applied, softmax.weights), case
        assert softmax.before_mask is not None and softmax.scores is not None and softmax.is_traced, case
        assert torch.allclose(softmax.before_mask.double().view(shape), scores, rtol=0, atol=10 * tolerance), case
        assert torch.equal(softmax.masked.view(shape), hidden), case
        assert bool((softmax.scores.view(shape) <= -1e4)[hidden].all()), case
        assert torch.allclose(found.returned.double(), output, rtol=0, atol=10 * tolerance), case


@pytest.mark.parametrize("shape", [(4, WIDTH), (3, 4, WIDTH), (2, 3, 4, WIDTH), (2, 1, 3, 4, WIDTH)])
def test_torchs_attention_over_any_number_of_axes(shape):
    torch.manual_seed(5)
    q, k, v = (torch.randn(shape) for _ in range(3))
    found = seen(lambda _, x: F.scaled_dot_product_attention(q, k, v))
    (softmax,) = found.seen.softmaxes
    assert softmax.shape == (*shape[:-1], 4) and softmax.n_free == 4
    assert torch.equal(found.returned, torch.matmul(softmax.weights, v))


def test_values_that_are_expanded_are_those_of_each_sentence():
    """A step that is not whole: torch makes the shapes alike."""
    q, k, v = torch.randn(2, 3, 4, 6), torch.randn(1, 3, 7, 6), torch.randn(1, 3, 7, 5)
    (softmax,) = seen(lambda _, x: F.scaled_dot_product_attention(q, k, v)).seen.softmaxes
    assert torch.allclose(softmax.weights.view(2, 3, 4, 7), independent(q, k, v, None, False, None)[2].float(), atol=1e-6)


def test_weights_that_were_dropped_are_those_that_are_applied():
    def attention(_: Any, x: Tensor) -> Tensor:
        torch.manual_seed(6)
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    found = seen(attention)
    (softmax,) = found.seen.softmaxes
    assert softmax.applied is not None
    dropped = softmax.applied == 0
    assert dropped.any() and not dropped.all() and not (softmax.weights == 0).any()
    assert torch.equal(softmax.applied, torch.where(dropped, 0.0, 2 * softmax.weights))
    assert torch.equal(found.returned, softmax.applied @ hidden_states())


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16])
def test_weights_and_heads_of_torchs_attention_are_changed(dtype):
    class Changes:
        def weights(self, softmax: Softmax) -> Tensor:
            assert softmax.applied is not None
            return torch.full_like(softmax.applied, 0.5)

        def heads(self, softmax: Softmax, heads: Tensor) -> Tensor:
            return heads + 3

    v = hidden_states().to(dtype)
    found = seen(lambda _, x: F.scaled_dot_product_attention(v, v, v), changes=Changes())
    want = (v.float().sum(1, keepdim=True) * 0.5 + 3).expand(2, 5, WIDTH)
    assert found.returned.dtype == dtype and torch.allclose(found.returned, want.to(dtype), atol=1e-5)


# Linear layers


def test_a_linear_layer_that_is_given_weights_applies_them():
    """Weights as what it multiplies, and as its own matrix."""
    values = torch.randn(WIDTH, 5)

    def both(_: Any, x: Tensor) -> Any:
        weights = (x @ x.mT).softmax(-1)
        return F.linear(weights, values), F.linear(x[0].T, (x[0] @ x[0].T).softmax(-1))

    found = seen(both)
    first, second = found.seen.softmaxes
    for softmax, queries in ((first, 10), (second, 5)):
        assert softmax.applied is not None and torch.equal(softmax.applied, softmax.weights) and not softmax.fault
        assert softmax.n_free in (queries, 5)


def test_scores_of_a_linear_layer_are_followed_back():
    """Additive attention: one number for each pair, masked, then a softmax."""
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    score = nn.Linear(WIDTH, 1)

    def additive(model: Any, x: Tensor) -> Tensor:
        pairs = torch.tanh(model.linear(x)[:, :, None] + x[:, None])
        return score(pairs).squeeze(-1).masked_fill(future, -1e9).softmax(-1) @ x

    found = seen(additive)
    (softmax,) = found.seen.softmaxes
    assert softmax.is_traced and softmax.before_mask is not None
    assert torch.equal(softmax.masked, future.expand(2, 5, 5))
    model, x = Calls(additive), hidden_states()
    want = score(torch.tanh(model.linear(x)[:, :, None] + x[:, None])).squeeze(-1)
    assert torch.allclose(softmax.before_mask, want, atol=1e-6)


@pytest.mark.parametrize("name", ["type_as", "expand_as", "view_as", "to"])
def test_a_mask_that_is_made_like_the_scores_is_none_of_them(name):
    future = torch.ones(2, 5, 5).triu(1)

    def masked(model: Any, x: Tensor) -> Tensor:
        scores = F.linear(x, x[0])
        return (scores + getattr(future, name)(scores) * -1e9).softmax(-1) @ x

    (softmax,) = seen(masked).seen.softmaxes
    assert torch.equal(softmax.masked, future.bool())
    x = hidden_states()
    assert softmax.before_mask is not None and torch.equal(softmax.before_mask, F.linear(x, x[0]))


def test_weights_that_come_from_no_softmax_are_found_in_a_linear_layer_too():
    def thresholds(_: Any, x: Tensor) -> Tensor:
        weights = (x[0] @ x[0].T).relu() + 0.1
        return F.linear(weights / weights.sum(-1, keepdim=True), x[0].T)

    (softmax,) = seen(thresholds, is_searching=True).seen.softmaxes
    assert softmax.fault and softmax.scores is None


# What a module may do in its forward


def test_what_a_module_keeps_can_be_trained_with():
    """A rotary table, a view of a parameter: no tensor of a pass is one of inference."""
    kept: dict[str, Tensor] = {}

    def caching(model: Any, x: Tensor) -> Tensor:
        if not kept:
            kept["table"] = torch.arange(5.0)[:, None].reshape(1, 5, 1).contiguous().to(x.dtype)
            kept["hidden"] = model.linear(x)
            kept["view"] = model.linear.weight.unflatten(0, (2, 3)).flatten(0, 1)
        return attend(model.linear(x) * kept["table"] * kept["hidden"])

    model, x = Calls(caching), hidden_states()
    Passes(model, model).run(x)
    assert not any(each.is_inference() or each.grad_fn for each in kept.values())
    assert is_parameter(kept["view"]) and kept["view"].data_ptr() == model.linear.weight.data_ptr()
    model(x).sum().backward()
    assert model.linear.weight.grad is not None and model.linear.weight.grad.abs().sum() > 0
    kept["table"].mul_(2)
    assert Calls(caching)(x).requires_grad


def by_gradients(model: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = model.linear(x).detach().requires_grad_()
        (slope,) = torch.autograd.grad(y.view(2, -1).sin().sum(), y)
    return attend(y.detach() + slope)


def by_grad_mode(model: Any, x: Tensor) -> Tensor:
    """Nothing fails without autograd, and the output is another."""
    with torch.enable_grad():
        y = model.linear(x)
    return attend(y.detach() * (2 if y.requires_grad else 1))


def by_functional_gradients(model: Any, x: Tensor) -> Tensor:
    return attend(model.linear(x) + torch.func.grad(lambda y: y.sin().sum())(x))


def by_derivatives(model: Any, x: Tensor) -> Tensor:
    with forward_ad.dual_level():
        slope = forward_ad.unpack_dual(forward_ad.make_dual(x, torch.ones_like(x)).sin()).tangent
    return attend(model.linear(x) + slope)


def by_a_map(model: Any, x: Tensor) -> Tensor:
    return torch.func.vmap(lambda y: F.scaled_dot_product_attention(model.linear(y), y, y))(x)


def by_autocast(_: Any, x: Tensor) -> Tensor:
    """The product within `einsum` is cast, and `einsum` itself is not."""
    with torch.autocast("cpu", torch.bfloat16):
        return torch.einsum("bqd,bkd->bqk", x, x).softmax(-1) @ x


def by_inference(model: Any, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return F.scaled_dot_product_attention(model.linear(x), x, x).clone()


def by_checkpointing(model: Any, x: Tensor) -> Tensor:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(lambda y: attend(model.linear(y)), x, use_reentrant=False)


def by_recurrence(model: Any, x: Tensor) -> Tensor:
    torch.manual_seed(7)
    return attend(nn.GRU(WIDTH, WIDTH, batch_first=True)(x)[0])


def in_place(model: Any, x: Tensor) -> Tensor:
    y = model.linear(x).reshape(2, 30)
    y[:, ::2] += 1
    y.unflatten(1, (5, WIDTH)).transpose(0, 1)[1:3].mul_(2)
    return attend(y.view(2, 5, WIDTH))


def by_turned_rows(model: Any, x: Tensor) -> Tensor:
    """Rows that are not contiguous; torch multiplies them otherwise where the matrix is no view of a parameter."""
    return attend(F.linear(x.transpose(0, 1), model.linear.weight.reshape(2, 3, WIDTH).flatten(0, 1)).transpose(0, 1))


# torch's own rules for derivatives are scripts, which it warns of.
_IN_SCRIPTS = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
NEED_AUTOGRAD = by_gradients, by_grad_mode, pytest.param(by_derivatives, marks=_IN_SCRIPTS), by_autocast
NEED_NONE = by_functional_gradients, by_a_map, by_inference, by_checkpointing, by_recurrence, in_place, by_turned_rows


@pytest.mark.parametrize("way", [*NEED_AUTOGRAD, *NEED_NONE])
def test_a_module_gives_what_it_gives_unseen(way):
    softmax = seen(way).seen.softmaxes[-1]
    assert softmax.weights.shape[-2:] == (5, 5) and softmax.applied is not None


@pytest.mark.parametrize("way", NEED_NONE)
def test_one_pass_is_enough(way):
    model = Calls(way)
    Passes(model, model).run(hidden_states())
    assert model.n_runs == 1


@pytest.mark.parametrize("way", NEED_AUTOGRAD)
def test_that_a_module_needs_autograd_is_found_out_once(way):
    """By a pass that is of no use; later ones are right at once."""
    model = Calls(way)
    passes = Passes(model, model)
    for n_runs in (2, 3, 4):
        passes.run(hidden_states())
        assert model.n_runs == n_runs
