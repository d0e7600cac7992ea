"""How far a training is, as one file: weights, the optimizer's moments, the step and the history, written in one move.

safetensors and JSON only, so nothing in it can run.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_viz import reading
from transformer_viz.errors import CheckpointError, FileError
from transformer_viz.training.loop import Trainer
from transformer_viz.writing import write_tensors

Row = dict[str, float | None]
_LARGEST_HEADER = 64 * 2**20
"""Bytes of a state's names and words; the whole history is among them."""


def save_state(trainer: Trainer, history: list[Row], path: Path, more: Mapping[str, Any] | None = None) -> None:
    """Writes the state beside `path` and moves it there: a kill leaves the old file or the new one."""
    tensors = {f"model.{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    for number, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    words = {"step": trainer.step, "history": history, **(more or {})}
    write_tensors(tensors, path, {"state": json.dumps(words)})


def load_state(trainer: Trainer, path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Brings a trainer to where the file is; returns the history, and what else was saved with it.

    Raises:
        CheckpointError: the file is damaged, or of another training.
    """
    try:
        with reading.tensors(path, _most(trainer), _LARGEST_HEADER) as file:
            words = json.loads((file.metadata() or {})["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        step, history = words.pop("step"), [_row(row) for row in words.pop("history")]
        if type(step) is not int or not 0 <= step <= trainer.recipe.steps:
            raise ValueError("no step of this training")
        more = _row(words)
        if not all(math.isfinite(number or 0) for number in more.values()) or None in more.values():
            raise ValueError("no numbers")
        weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
        trainer.model.load_state_dict(weights)
        _load_optimizer(trainer, {name: tensor for name, tensor in tensors.items() if name.startswith("optimizer.")})
    except (OSError, FileError, RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        why = error if isinstance(error, FileError) else type(error).__name__
        raise CheckpointError(f"{path} is damaged or belongs to another training ({why}). Start again with --force.") from error
    trainer.step = step
    return history, more


def _load_optimizer(trainer: Trainer, tensors: Mapping[str, Tensor]) -> None:
    parameters = [parameter for group in trainer.optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        _, number, moment = name.split(".", 2)
        if tensor.dim() and tensor.shape != parameters[int(number)].shape:
            raise ValueError(f"{name} is not of its weight's shape")
        state.setdefault(int(number), {})[moment] = tensor
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})


def _most(trainer: Trainer) -> int:
    """The most bytes of a state: the weights, two moments of each in double precision, and the words."""
    return _LARGEST_HEADER + 8 * sum(weight.nbytes for weight in trainer.model.state_dict().values())


def _row(row: Any) -> Row:
    """Numbers, or nothing, by their names."""
    if not all(value is None or type(value) in (int, float) for value in dict(row).values()):
        raise ValueError("no row of a history")
    return dict(row)
