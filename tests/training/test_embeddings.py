"""Pretrained embeddings: the right shape is taken and can be frozen, everything else is refused before training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from tests.training import tiny
from tests.training.tiny import QUIET
from transformer_viz import load_checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.training.embeddings import read_matrix
from transformer_viz.training.make_checkpoint import make_checkpoint

RECIPE = replace(tiny.RECIPE, steps=3, frozen_embeddings=True)
MATRIX = np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)


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


@pytest.mark.parametrize("shape", [(12, 8), (8, 11), (7, 12), (8,), (8, 12, 1)])
def test_a_wrong_shape_is_refused_with_both_shapes_and_leaves_nothing(tmp_path, shape):
    given: Any = {"target": read_matrix(written(tmp_path / "e.npy", np.zeros(shape, dtype=np.float32)))}
    with pytest.raises(ConfigError) as caught:
        make_checkpoint(RECIPE, tmp_path / "new", embeddings=given, **QUIET)
    assert str(shape) in str(caught.value)
    assert "(8, 12)" in str(caught.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("matrix", "model", "words"),
    [(np.full((8, 12), np.nan, np.float32), {}, "not finite"), (MATRIX, {"tied_embeddings": "all"}, "tied")],
)
def test_what_the_model_cannot_take_is_refused(tmp_path, matrix, model, words):
    given: Any = {"source": read_matrix(written(tmp_path / "e.npy", matrix))}
    with pytest.raises(ConfigError, match=words):
        make_checkpoint(replace(RECIPE, model={**tiny.SIZES, **model}), tmp_path / "new", embeddings=given, **QUIET)


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n" + bytes(16)


DAMAGES = {
    "nonsense.npy": b"nonsense",
    "nonsense.safetensors": b"nonsense",
    # numpy itself makes an array as large as the header says, and reads the header as Python.
    "large.npy": header("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }"),
    "negative.npy": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }"),
    "untyped.npy": header("{'descr': (), 'fortran_order': False, 'shape': (2, 2), }"),
    "objects.npy": header("{'descr': '|O', 'fortran_order': False, 'shape': (2, 1), }"),
    "records.npy": header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }"),
    "deep.npy": header("(" * 9000),
    "signs.npy": header("-" * 9000 + "1"),
    "lists.npy": header("[" * 90 + "]" * 90),
    "empty.npy": header(""),
    "two.safetensors": save({"a": torch.zeros(2), "b": torch.zeros(2)}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_no_matrix_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGES[name])
    with pytest.raises(ConfigError, match=r"no \.npy" if name != "two.safetensors" else "2 tensors"):
        read_matrix(tmp_path / name)


def test_a_matrix_the_other_way_round_in_its_file(tmp_path):
    """What `np.save(matrix.T)` writes."""
    np.save(tmp_path / "e.npy", np.asfortranarray(MATRIX))
    np.testing.assert_array_equal(read_matrix(tmp_path / "e.npy").numpy(), MATRIX)
