"""Configurations that cannot work are refused with the value and what is allowed; variants are data."""

import json
from typing import Any

import pytest
import torch

from transformer_viz.errors import ConfigError, TransformerVizError
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

VOCABULARIES: dict[str, Any] = {"source_vocabulary_size": 7, "target_vocabulary_size": 11}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"d_model": 0}, ["d_model=0", "from 1 to 8192"]),
        ({"d_model": 12.0}, ["d_model=12.0", "whole number"]),
        ({"d_model": True}, ["d_model=True", "whole number"]),
        ({"d_model": 10**9}, ["d_model=1000000000", "8192"]),
        ({"n_heads": 5, "d_model": 12}, ["n_heads=5", "d_model=12", "1, 2, 3, 4, 6, 12"]),
        ({"n_heads": -1}, ["n_heads=-1"]),
        ({"d_k": 0}, ["d_k=0"]),
        ({"d_v": "7"}, ["d_v='7'"]),
        ({"n_encoder_layers": 0}, ["n_encoder_layers=0"]),
        ({"n_decoder_layers": 65}, ["n_decoder_layers=65", "64"]),
        ({"source_vocabulary_size": 3}, ["source_vocabulary_size=3", "from 4"]),
        ({"max_positions": 10**6}, ["max_positions=1000000", "4096"]),
        ({"dropout": 1.0}, ["dropout=1.0", "less than 1"]),
        ({"dropout": float("nan")}, ["dropout=nan"]),
        ({"dropout": "0.1"}, ["dropout='0.1'"]),
        ({"sinusoid_base": 1}, ["sinusoid_base=1", "more than 1"]),
        ({"sinusoid_base": float("inf")}, ["sinusoid_base=inf"]),
        ({"norm": "middle"}, ["norm='middle'", "pre, post, residual-post"]),
        ({"norm": ["pre"]}, ["norm=['pre']"]),
        ({"activation": "swish"}, ["activation='swish'", "relu, gelu"]),
        ({"embedding_scale": "all"}, ["embedding_scale='all'", "none, encoder, both"]),
        ({"position": "rotary"}, ["position='rotary'", "sinusoid, learned, none"]),
        ({"initialization": "he"}, ["initialization='he'", "torch, xavier-stacks, xavier"]),
        ({"final_norm": 1}, ["final_norm=1", "true or false"]),
        ({"attention_bias": None}, ["attention_bias=None", "true or false"]),
        ({"d_model": 9, "n_heads": 3}, ["d_model=9", "even"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_settings_name_value_and_allowed(change, named):
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**{**VOCABULARIES, **change})
    for part in named:
        assert part in str(caught.value)


def test_json_round_trip():
    config = ModelConfig(**VOCABULARIES, d_model=22, n_heads=5, d_k=3, d_v=7, norm="residual-post", dropout=0.25)
    assert ModelConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_json_lists_unknown_and_missing_names():
    with pytest.raises(ConfigError, match=r"n_haeds.*n_heads"):
        ModelConfig.from_json({**VOCABULARIES, "n_haeds": 2})
    with pytest.raises(ConfigError, match="target_vocabulary_size"):
        ModelConfig.from_json({"source_vocabulary_size": 7})


def test_head_widths_are_filled_in():
    assert (ModelConfig(**VOCABULARIES, d_model=12, n_heads=3).key_width) == 4
    assert (ModelConfig(**VOCABULARIES, d_model=12, n_heads=3).value_width) == 4
    free = ModelConfig(**VOCABULARIES, d_model=12, n_heads=5, d_k=7, d_v=2)
    assert (free.key_width, free.value_width) == (7, 2)


@pytest.mark.parametrize("name", variants.names())
def test_every_variant_makes_a_model_that_runs(name):
    small = {"d_model": 8, "n_heads": 2, "d_ff": 8}
    model = Transformer(ModelConfig(**VOCABULARIES, **{**variants.settings(name), **small})).eval()
    assert model(torch.tensor([[1, 4, 2]]), torch.tensor([[1, 5]])).shape == (1, 2, 11)


def test_variants_that_must_be_there_say_what_sets_them_apart():
    assert {"pre-norm", "post-norm", "residual-post-norm"} <= set(variants.names())
    assert variants.settings("pre-norm") == {"norm": "pre", "final_norm": True}
    post, residual = variants.settings("post-norm"), variants.settings("residual-post-norm")
    assert (post["norm"], post["final_norm"]) == ("post", False)
    assert (residual["norm"], residual["final_norm"], residual["attention_bias"]) == ("residual-post", False, False)
    assert (residual["d_model"], residual["d_ff"], residual["n_heads"]) == (128, 128, 4)
    assert (residual["embedding_scale"], residual["initialization"]) == ("encoder", "xavier")


def test_settings_are_a_copy_and_an_unknown_name_lists_the_known():
    variants.settings("pre-norm")["norm"] = "post"
    assert variants.settings("pre-norm")["norm"] == "pre"
    with pytest.raises(TransformerVizError, match=r"'nope'.*post-norm, pre-norm, residual-post-norm"):
        variants.settings("nope")


def test_xavier_reaches_every_matrix():
    """Bounds of a uniform Xavier matrix are √(6 / (in + out)); torch's defaults lie outside them or well inside."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**VOCABULARIES, d_model=64, d_ff=192, initialization="xavier"))
    matrices = {name: weight for name, weight in model.state_dict().items() if weight.dim() > 1}
    assert {"source_embedding.weight", "output.weight", "decoder.1.cross_attention.value.weight"} < set(matrices)
    for name, weight in matrices.items():
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.95 * bound < float(weight.abs().max()) <= bound, name


def test_layers_start_from_different_weights():
    """Guards deep copies of one layer: they all begin equal."""
    model: Any = Transformer(ModelConfig(**VOCABULARIES, d_model=8, n_heads=2))
    a, b = (layer.attention.query.weight for layer in model.encoder)
    assert not torch.equal(a, b)
