"""A model that is made for its shapes alone has the shapes of a real one, and torch's compiler is not loaded for it."""

import pytest
import torch
from torch import nn

from tests.conftest import SIZES
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

CHANGES = [
    *({**variants.settings(name), "d_model": 22, "n_heads": 2, "d_k": None, "d_v": None} for name in variants.names()),
    *({"position": position} for position in ("learned", "none")),
    *({"initialization": initialization} for initialization in ("xavier-stacks", "xavier")),
    *({"tied_embeddings": tied} for tied in ("output", "all")),
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_shapes_are_those_of_a_real_model(changes):
    config = ModelConfig(**{**SIZES, **changes})
    with torch.device("meta"):
        shapes = Transformer(config)
    real = Transformer(config)
    assert {name: (t.shape, t.dtype) for name, t in shapes.state_dict().items()} == {
        name: (t.shape, t.dtype) for name, t in real.state_dict().items()
    }
    assert {name: t.shape for name, t in shapes.named_buffers()} == {name: t.shape for name, t in real.named_buffers()}
    assert all(t.is_meta for t in (*shapes.parameters(), *shapes.buffers()))
    assert all(p.requires_grad for p in real.parameters())


def test_embeddings_are_drawn_as_torch_draws_them():
    """A recipe's seed means the same weights as before."""
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**SIZES))
    torch.manual_seed(3)
    source = nn.Embedding(SIZES["source_vocabulary_size"], SIZES["d_model"])
    target = nn.Embedding(SIZES["target_vocabulary_size"], SIZES["d_model"])
    assert model.source_embedding is not None
    assert torch.equal(model.source_embedding.weight, source.weight)
    assert torch.equal(model.target_embedding.weight, target.weight)
