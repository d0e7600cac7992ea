"""Pretrained embeddings: the right shape is taken and can be frozen, everything else is refused before training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from transformer_viz import load_checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.training.embeddings import read_matrix
from transformer_viz.training.make_checkpoint import make_checkpoint
from transformer_viz.training.recipe import Recipe

RECIPE = Recipe(
    task="reverse",
    variant="pre-norm",
    task_options={"alphabet": "abc", "max_length": 5, "trained_lengths": [1, 3]},
    model={"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1},
    mix={"uniform": 1.0},
    steps=3,
    batch_size=7,
    learning_rate=0.01,
    frozen_embeddings=True,
)
QUIET: dict[str, Any] = {"device": "cpu", "samples": None}
MATRIX = np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32)


def written(path: Path, matrix: np.ndarray) -> Path:
    if path.suffix == ".npy":
        np.save(path, matrix)
    else:
        save_file({"embedding": torch.from_numpy(matrix)}, path)
    return path


@pytest.mark.parametrize("name", ["e.npy", "e.safetensors"])
def test_frozen_embeddings_are_those_of_the_file(tmp_path, name):
    given: Any = {"source": read_matrix(written(tmp_path / name, MATRIX))}
    make_checkpoint(RECIPE, tmp_path / "new", embeddings=given, **QUIET)
    model = load_checkpoint(str(tmp_path / "new"), device="cpu").model
    assert model.source_embedding is not None
    assert torch.equal(model.source_embedding.weight, torch.from_numpy(MATRIX))
    make_checkpoint(replace(RECIPE, frozen_embeddings=False), tmp_path / "free", embeddings=given, **QUIET)
    free = load_checkpoint(str(tmp_path / "free"), device="cpu").model
    assert free.source_embedding is not None
    assert not torch.equal(free.source_embedding.weight, torch.from_numpy(MATRIX))


@pytest.mark.parametrize("shape", [(12, 7), (7, 11), (8, 12), (7,), (7, 12, 1)])
def test_a_wrong_shape_is_refused_with_both_shapes_and_leaves_nothing(tmp_path, shape):
    given: Any = {"target": read_matrix(written(tmp_path / "e.npy", np.zeros(shape, dtype=np.float32)))}
    with pytest.raises(ConfigError) as caught:
        make_checkpoint(RECIPE, tmp_path / "new", embeddings=given, **QUIET)
    assert str(shape) in str(caught.value)
    assert "(7, 12)" in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_what_is_no_matrix_is_refused(tmp_path):
    (tmp_path / "e.npy").write_bytes(b"nonsense")
    (tmp_path / "e.safetensors").write_bytes(b"nonsense")
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    save_file({"a": torch.zeros(2), "b": torch.zeros(2)}, tmp_path / "two.safetensors")
    for name, said in (
        ("e.npy", "no .npy"),
        ("e.safetensors", "no .npy"),
        ("o.npy", "no .npy"),
        ("two.safetensors", "2 tensors"),
    ):
        with pytest.raises(ConfigError, match=said):
            read_matrix(tmp_path / name)
    given: Any = {"source": read_matrix(written(tmp_path / "nan.npy", np.full((7, 12), np.nan, dtype=np.float32)))}
    with pytest.raises(ConfigError, match="not finite"):
        make_checkpoint(RECIPE, tmp_path / "new", embeddings=given, **QUIET)
    given: Any = {"source": read_matrix(written(tmp_path / "good.npy", MATRIX))}
    tied = replace(RECIPE, model={**RECIPE.model, "tied_embeddings": "all"})
    with pytest.raises(ConfigError, match="tied"):
        make_checkpoint(tied, tmp_path / "new", embeddings=given, **QUIET)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }",
        "{'descr': (), 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 1), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }",
        "(" * 9000,
        "-" * 9000 + "1",
        "[" * 90 + "]" * 90,
        "",
    ],
    ids=lambda header: header[:40],
)
def test_a_header_that_lies_takes_no_memory(tmp_path, header):
    """numpy itself makes an array as large as the header says, and reads the header as Python."""
    text = header.encode() + b"\n"
    (tmp_path / "e.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16))
    with pytest.raises(ConfigError, match=r"no \.npy"):
        read_matrix(tmp_path / "e.npy")


def test_a_matrix_the_other_way_round_in_its_file(tmp_path):
    """What `np.save(matrix.T)` writes."""
    np.save(tmp_path / "e.npy", np.asfortranarray(MATRIX))
    np.testing.assert_array_equal(read_matrix(tmp_path / "e.npy").numpy(), MATRIX)
