"""Every variant, axis by axis, as docs/variants.md says; first weights and dropout as the code that they are named after."""

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_viz.model import blocks, variants
from transformer_viz.model.attention import attend
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

DOC = (Path(__file__).resolve().parents[2] / "docs" / "variants.md").read_text(encoding="utf-8")
VOCABULARIES: dict[str, Any] = {"source_vocabulary_size": 7, "target_vocabulary_size": 11}


# Axis by axis: what is measured on the model that the settings make


def yes(found: bool) -> str:
    return "yes" if found else "no"


def n_norms(*modules: nn.Module) -> int:
    return sum(isinstance(part, nn.LayerNorm) for module in modules for part in module.modules())


def has(ending: str) -> Callable[[Any, dict[str, Any]], str]:
    return lambda model, settings: yes(any(re.search(ending, name) for name in model.state_dict()))


def first_weights(model: Transformer, settings: dict[str, Any]) -> str:
    """By the largest weights of a query's and an embedding's matrix, which tell the rules apart."""
    weights = model.state_dict()
    query, width = weights["encoder.0.attention.query.weight"], model.config.d_model
    bounds = {"torch's": 1 / width, "Xavier, every matrix": 6 / sum(query.shape), "as nn.Transformer": 1.5 / width}
    rule = min(bounds, key=lambda name: abs(bounds[name] ** 0.5 - float(query.abs().max())))
    has_small_embeddings = float(weights["source_embedding.weight"].abs().max()) < 1
    return rule if has_small_embeddings == (rule == "Xavier, every matrix") else f"{rule}, but not on the embeddings"


def size(model: Transformer, settings: dict[str, Any]) -> str:
    layers = f"{settings.get('n_encoder_layers')}+{settings.get('n_decoder_layers')}"
    return f"{model.config.d_model}, {model.config.n_heads} heads, {layers}" if "d_model" in settings else "given"


def dropped(model: Transformer) -> set[str]:
    """Where numbers are really dropped in one pass of a training, by what they belong to."""
    found, handles = set(), []

    def watched(*args: Any, **options: Any) -> Tensor:
        if options["dropout"]:
            found.add(f"{options['site'].kind} weights")
        return attend(*args, **options)

    def hook(name: str, probability: float) -> Callable[..., None]:
        return lambda *_: found.add(name) if probability else None

    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            handles.append(module.register_forward_hook(hook(re.sub(r"\.\d+|\.dropout", "", name), module.p)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "attend", watched)
        model.train()(torch.tensor([[1, 4, 2]]), torch.tensor([[1, 5]]))
    for handle in handles:
        handle.remove()
    return found


PLACES = {
    "nothing": set(),
    "everything": {
        *("embedding_dropout", "encoder weights", "decoder weights", "cross weights"),
        *("encoder.around_attention", "encoder.feed_forward", "encoder.around_feed_forward"),
        *("decoder.around_attention", "decoder.around_cross_attention", "decoder.feed_forward", "decoder.around_feed_forward"),
    },
    "the embeddings": {"embedding_dropout"},
    "the encoder's self-attention": {"encoder.around_attention"},
}
FORMULAS = {"pre": "x + f(norm(x))", "post": "norm(x + f(x))", "residual-post": "x + norm(f(x))"}
AXES: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    "a sublayer f": lambda m, s: FORMULAS[m.config.norm],
    "norm after each stack": lambda m, s: yes(n_norms(m.encoder_norm, m.decoder_norm) == 2),
    "norms of a decoder layer": lambda m, s: str(n_norms(m.decoder[0])),
    "norms have weight and bias": has(r"norm\.(weight|bias)$"),
    "norm on the embeddings": lambda m, s: yes(n_norms(m.source_norm, m.target_norm) == 2),
    "bias in Q, K, V, O": has(r"attention\.(query|key|value|out)\.bias$"),
    "bias in the feed-forward layer": has(r"feed_forward\.(inner|outer)\.bias$"),
    "bias in the output": has(r"^output\.bias$"),
    "d_k, d_v": lambda m, s: str(m.config.key_width) if s.get("d_k") and s["d_k"] == s["d_v"] else "d_model / heads",
    "embeddings × √d_model": lambda m, s: "no" if m.config.embedding_scale == "none" else m.config.embedding_scale,
    "sinusoid base": lambda m, s: f"{m.config.sinusoid_base:g}",
    "activation": lambda m, s: m.config.activation,
    "size": size,
    "width of the feed-forward layer": lambda m, s: str(s.get("d_ff", "given")),
    "first weights": first_weights,
    "dropout acts on": lambda m, s: next((words for words, places in PLACES.items() if dropped(m) == places), str(dropped(m))),
}


