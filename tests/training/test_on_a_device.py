"""A training step on a device that has shapes and no numbers: whoever asked it for one, or mixed devices, would fail.

That is what makes a GPU wait, and it needs none to be found.
"""

from typing import Any

import pytest
import torch

from transformer_viz import tasks
from transformer_viz.model import variants
from transformer_viz.training.batch import make_batch
from transformer_viz.training.defaults import recipe_for
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model

META = torch.device("meta")
EVEN, PADDED = ["hello", "world"], ["hello", "you"]
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 13, "d_k": None, "d_v": None, "n_encoder_layers": 2, "n_decoder_layers": 2}


@pytest.mark.parametrize(
    ("texts", "sharpness"),
    [
        (EVEN, 0.0),
        (PADDED, 0.3),
        pytest.param(EVEN, 0.3, marks=pytest.mark.slow),
        pytest.param(PADDED, 0.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("variant", variants.names())
def test_a_step_asks_the_device_for_nothing(variant, texts, sharpness):
    settings: dict[str, Any] = {"optimizer": "sgd", "clip": 1.0, "label_smoothing": 0.1, "sharpness": sharpness}
    settings |= {"sharpness_from": 0.0, "sharpness_until": 1e-9}
    recipe = recipe_for("reverse", variant, settings=settings, model={**SIZES, "dropout": 0.1})
    task = tasks.make(recipe.task, recipe.task_options)
    trainer = Trainer(make_model(recipe, task), lambda step: batch, recipe, META)
    batch = make_batch(task, texts).to(META)
    assert (batch.source_padding is None) == (len({len(text) for text in texts}) == 1)
    trainer.step = 1
    assert recipe.sharpness_at(trainer.step) == sharpness
    assert trainer._one_step(False) is None
    gradients = {name: weight.grad for name, weight in trainer.model.named_parameters()}
    assert all(gradient is not None and gradient.device == META for gradient in gradients.values())
    with pytest.raises(RuntimeError):
        trainer._one_step(True)  # a report is numbers: this is where one waits, every 50 steps
