"""`trace_module` says what attention of a model it did not see, however that is computed, and cries wolf at nothing else."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.inside import has_mode, hooks
from tests.readers.families import T5, untapped
from transformer_viz import export, load_trace, trace_module
from transformer_viz.errors import OptionError
from transformer_viz.trace.store import to_bytes

WIDTH, SOURCE, TARGET = 12, [5, 9, 3, 7, 6], [2, 8, 4]


def by_matmul(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.matmul(functional.dropout((q @ k.transpose(-2, -1)).softmax(-1), 0.1, False), v)


def by_module(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A softmax in another precision, a cast, a view of all heads as one batch."""
    weights = nn.Softmax(dim=-1)((q @ k.mT).double()).to(v.dtype)
    return torch.bmm(weights.flatten(0, 1), v.flatten(0, 1)).unflatten(0, v.shape[:2])


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    masked = torch.zeros(q.shape[-2], k.shape[-2], dtype=torch.bool)
    weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k), dim=-1).masked_fill(masked, 0.0)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


def in_blocks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Local attention: the weights are padded, cut and laid out anew before they are used."""
    weights = functional.pad((q @ k.mT).softmax(-1), (0, 1))[..., :-1]
    return torch.cat([part @ v for part in weights.split(2, dim=-2)], dim=-2)


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v)


class Own(nn.Module):
    """Attention of somebody's own, two heads."""

    def __init__(self, mixed: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.project, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), mixed

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        return x + self.mixed(q, k, v).transpose(1, 2).flatten(2)


class Model(nn.Module):
    """The encoder's attention is somebody's own, the decoder's torch's."""

    def __init__(self, encoder: nn.Module | None = None) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(23, WIDTH), nn.Linear(WIDTH, 23)
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList([encoder] if encoder else [])})
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, 2, 7, batch_first=True), 2)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(source)
        for layer in cast(Any, self.encoder)["layers"]:
            x = layer(x)
        return self.output(self.decoder(self.embedding(target), x))


def normalised_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The weights themselves are computed nowhere."""
    exponents = (q @ k.mT).exp()
    return exponents @ v / exponents.sum(-1, keepdim=True)


def by_thresholds(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Rows that sum to 1 and come from no softmax."""
    weights = (q @ k.mT).relu() + 0.1
    return (weights / weights.sum(-1, keepdim=True)) @ v


