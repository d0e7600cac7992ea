"""Pretrained embeddings from a file: the right shape is taken, a wrong one refused before anything starts."""

import math
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from transformer_viz import reading
from transformer_viz.errors import ConfigError, FileError
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer

Matrix = Tensor
"""(token, width), float32."""
Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)
SUFFIXES = (".npy", ".safetensors")
_LARGEST = 4 * 2**30


def load_embeddings(source: Path | None, target: Path | None) -> Callable[[Transformer], None]:
    """A function that puts the matrices of the files into a model; a file that is None leaves that side as it is.

    Args:
        source: matrix (source token, d_model), `.npy` or a `.safetensors` file of one matrix.
        target: matrix (target token, d_model).

    Raises:
        ConfigError: a file that cannot be read; from the returned function: a shape that does not fit, with both shapes.
    """
    matrices: dict[Side, Tensor] = {
        side: read_matrix(path) for side, path in zip(SIDES, (source, target), strict=True) if path is not None
    }

    def put(model: Transformer) -> None:
        check_fit(matrices, model.config)
        for side, matrix in matrices.items():
            embedding: nn.Embedding = getattr(model, f"{side}_embedding")
            with torch.no_grad():
                embedding.weight.copy_(matrix)

    return put


def check_fit(matrices: Mapping[Side, Tensor], config: ModelConfig) -> None:
    """Whether a model of these sizes can take the matrices.

    Raises:
        ConfigError: a shape does not fit (both are named), a number is not finite, or the side has no embedding of its own.
    """
    tokens = {"source": config.source_vocabulary_size, "target": config.target_vocabulary_size}
    for side, matrix in matrices.items():
        if side == "source" and config.tied_embeddings == "all":
            raise ConfigError("the source embedding is tied to the target's; give the target's, or untie them")
        given, wanted = tuple(matrix.shape), (tokens[side], config.d_model)
        if given != wanted:
            raise ConfigError(f"the {side} embedding has shape {given}; this model needs {wanted}, tokens by width")
        if not bool(matrix.isfinite().all()):
            raise ConfigError(f"the {side} embedding holds numbers that are not finite")


def read_matrix(path: Path) -> Tensor:
    """One matrix from a file; see `matrix_of`."""
    try:
        return matrix_of(str(path), reading.bytes_of(path, _LARGEST))
    except FileNotFoundError:
        raise ConfigError(f"There is no file {path}.") from None
    except FileError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error


def matrix_of(name: str, data: bytes) -> Tensor:
    """One matrix from the bytes of `.npy` (no pickle) or `.safetensors`, as float32; the name tells which.

    Raises:
        ConfigError: it cannot be read, or is not one array of numbers.
    """
    try:
        if name.endswith(".npy"):
            return torch.from_numpy(_array(data).astype(np.float32))
        tensors = load(data)
    except (ValueError, TypeError, EOFError, SafetensorError) as error:
        raise ConfigError(f"{name} is no .npy or .safetensors file that can be read ({type(error).__name__}).") from error
    if len(tensors) != 1:
        raise ConfigError(f"{name} holds {len(tensors)} tensors; one matrix is needed.")
    return next(iter(tensors.values())).float()


def _array(data: bytes) -> np.ndarray:
    """What an `.npy` file holds. numpy takes as much memory as the header asks for, so that is compared first."""
    file = BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # numpy reads the header as Python, which can fail in every way
        raise ValueError("no header") from error
    if dtype.kind not in "fiu" or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError("the header does not describe what follows")
    return np.load(BytesIO(data), allow_pickle=False)
