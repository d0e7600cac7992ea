"""Configurations that cannot work are refused with the value and what is allowed; variants are data."""

import json
import math
from typing import Any

import pytest
import torch

from transformer_viz.errors import ConfigError
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

VOCABULARIES: dict[str, Any] = {"source_vocabulary_size": 7, "target_vocabulary_size": 11}


CHANGES = ({"dropout": math.nan}, {"sinusoid_base": math.inf}, {"n_heads": 5, "d_model": 12})


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_what_is_made_in_python_is_checked_as_what_is_read(change):
    name, value = next(iter(change.items()))
    with pytest.raises(ConfigError, match=f"{name}={value} "):
        ModelConfig(**{**VOCABULARIES, **change})


def test_two_vocabularies_cannot_be_tied():
    with pytest.raises(ConfigError, match="the source has 7 tokens and the target 11"):
        ModelConfig(**VOCABULARIES, tied_embeddings="all")


def test_json_round_trip():
    config = ModelConfig(**VOCABULARIES, d_model=22, n_heads=5, d_k=3, d_v=7, norm="residual-post", dropout=0.25)
    assert ModelConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_xavier_reaches_every_matrix():
    """Bounds of a uniform Xavier matrix are √(6 / (in + out)); torch's defaults lie outside them or well inside."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**VOCABULARIES, d_model=64, d_ff=192, initialization="xavier"))
    matrices = {name: weight for name, weight in model.state_dict().items() if weight.dim() > 1}
    assert {"source_embedding.weight", "output.weight", "decoder.1.cross_attention.value.weight"} < set(matrices)
    for name, weight in matrices.items():
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.95 * bound < float(weight.abs().max()) <= bound, name
