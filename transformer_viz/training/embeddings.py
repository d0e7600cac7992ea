"""Reads pretrained embeddings from a file, and refuses a wrong shape before training starts."""

import math
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from transformer_viz import untrusted_files
from transformer_viz.errors import ConfigError, FileError
from transformer_viz.model.config import ModelConfig

Matrix = Tensor
"""(token, width), float32."""
Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)
SUFFIXES = (".npy", ".safetensors")
_LARGEST = 4 * 2**30


def check_fit(matrices: Mapping[Side, Matrix], config: ModelConfig) -> None:
    """Tells whether a model of these sizes can take the matrices.

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


def read_matrix(path: Path) -> Matrix:
    """One matrix from a file.

    Raises:
        ConfigError: as `parse_matrix`; or there is no such file.
    """
    try:
        return parse_matrix(str(path), untrusted_files.read_bytes(path, _LARGEST))
    except FileNotFoundError:
        raise ConfigError(f"There is no file {path}.") from None
    except FileError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error


def parse_matrix(name: str, data: bytes) -> Matrix:
    """One matrix from the bytes of `.npy` (no pickle) or `.safetensors`, as float32; the name tells which.

    Raises:
        ConfigError: it cannot be read, or is not one array of numbers.
    """
    try:
        if name.endswith(".npy"):
            # numpy takes as much memory as the header says, so an array of that size must follow.
            file = BytesIO(data)
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
            except Exception as error:  # numpy reads the header as Python, which can fail in every way
                raise ValueError("no header") from error
            if dtype.kind not in "fiu" or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
                raise ValueError("the header does not describe what follows")
            return torch.from_numpy(np.load(BytesIO(data), allow_pickle=False).astype(np.float32))
        tensors = load(data)
    except (ValueError, TypeError, EOFError, SafetensorError) as error:
        raise ConfigError(f"{name} is no .npy or .safetensors file that can be read ({type(error).__name__}).") from error
    if len(tensors) != 1:
        raise ConfigError(f"{name} holds {len(tensors)} tensors; one matrix is needed.")
    return next(iter(tensors.values())).float()
