"""The drawing of a model against the modules that run: their order, what they compute together, their trained numbers."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz.model import variants
from transformer_viz.model.architecture import (
    Architecture,
    Block,
    Folded,
    Stack,
    architecture_of,
    architecture_of_sizes,
    summary,
    unfolded,
)
from transformer_viz.model.blocks import FeedForward, MultiHeadAttention
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import sizes_of
from transformer_viz.model.transformer import Positions, Transformer

DRAWN = (nn.Embedding, Positions, nn.LayerNorm, MultiHeadAttention, FeedForward)
SMALL: dict[str, Any] = {
    "source_vocabulary_size": 11,
    "target_vocabulary_size": 13,
    "d_model": 14,
    "n_heads": 2,
    "d_ff": 17,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "max_positions": 19,
    "dropout": 0.0,
}
OTHERS: dict[str, dict[str, Any]] = {
    "tied": {"tied_embeddings": "output"},
    "all tied": {"tied_embeddings": "all", "source_vocabulary_size": 13, "output_bias": False},
    "learned positions": {"position": "learned", "activation": "gelu"},
    "no positions": {"position": "none", "embedding_scale": "encoder"},
    "shared before": {"shared_norm": True, "embedding_norm": True},
    "other widths": {"d_k": 3, "d_v": 5, "norm": "residual-post"},
}
CONFIGS = {
    **{name: ModelConfig(**{**variants.settings(name), **SMALL}) for name in variants.names()},
    **{name: ModelConfig(**{**SMALL, **changes}) for name, changes in OTHERS.items()},
}


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return CONFIGS[request.param]


def made(config: ModelConfig) -> Transformer:
    torch.manual_seed(3)
    model = Transformer(config).double().eval()
    for parameter in model.parameters():  # norms begin with 1 and 0, biases of attention with 0
        nn.init.normal_(parameter, 0.3, 0.5)
    return model


def texts() -> tuple[Tensor, Tensor]:
    return torch.tensor([[5, 7, 4, 9, 6]]), torch.tensor([[1, 8, 6, 10]])


@torch.no_grad()
def test_the_blocks_are_the_modules_that_run_in_their_order(config: ModelConfig) -> None:
    model, called = made(config), list[str]()
    for name, module in model.named_modules():
        if isinstance(module, DRAWN):
            module.register_forward_hook(lambda *_, name=name: called.append(name))
    model(*texts())
    if config.position == "none":  # what adds positions is called, and adds none
        called = [name for name in called if name != "positions"]
    # The output's matrix may be another module's, so it is used and not called.
    assert called == [block.module for block in architecture_of(config) if block.role != "output"]


class Drawn:
    """A model as its drawing says it: blocks applied one after the other, residual connections where they are drawn."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.memory = model, torch.empty(0)

    def __call__(self, architecture: Architecture, source: Tensor, target: Tensor) -> Tensor:
        encoder, decoder = architecture.stacks
        self.memory = self.through(encoder, source)
        return self.through(decoder, target)

    def through(self, stack: Stack, x: Tensor) -> Tensor:
        for block in stack.begin:
            x = self.step(block, x)
        for sublayer in (sublayer for layer in stack.layers for sublayer in layer):
            given = x if sublayer.before is None else self.step(sublayer.before, x)
            added = self.step(sublayer.block, given)
            x = x + (added if sublayer.within is None else self.step(sublayer.within, added))
            x = x if sublayer.after is None else self.step(sublayer.after, x)
        for block in stack.end:
            x = self.step(block, x)
        return x

    def step(self, block: Block, x: Tensor) -> Tensor:
        module: Any = self.model.get_submodule(block.module)
        if block.role == "attention":
            memory = self.memory if block.kind == "cross" else None
            return module(x, memory, None)
        if block.role == "output":
            is_tied = "tied" in block.title
            return F.linear(x, self.model.target_embedding.weight if is_tied else module.weight, module.bias)
        scale = math.sqrt(self.model.config.d_model) if "√" in block.title else 1
        return module(x) * scale


@torch.no_grad()
def test_what_is_drawn_computes_what_the_model_does(config: ModelConfig) -> None:
    model = made(config)
    torch.testing.assert_close(Drawn(model)(architecture_of(config), *texts()), model(*texts()), rtol=0, atol=1e-12)


def test_every_trained_number_is_in_one_block(config: ModelConfig) -> None:
    model, blocks = made(config), [*architecture_of(config)]
    assert len({block.place for block in blocks}) == len(blocks)
    for block in blocks:
        held = sum(parameter.numel() for parameter in model.get_submodule(block.module).parameters())
        assert block.n_parameters == held, block
        assert not held or f"; {held:,} parameters" in block.sentence
    once = {block.module: block.n_parameters for block in blocks}
    assert sum(once.values()) == sum(parameter.numel() for parameter in model.parameters())


def differing(architecture: Architecture, other: Architecture) -> list[str]:
    """The titles of blocks that the other model does not have, or has in another way."""
    there = {block.place: block.sentence for block in other}
    return [block.title for block in architecture if there.get(block.place) != block.sentence]


def test_variants_differ_where_their_settings_do() -> None:
    post, torchs, pre = (architecture_of(CONFIGS[name]) for name in ("post-norm", "torch-reference", "pre-norm"))
    # The torch notebook's model has final norms and sines of another base.
    assert differing(torchs, post) == ["+ sinusoid positions", "Final norm"] * 2
    assert differing(post, torchs) == ["+ sinusoid positions"] * 2
    # Every norm is elsewhere, and nothing else is different.
    assert differing(pre, post) == [*["Norm"] * 4, "Final norm", *["Norm"] * 9, "Final norm"]
    assert not differing(post, post)


def test_biases_are_said() -> None:
    for name in variants.names():
        said = ["without biases" in block.sentence for block in architecture_of(CONFIGS[name]) if block.role == "attention"]
        assert said == [name in ("bias-free", "residual-post-norm")] * 8


def test_a_model_of_which_only_sizes_are_known_has_its_attention_and_nothing_else() -> None:
    config = CONFIGS["pre-norm"]
    known, told = architecture_of_sizes(sizes_of(config)), architecture_of(config)
    assert [(b.kind, b.layer) for b in known if b.kind] == [(b.kind, b.layer) for b in told if b.kind]
    assert [b.role for b in known if not b.kind] == ["embedding", "embedding", "output"]
    assert not any(sublayer.is_residual for stack in known.stacks for layer in stack.layers for sublayer in layer)
    assert known.untold and not told.untold
    assert summary(known) == summary(told) == "encoder 2 layers → decoder 3 layers"


@pytest.mark.parametrize(
    ("n", "focus", "expected"),
    [
        (1, 0, [0]),
        (3, 2, [0, 1, 2]),
        (6, 0, [0, 1, 2, Folded(3, 5)]),
        (6, 5, [Folded(0, 2), 3, 4, 5]),
        (30, 11, [Folded(0, 9), 10, 11, 12, Folded(13, 29)]),
    ],
)
def test_many_layers_are_folded_around_the_focus(n: int, focus: int, expected: list[int | Folded]) -> None:
    assert unfolded(range(n), focus) == expected


def test_layers_that_are_not_numbered_one_by_one_are_folded_by_their_numbers() -> None:
    assert unfolded([1, 5, 9, 13, 17], 13) == [Folded(1, 5), 2, 3, 4]