def table() -> dict[str, dict[str, str]]:
    """Variant -> axis -> what docs/variants.md says."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", DOC, flags=re.MULTILINE)]
    head, rows = rows[0], rows[2 : rows.index(["variant", "in the source", "here"])]
    return {name: {row[0]: row[place] for row in rows} for place, name in enumerate(head) if place}


def measured(name: str) -> dict[str, str]:
    """Axis by axis, on a model with one layer a stack."""
    settings = variants.settings(name)
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**VOCABULARIES, **{**settings, "n_encoder_layers": 1, "n_decoder_layers": 1}))
    return {axis: measure(model, settings) for axis, measure in AXES.items()}


def test_variants_are_what_the_table_says():
    """How they compute is compared in `test_transformer_parity`."""
    assert table() == {name: measured(name) for name in variants.names()}


# First weights, against torch.nn.Transformer

WIDTH, HEADS, INNER, LAYERS = 128, 4, 320, 3
PARTS = ("query", "key", "value")


def theirs() -> dict[str, Tensor]:
    """Parameters of `nn.Transformer` by the names that they have in ours; of one layer of each stack."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about nested tensors
        model = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, INNER)
    found: dict[str, Tensor] = {}
    for stack, layer in (("encoder", model.encoder.layers[1]), ("decoder", model.decoder.layers[1])):
        named = layer.state_dict()
        for ours, other in (("attention", "self_attn"), ("cross_attention", "multihead_attn")):
            for kind in ("weight", "bias") if f"{other}.in_proj_weight" in named else ():
                for part, parameter in zip(PARTS, named[f"{other}.in_proj_{kind}"].chunk(3), strict=True):
                    found[f"{stack}.{ours}.{part}.{kind}"] = parameter
                found[f"{stack}.{ours}.out.{kind}"] = named[f"{other}.out_proj.{kind}"]
        for ours, other in (("inner", "linear1"), ("outer", "linear2")):
            found |= {f"{stack}.feed_forward.{ours}.{kind}": named[f"{other}.{kind}"] for kind in ("weight", "bias")}
    return found


def test_first_weights_are_distributed_as_those_of_nn_transformer():
    """Each parameter of each layer: the same standard deviation within five of its errors, the same bound, the same zeros."""
    torch.manual_seed(3)
    settings = {"d_model": WIDTH, "n_heads": HEADS, "d_ff": INNER, "n_encoder_layers": LAYERS, "n_decoder_layers": LAYERS}
    model = Transformer(ModelConfig(**VOCABULARIES, **{**variants.settings("torch-reference"), **settings}))
    other, seen = theirs(), set()
    for name, parameter in model.state_dict().items():
        if not name.startswith(("encoder.", "decoder.")) or "norm" in name:
            continue
        like = other[key := re.sub(r"\.\d+\.", ".", name)]
        seen.add(key)
        assert parameter.shape == like.shape, name
        if not like.any():
            assert not parameter.any(), name
            continue
        # The standard deviation of n uniform numbers is known to √(0.2 / n) of itself; two are compared.
        error = 5 * math.sqrt(0.4 / like.numel())
        assert float(parameter.std() / like.std()) == pytest.approx(1, abs=error), name
        assert float(parameter.abs().max() / like.abs().max()) == pytest.approx(1, abs=24 / like.numel()), name
    assert seen == set(other)


def test_feed_forward_biases_do_not_begin_equal_in_all_layers():
    """In nn.Transformer they do: its layers are copies of one."""
    weights = Transformer(ModelConfig(**VOCABULARIES, initialization="xavier-stacks")).state_dict()
    for name in ("inner.weight", "outer.weight", "inner.bias", "outer.bias"):
        assert not torch.equal(*(weights[f"decoder.{layer}.feed_forward.{name}"] for layer in (0, 1)))
