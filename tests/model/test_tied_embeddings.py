"""Tied embeddings are one matrix in two or three places, held and saved once."""

import pytest
import torch
from safetensors.torch import load_file

from transformer_viz import load_checkpoint
from transformer_viz.checkpoints import save_checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.model.config import ModelConfig
from transformer_viz.tasks.reverse import Reverse


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tied", ["output", "all"])
def test_tied_is_untied_with_equal_weights(make_model, ids, tied, bias):
    one = make_model(3, tied_embeddings=tied, output_bias=bias)
    other = make_model(4, output_bias=bias)
    weights = one.state_dict()
    matrix = weights["target_embedding.weight"]
    assert "output.weight" not in weights
    assert ("source_embedding.weight" in weights) == (tied == "output")
    other.load_state_dict({"output.weight": matrix, "source_embedding.weight": matrix, **weights})
    source, target = ids(1, 3, 5), ids(2, 3, 7)
    torch.testing.assert_close(one(source, target), other(source, target), rtol=0, atol=1e-12)


def test_a_gradient_reaches_the_one_matrix_from_both_ends(make_model, ids):
    model = make_model(3, tied_embeddings="all").requires_grad_(True)
    model(ids(1, 2, 5), ids(2, 2, 3)).sum().backward()
    gradient = model.target_embedding.weight.grad
    assert gradient is not None
    assert bool((gradient.abs().sum(-1) > 0).all()), "through the output every row is reached, read or not"


def test_two_vocabularies_cannot_be_tied():
    with pytest.raises(ConfigError, match="the source has 7 tokens and the target 11"):
        ModelConfig(source_vocabulary_size=7, target_vocabulary_size=11, tied_embeddings="all")


def test_a_tied_checkpoint_comes_back(tmp_path, make_model, ids):
    task = Reverse("helo abcd", 11, (1, 11))
    model = make_model(3, tied_embeddings="all").float()
    save_checkpoint(tmp_path / "tied", model, task, variant="pre-norm", recipe={}, metrics={})
    assert "source_embedding.weight" not in load_file(tmp_path / "tied" / "model.safetensors")
    again = load_checkpoint(str(tmp_path / "tied"), device="cpu").model
    assert torch.equal(again(ids(1, 3, 5), ids(2, 3, 7)), model(ids(1, 3, 5), ids(2, 3, 7)))
