"""Pretrained embeddings from a file: the right shape is taken, a wrong one refused before anything starts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from transformer_viz.errors import ConfigError
from transformer_viz.model.transformer import Transformer

_LARGEST = 4 * 2**30


def load_embeddings(source: Path | None, target: Path | None) -> Callable[[Transformer], None]:
    """A function that puts the matrices of the files into a model; a file that is None leaves that side as it is.

    Args:
        source: matrix (source token, d_model), `.npy` or a `.safetensors` file of one matrix.
        target: matrix (target token, d_model).

    Raises:
        ConfigError: a file that cannot be read; from the returned function: a shape that does not fit, with both shapes.
    """
    matrices = {side: read_matrix(path) for side, path in (("source", source), ("target", target)) if path is not None}

    def put(model: Transformer) -> None:
        for side, matrix in matrices.items():
            put_embedding(getattr(model, f"{side}_embedding"), matrix, side)

    return put


def put_embedding(embedding: nn.Embedding | None, matrix: Tensor, side: str) -> None:
    """Overwrites an embedding's weights.

    Raises:
        ConfigError: the shape does not fit, or a number is not finite.
    """
    if embedding is None:
        raise ConfigError(f"the {side} embedding is tied to the target's; give the target's, or untie them")
    given, wanted = tuple(matrix.shape), tuple(embedding.weight.shape)
    if given != wanted:
        raise ConfigError(f"the {side} embedding has shape {given}; this model needs {wanted}, tokens by width")
    if not bool(matrix.isfinite().all()):
        raise ConfigError(f"the {side} embedding holds numbers that are not finite")
    with torch.no_grad():
        embedding.weight.copy_(matrix)


def read_matrix(path: Path) -> Tensor:
    """One matrix from `.npy` (no pickle) or `.safetensors`, as float32."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is larger than {_LARGEST // 2**30} GB.")
        if path.suffix == ".npy":
            return torch.from_numpy(np.load(path, allow_pickle=False).astype(np.float32))
        tensors = load_file(path)
    except (ValueError, TypeError, EOFError, SafetensorError) as error:
        raise ConfigError(f"{path} is no .npy or .safetensors file that can be read ({type(error).__name__}).") from error
    if len(tensors) != 1:
        raise ConfigError(f"{path} holds {len(tensors)} tensors; one matrix is needed.")
    return next(iter(tensors.values())).float()
