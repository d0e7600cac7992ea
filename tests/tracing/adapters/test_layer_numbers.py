"""Layers of a traced module have the numbers that they have in the model, also where others stand between them."""

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from transformer_viz import figures, load_trace, trace_module
from transformer_viz.errors import OptionError
from transformer_viz.trace.store import to_bytes

IDS, WIDTH = [2, 8, 4, 6], 16
HEADS = {"hidden_size": WIDTH, "intermediate_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2}
QWEN = {"moe_intermediate_size": 8, "shared_expert_intermediate_size": 8, "head_dim": 4}
MIXED = {"linear_key_head_dim": 4, "linear_value_head_dim": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1}
HYBRIDS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "Qwen3Next": (QWEN | MIXED | EXPERTS | {"num_hidden_layers": 8}, (3, 7)),
    "Jamba": ({"num_hidden_layers": 5, "attn_layer_period": 3, "attn_layer_offset": 1, "mamba_d_state": 4, **EXPERTS}, (1, 4)),
    "RecurrentGemma": ({"num_hidden_layers": 3, "lru_width": WIDTH, "attention_window_size": 16, "head_dim": 4}, (2,)),
    "Lfm2": ({"num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "full_attention"]}, (1, 3)),
}


def hybrid(name: str) -> Any:
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(vocab_size=23, pad_token_id=1, bos_token_id=0, **HEADS, **HYBRIDS[name][0])
    torch.manual_seed(3)
    return getattr(transformers, f"{name}ForCausalLM")(config)


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_layers_of_a_hybrid_keep_their_numbers(name):
    """Recurrent and convolutional layers have no attention; what they are numbered by is the model's own `layer_idx`."""
    model, numbers = hybrid(name), HYBRIDS[name][1]
    trace = trace_module(model, None, IDS)
    assert trace.decoder.layers == numbers
    attending = [module for module in model.modules() if type(module).__name__ == f"{name}Attention"]
    assert trace.decoder.layers == tuple(module.layer_idx for module in attending)
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        found = [weights for weights in model(torch.tensor([IDS]), output_attentions=True).attentions if weights is not None]
    np.testing.assert_allclose(trace.decoder.weights, torch.cat(found[-len(numbers) :]).numpy(), atol=1e-6)


def test_numbers_are_asked_for_drawn_and_kept():
    trace = load_trace(to_bytes(trace_module(hybrid("Lfm2"), None, IDS)))
    assert trace.decoder.layers == (1, 3)
    assert sorted(trace.to_frame()["layer"].unique()) == [1, 3]
    figures.attention(trace, "decoder.4.1")
    with pytest.raises(OptionError, match="layers 2, 4"):
        figures.attention(trace, "decoder.1.1")


class Recurrent(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1)


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x, x, x)[0]


class Stack(nn.Module):
    """Layers of somebody's own, run in the order that is given."""

    def __init__(self, layers: list[nn.Module], order: list[int] | None = None) -> None:
        super().__init__()
        self.embedding, self.layers = nn.Embedding(23, WIDTH), nn.ModuleList(layers)
        self.order = list(range(len(layers))) if order is None else order

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for i in self.order:
            layer = self.layers[i]
            for part in layer if isinstance(layer, nn.ModuleList) else [layer]:
                x = part(x)
        return x


def nested(*layers: nn.Module) -> nn.ModuleList:
    return nn.ModuleList(layers)


@pytest.mark.parametrize(
    ("stack", "numbers"),
    [
        (lambda: Stack([Recurrent(), Attending(), Recurrent(), Attending()]), (1, 3)),
        (lambda: Stack([Attending(), Attending()]), (0, 1)),
        (lambda: Stack([Attending(), Recurrent()]), (0,)),
        (lambda: Stack([nested(Recurrent(), Attending()), nested(Recurrent()), nested(Recurrent(), Attending())]), (0, 2)),
        (lambda: Stack([nested(Attending(), Recurrent()), nested(Attending(), Recurrent())]), (0, 1)),
        (lambda: Stack([Attending(), Recurrent(), Attending()], order=[0, 1, 2, 0, 1, 2]), (0, 1, 2, 3)),
        (lambda: nn.ModuleDict({"a": Attending()}), (0,)),
    ],
    ids=["mixed", "all", "the first", "lists in a list", "all lists", "twice", "no list"],
)
def test_the_layers_of_a_module_of_torch(stack, numbers):
    """Where no list tells the calls apart, they count as they come."""
    model = stack()
    embedding = nn.Embedding(23, WIDTH)
    call = None if isinstance(model, Stack) else lambda ids: model["a"](embedding(ids))
    assert trace_module(model, None, IDS, call=call).decoder.layers == numbers


def test_layers_that_run_in_another_order_stand_where_their_numbers_are():
    model = Stack([Attending(), Recurrent(), Attending()])
    forward = trace_module(model, None, IDS)
    model.order = [2, 1, 0]
    backward = trace_module(model, None, IDS)
    assert forward.decoder.layers == backward.decoder.layers == (0, 2)
    x = model.embedding(torch.tensor([IDS]))
    first = cast(Any, model.layers[2]).inner(x, x, x, average_attn_weights=False)[1]
    np.testing.assert_allclose(backward.decoder.weights[1], first[0].detach().numpy(), atol=1e-6)


def test_layers_that_share_one_attention_keep_their_numbers():
    """As those of Zamba, each around the same module."""

    class Shared(nn.Module):
        def __init__(self, attention: nn.Module) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x)

    one = Attending()
    stack = Stack([Recurrent(), Shared(one), Recurrent(), Shared(one)])
    assert trace_module(stack, None, IDS).decoder.layers == (1, 3)


def test_a_decoder_whose_attentions_are_wrapped():
    """Both are modules of their own in a layer; the layer is what they share, and source and target are equally long."""

    def layer() -> nn.ModuleDict:
        own = nn.ModuleDict({"attend": nn.MultiheadAttention(WIDTH, 2, batch_first=True)})
        return nn.ModuleDict({"own": own, "cross": Attending()})

    model: Any = nn.ModuleDict({"embedding": nn.Embedding(23, WIDTH), "encoder": nested(Attending())})
    model["decoder"] = nested(layer(), layer())

    def call(source: Tensor, target: Tensor) -> None:
        x, y = model["encoder"][0](model["embedding"](source)), model["embedding"](target)
        for parts in model["decoder"]:
            y = y + parts["own"]["attend"](y, y, y)[0]
            y = y + parts["cross"].inner(y, x, x)[0]

    trace = trace_module(model, IDS, [1, 2, 3, 4], call=call)
    numbers = {kind: trace.attentions[kind].layers for kind in trace.kinds}
    assert numbers == {"encoder": (0,), "decoder": (0, 1), "cross": (0, 1)}
