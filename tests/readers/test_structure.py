"""How models of other people are built, as it is drawn: against what is known of each family, and the modules that run."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.needs import needs
from tests.readers.families import family, tokenizer, untapped
from transformer_viz.model.architecture import Architecture, Block, Sublayer
from transformer_viz.readers.huggingface.loading import wrap_model

pytestmark = needs("transformers")

PLACEMENTS = {
    **dict.fromkeys(("marian", "bart", "bert", "roberta", "distilbert", "electra", "albert"), "post"),
    **dict.fromkeys(("t5", "mt5", "umt5", "mbart", "m2m_100", "pegasus", "blenderbot"), "pre"),
    **dict.fromkeys(("gpt2", "opt", "llama", "mistral", "qwen2", "modernbert"), "pre"),
    **dict.fromkeys(("gemma2", "gemma3_text", "t5gemma"), "before and within"),
}
"""Where the papers of these families have their norms."""
UNTOLD = {
    "gpt_neox": "attention and feed-forward read the same and are added together",
    **dict.fromkeys(("switch_transformers", "nllb-moe"), "a feed-forward layer is several experts, chosen for each token"),
}
SLOTS = {"pre": ("before",), "post": ("after",), "before and within": ("before", "within")}


def sublayers(architecture: Architecture) -> list[Sublayer]:
    return [sublayer for stack in architecture.stacks for layer in stack.layers for sublayer in layer]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_norms_are_where_the_family_has_them_and_blocks_are_the_modules_that_run(name: str) -> None:
    model = family(name)
    architecture = model.architecture
    assert not architecture.untold
    drawn = sublayers(architecture)
    found = [tuple(slot for slot in ("before", "within", "after") if getattr(each, slot) is not None) for each in drawn]
    # ModernBERT's first layer begins without a norm: it stands on the embeddings.
    expected = [SLOTS[PLACEMENTS[name]]] * len(drawn)
    assert found == ([()] if name == "modernbert" else expected[:1]) + expected[1:]
    assert all(each.before is None or each.before.sentence.startswith("A copy") for each in drawn)
    assert all(each.after is None or "after the addition" in each.after.sentence for each in drawn)
    kinds = [(block.kind, block.layer) for block in architecture if block.kind]
    sizes = model.network.sizes
    assert sorted(kinds) == sorted((kind, layer) for kind in sizes.kinds for layer in sizes.layers[kind])
    n_layers = sum(len(stack.layers) for stack in architecture.stacks)
    assert sum(block.role == "feed-forward" and block.layer is not None for block in architecture) == n_layers
    modules = [block.module for block in architecture]
    assert called(model, {*modules}) == modules


@pytest.mark.parametrize("name", UNTOLD)
def test_what_does_not_add_up_is_not_claimed(name: str) -> None:
    architecture = family(name).architecture
    assert architecture.untold
    assert {block.role for block in architecture} == {"embedding", "attention", "output"}


def test_a_norm_of_the_next_part_is_not_taken_for_that_of_the_attention() -> None:
    """ModernBERT's first attention has none, and the feed-forward layer behind it reads the sum through one."""
    model = family("modernbert").network
    assert [model.attention_block("encoder", layer).placement for layer in range(3)] == [None, "pre", "pre"]


def test_a_layer_that_is_not_the_sum_of_its_parts_is_not_drawn_as_one() -> None:
    model = untapped("llama")
    model.model.layers[2].register_forward_hook(lambda module, given, output: output * 1.5)
    made = wrap_model(model, tokenizer(), "scaled")
    assert made.architecture.untold
    assert [block.role for block in made.architecture].count("attention") == 3


def test_what_becomes_of_embeddings_is_said_where_it_is_seen() -> None:
    begins = {name: family(name).architecture.stacks[-1].begin[0] for name in ("llama", "marian", "m2m_100", "gpt2")}
    assert {name: block.title for name, block in begins.items()} == {
        **dict.fromkeys(("llama", "marian", "gpt2"), "Embedding"),
        # Its positions are no table of torch's.
        "m2m_100": "Embedding + …",
    }
    made = wrap_model(untapped("bart", scale_embedding=True), tokenizer(), "scaled")
    assert [stack.begin[0].title for stack in made.architecture.stacks] == ["Embedding × √d"] * 2


def called(model: Any, names: set[str]) -> list[str]:
    """The modules of these names in the order in which a pass calls them."""
    seen: list[str] = []
    modules = {name: module for name, module in model.network.model.named_modules() if name in names}
    handles = [module.register_forward_pre_hook(lambda *_, name=name: seen.append(name)) for name, module in modules.items()]
    source, target = torch.tensor([[5, 7, 6, 9]]), torch.tensor([[1, 8, 6]])
    memory = model.network.encode(source)
    if model.network.kind.writes:
        model.network.decode(target, memory)
    for handle in handles:
        handle.remove()
    return seen


def numbers(model: Any, block: Block, x: Tensor) -> Tensor:
    return model.network.model.get_submodule(block.module)(x)


@torch.inference_mode()
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_residual_connection_is_drawn_where_it_is(name: str) -> None:
    """The first feed-forward layer, computed from what is drawn around it."""
    model = family(name)
    layer: Any = model.network.model.transformer.h[0] if name == "gpt2" else model.network.model.bert.encoder.layer[0]
    x = torch.randn(1, 3, 24, generator=torch.Generator().manual_seed(1))
    mlp = layer.mlp if name == "gpt2" else lambda y: layer.output.dense(layer.intermediate(y))
    drawn = model.architecture.stacks[0].layers[0][-1]
    given = x if drawn.before is None else numbers(model, drawn.before, x)
    made = x + mlp(given)
    made = made if drawn.after is None else numbers(model, drawn.after, made)
    theirs = x + layer.mlp(layer.ln_2(x)) if name == "gpt2" else layer.output(layer.intermediate(x), x)
    torch.testing.assert_close(made, theirs)