def by_part(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Some keys are multiplied by themselves."""
    weights = (q @ k.mT).softmax(-1)
    return weights[..., :2] @ v[..., :2, :] + weights[..., 2:] @ v[..., 2:, :]


@pytest.mark.parametrize("mixed", [by_matmul, by_module, by_einsum, in_blocks, fused])
def test_attention_of_ones_own_is_seen(mixed):
    model = Model(Own(mixed)).eval()
    trace = trace_module(model, SOURCE, TARGET)
    layer = cast(Any, model.encoder)["layers"][0]
    x = model.embedding(torch.tensor([SOURCE]))
    q, k, _ = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in layer.project(x).chunk(3, -1))
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if mixed is fused else 1)
    np.testing.assert_allclose(trace.encoder.weights[0], scores.softmax(-1)[0].detach().numpy(), atol=1e-6)
    assert trace.kinds == ("encoder", "decoder", "cross")


@pytest.mark.parametrize("mixed", [normalised_after, by_thresholds, by_part])
def test_attention_that_cannot_be_seen_is_not_lost(mixed):
    model = Model(Own(mixed))
    with pytest.raises(OptionError) as caught:
        trace_module(model, SOURCE, TARGET)
    assert "not all attention of Model was seen" in str(caught.value)
    assert "attention of encoder.layers.0 (Own)" in str(caught.value)
    way = "encoder.layers" if mixed is normalised_after else "encoder"
    assert f"allow_missing=('{way}',)" in str(caught.value), "how it is accepted"
    trace = trace_module(model, SOURCE, TARGET, allow_missing=("encoder.layers",))
    assert trace.kinds == ("decoder", "cross")
    assert trace.made_by["not_seen"] == ["encoder.layers.0"]
    read = load_trace(to_bytes(trace))
    assert read.made_by["not_seen"] == ["encoder.layers.0"]
    assert "part of its attention not seen" in export.html(read, plotlyjs="cdn")


def test_attention_that_the_model_itself_computes():
    class Inline(Model):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            x = self.embedding(source)
            return self.decoder(self.embedding(target), normalised_after(x, x, x))

    with pytest.raises(OptionError, match=r"the attention of Inline \(Inline\).*allow_missing=\('Inline',\)"):
        trace_module(Inline(), SOURCE, TARGET)
    assert trace_module(Inline(), SOURCE, TARGET, allow_missing=["Inline"]).kinds == ("decoder", "cross")


class Experts(nn.Module):
    """A softmax that weights experts, gates and a distribution over tokens: no position looks at another."""

    def __init__(self) -> None:
        super().__init__()
        self.route, self.experts = nn.Linear(WIDTH, 3), nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.route(x).softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        x = (outputs.gather(-2, chosen[..., None].expand(-1, -1, -1, WIDTH)) * weights[..., None]).sum(-2)
        return x * x.softmax(-1) @ self.route.weight.T @ self.route.weight


def test_a_softmax_that_is_no_attention_is_nothing_to_complain_of():
    trace = trace_module(Model(Experts()), SOURCE, TARGET)
    assert trace.kinds == ("decoder", "cross")
    assert "not_seen" not in trace.made_by


def test_where_nothing_is_seen_the_attention_is_named():
    model, embedding = Own(normalised_after), nn.Embedding(23, WIDTH)
    with pytest.raises(OptionError, match=r"no attention was seen in Own.*It has the attention of Own \(Own\).*from_arrays"):
        trace_module(model, SOURCE, call=lambda ids: model(embedding(ids)))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("encoder", ["allow_missing is one text", "('encoder',)"]),
        (["encodr"], ["'encodr'", "no module of Model and no kind", "encoder, decoder, cross"]),
        ([""], ["''", "no module"]),
    ],
)
def test_what_may_be_missing_is_named_right(given, named):
    with pytest.raises(OptionError) as caught:
        trace_module(Model(), SOURCE, TARGET, allow_missing=given)
    assert all(part in str(caught.value) for part in named), str(caught.value)


def test_only_what_is_named_may_be_missing():
    """A name holds for what is in it, not for what begins with the same letters."""
    model = Model()
    model.encoder["layers"] = nn.ModuleList([Own(by_thresholds), Own(normalised_after)])
    model.enc = nn.Identity()
    for names in (["decoder"], ["encoder.layers.1"], ["cross"], ["enc"], []):
        with pytest.raises(OptionError, match=r"of encoder\.layers\.0 "):
            trace_module(model, SOURCE, TARGET, allow_missing=names)
    missing = trace_module(model, SOURCE, TARGET, allow_missing=["encoder"]).made_by["not_seen"]
    assert sorted(missing) == ["encoder.layers.0", "encoder.layers.1"]


def test_nothing_is_left_behind():
    model = Model(Own(by_matmul))
    trace_module(model, SOURCE, TARGET)
    assert not any(map(any, hooks(model)))
    assert not has_mode()


# Hugging Face


@pytest.mark.parametrize("attention", ["local", "transient-global"])
def test_the_encoder_of_long_t5_is_not_lost(attention):
    """Its decoder calls the interface, its encoder does not."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = {"local_radius": 3, "global_block_size": 2, "encoder_attention_type": attention}
    model = transformers.LongT5ForConditionalGeneration(transformers.LongT5Config(**T5 | config))
    with pytest.raises(OptionError) as caught:
        trace_module(model, SOURCE, TARGET)
    assert "encoder attention of encoder.block.0.layer.0." in str(caught.value)
    assert "encoder attention of encoder.block.1.layer.0." in str(caught.value)
    assert "allow_missing=('encoder',)" in str(caught.value)
    trace = trace_module(model, SOURCE, TARGET, allow_missing=("encoder",))
    assert trace.kinds == ("decoder", "cross")
    assert len(trace.made_by["not_seen"]) == 3
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        want = model(torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET]), output_attentions=True)
    np.testing.assert_allclose(trace.cross.weights, torch.cat(want.cross_attentions).numpy(), atol=1e-6)


class Sigmoids(nn.Module):
    """Attention without a softmax, which leaves no sign."""

    def forward(self, hidden_states: Tensor, **options: Any) -> tuple[Tensor, None]:
        return (hidden_states @ hidden_states.mT).sigmoid() @ hidden_states, None


def test_a_stack_of_which_nothing_at_all_was_seen_is_named():
    """The configuration says that there is an encoder, and it ran."""
    pytest.importorskip("transformers")
    model = untapped("bart").model
    for layer in model.encoder.layers:
        layer.self_attn = Sigmoids()
    with pytest.raises(OptionError, match=r"encoder attention of encoder \(BartEncoder\).*allow_missing=\('encoder',\)"):
        trace_module(model, SOURCE, TARGET)
    assert trace_module(model, SOURCE, TARGET, allow_missing=["encoder"]).kinds == ("decoder", "cross")


def test_an_encoder_that_did_not_run_is_not_missed():
    pytest.importorskip("transformers")
    model, states = untapped("bart").model, torch.randn(1, len(SOURCE), 24)
    trace = trace_module(model, SOURCE, TARGET, call=lambda s, t: model(encoder_outputs=(states,), decoder_input_ids=t))
    assert trace.kinds == ("decoder", "cross")
