"""Pretrained embeddings: the right shape is taken and can be frozen, everything else is refused before training."""

import re
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


def saved(path: Path, matrix: np.ndarray) -> Path:
    np.save(path, matrix)
    return path


@pytest.mark.parametrize("name", ["e.npy", "e.safetensors"])
def test_frozen_embeddings_are_those_of_the_file(tmp_path, name):
    # What `np.save(matrix.T)` writes, too: a matrix the other way round in its file.
    saved(tmp_path / "e.npy", np.asfortranarray(MATRIX))
    save_file({"embedding": torch.from_numpy(MATRIX)}, tmp_path / "e.safetensors")
    given: Any = {"source": read_matrix(tmp_path / name)}
    for is_frozen in (True, False):
        folder = tmp_path / f"frozen-{is_frozen}"
        make_checkpoint(replace(RECIPE, frozen_embeddings=is_frozen), folder, embeddings=given, **QUIET)
        model = load_checkpoint(str(folder), device="cpu").network
        assert model.source_embedding is not None
        assert torch.equal(model.source_embedding.weight, torch.from_numpy(MATRIX)) == is_frozen


@pytest.mark.parametrize("shape", [(12, 8), (7, 12), (8,), (8, 12, 1)])
def test_a_wrong_shape_is_refused_with_both_shapes_and_leaves_nothing(tmp_path, shape):
    given: Any = {"target": read_matrix(saved(tmp_path / "e.npy", np.zeros(shape, dtype=np.float32)))}
    with pytest.raises(ConfigError, match=rf"{re.escape(str(shape))}.*\(8, 12\)|\(8, 12\).*{re.escape(str(shape))}"):
        make_checkpoint(RECIPE, tmp_path / "new", embeddings=given, **QUIET)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("matrix", "model", "words"),
    [(np.full((8, 12), np.nan, np.float32), {}, "not finite"), (MATRIX, {"tied_embeddings": "all"}, "tied")],
)
def test_what_the_model_cannot_take_is_refused(tmp_path, matrix, model, words):
    given: Any = {"source": read_matrix(saved(tmp_path / "e.npy", matrix))}
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
    "empty.npy": header(""),
    "two.safetensors": save({"a": torch.zeros(2), "b": torch.zeros(2)}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_no_matrix_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGES[name])
    with pytest.raises(ConfigError, match=r"no \.npy" if name != "two.safetensors" else "2 tensors"):
        read_matrix(tmp_path / name)
