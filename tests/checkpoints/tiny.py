"""A tiny untrained checkpoint, written to a folder."""

from pathlib import Path
from typing import Any

import torch

from transformer_viz import checkpoints
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.tasks.task import Task

TASK = Reverse("abcd", 7, (1, 5))


def tiny_model(seed: int = 0, task: Task = TASK, **changes: Any) -> Transformer:
    """A random model with the vocabularies of a task."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "d_model": 6,
        "n_heads": 3,
        "d_ff": 5,
        "n_encoder_layers": 1,
        "n_decoder_layers": 2,
        "max_positions": 11,
    }
    sizes |= {"source_vocabulary_size": len(task.source_vocabulary), "target_vocabulary_size": len(task.target_vocabulary)}
    return Transformer(ModelConfig(**sizes | changes))


def save(folder: Path, **changes: Any) -> None:
    arguments: dict[str, Any] = {
        "variant": "pre-norm",
        "recipe": {"steps": 3, "note": "ä␣"},
        "metrics": {"exact_match": 0.5},
        "history": [{"step": 1234567, "loss": 0.25, "entropy": None}, {"step": 1234568, "held_out": 1 / 3}],
    }
    checkpoints.save_checkpoint(folder, tiny_model(), TASK, **{**arguments, **changes})
