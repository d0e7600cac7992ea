"""A model that is made for its shapes alone has the shapes of a real one, and torch's compiler is not loaded for it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.conftest import SIZES
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

ROOT = Path(__file__).resolve().parents[2]
CHANGES = [
    *({**variants.settings(name), "d_model": 22, "n_heads": 2, "d_k": None, "d_v": None} for name in variants.names()),
    *({"position": position} for position in ("sinusoid", "learned", "none")),
    *({"initialization": initialization} for initialization in ("torch", "xavier-stacks", "xavier")),
    *({"tied_embeddings": tied} for tied in ("none", "output", "all")),
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


def test_a_decoding_does_not_load_the_compiler():
    """It takes 1.4 s, in every new process, and nobody asked for it."""
    program = f"""
import sys
import torch
import transformer_viz as tv
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
for changes in {CHANGES!r}:
    with torch.device("meta"):
        Transformer(ModelConfig(**{{**{SIZES!r}, **changes}}))
assert tv.decode(tv.load_checkpoint("reverse-small"), "reversethis").text
print([name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor", "sympy"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
