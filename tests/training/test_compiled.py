"""A compiled training is the training; a machine without a compiler says so."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from transformer_viz.errors import ConfigError
from transformer_viz.model import variants
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training import loop
from transformer_viz.training.batches import batches
from transformer_viz.training.compiled import compiled
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import Making, make_checkpoint, make_model
from transformer_viz.training.recipe import Recipe

TASK = Reverse("abcd", 7, (2, 5))
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0}
RECIPE = Recipe(
    task="reverse",
    task_options={"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5]},
    variant="pre-norm",
    model=SMALL,
    mix={"uniform": 0.5, "few": 0.5},
    steps=6,
    batch_size=7,
    learning_rate=0.01,
    sharpness=0.1,
    sharpness_from=0.5,
    sharpness_until=0.9,
)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def trained(recipe: Recipe) -> tuple[list[float], dict[str, Any]]:
    trainer = Trainer(make_model(recipe, TASK), batches(recipe, TASK), recipe, torch.device("cpu"))
    return [event.loss for event in trainer.run(lambda step: True)], trainer.model.state_dict()


def test_the_same_weights_come_out(monkeypatch):
    """With autograd compiled too, without a C++ compiler; several lengths, padded and not, and steps with a tap at the end."""
    calls: list[str] = []

    def spied(module):
        calls.append("compiled")
        return compiled(module, backend="aot_eager")

    losses, weights = trained(RECIPE)
    monkeypatch.setattr(loop, "compiled", spied)
    other_losses, other_weights = trained(replace(RECIPE, compiled=True))
    assert calls == ["compiled"]
    assert other_losses == pytest.approx(losses, abs=1e-5)
    for name, weight in weights.items():
        torch.testing.assert_close(other_weights[name], weight, atol=2e-4, rtol=0)


@pytest.mark.parametrize("variant", variants.names())
def test_a_model_is_one_graph(variant):
    """With dropout, as in training; a break in the middle would cost what compiling gains."""
    recipe = replace(RECIPE, variant=variant, model={**SMALL, "dropout": 0.1, "d_k": None, "d_v": None})
    model = make_model(recipe, TASK).train()
    batch = batches(recipe, TASK)(0)
    fast = torch.compile(model, backend="eager", fullgraph=True)
    torch.manual_seed(1)
    found = fast(batch.source, batch.target_in, batch.source_padding, batch.target_padding, tap=None)
    assert found.shape == (*batch.target_in.shape, len(TASK.target_vocabulary))


def test_without_a_compiler_it_is_said_and_nothing_is_left(monkeypatch, tmp_path):
    def missing(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("Failed to find a compiler\n\nand much more")

    monkeypatch.setattr(loop, "compiled", partial(compiled, backend=missing))
    folder = tmp_path / "mine"
    with pytest.raises(ConfigError, match="cannot be compiled here") as error:
        make_checkpoint(replace(RECIPE, compiled=True), folder, Making(samples=None, device="cpu"))
    assert "Failed to find a compiler" in str(error.value)
    assert "and much more" not in str(error.value)
    assert "--compiled" in str(error.value)
    assert not folder.exists()


def test_no_memory_stays_no_memory(monkeypatch):
    """What helps there is a smaller batch, not another compiler."""

    def full(*arguments: Any) -> Any:
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(torch, "compile", lambda module, backend: full)
    with pytest.raises(torch.OutOfMemoryError):
        compiled(torch.nn.Identity())(1)
