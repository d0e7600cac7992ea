"""A training step on another device than the CPU: `meta` has shapes alone, and refuses tensors of two devices."""

from typing import Any

import pytest
import torch

from transformer_viz import tasks
from transformer_viz.model import variants
from transformer_viz.training.batches import make_batch
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipes import recipe_for

META = torch.device("meta")
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 13, "d_k": None, "d_v": None, "n_encoder_layers": 2, "n_decoder_layers": 2}


@pytest.mark.parametrize("texts", [["hello", "world"], ["hello", "you"]], ids=["of one length", "padded"])
@pytest.mark.parametrize("variant", variants.names())
def test_everything_in_a_step_is_on_the_device(variant, texts):
    settings: dict[str, Any] = {"optimizer": "sgd", "clip": 1.0, "label_smoothing": 0.1, "sharpness": 0.3}
    settings |= {"sharpness_from": 0.0, "sharpness_until": 1e-9}
    recipe = recipe_for("reverse", variant, settings=settings, model={**SIZES, "dropout": 0.1})
    task = tasks.make(recipe.task, recipe.task_options)
    trainer = Trainer(make_model(recipe, task), lambda step: make_batch(task, texts), recipe, META)
    for _ in range(2):  # the second one with the entropy's weight
        assert trainer.take_step(report=False) is None
    gradients = [weight.grad for weight in trainer.model.parameters()]
    assert all(gradient is not None and gradient.device == META for gradient in gradients)
