"""Batches made in other processes are those of the steps, in any order, and their errors arrive as they were."""

import multiprocessing
from dataclasses import replace

import pytest
import torch

from transformer_viz.errors import ConfigError
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training import prefetch
from transformer_viz.training.batch import Batch
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.prefetch import Prefetch, num_workers
from transformer_viz.training.recipe import Recipe

TASK = Reverse("abcd", 7, (2, 5))
RECIPE = Recipe(
    task="reverse",
    variant="pre-norm",
    model={"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1},
    mix={"uniform": 0.5, "few": 0.5},
    steps=12,
    batch_size=5,
    learning_rate=0.01,
)
CPU = torch.device("cpu")
# Of machines with one core, and of Python from 3.12 on; a fork is what torch itself takes on Linux.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
forking = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")


def numbers(batch: Batch) -> list[object]:
    """Everything in a batch, as plain data."""
    parts = (batch.source, batch.target_in, batch.target_out, batch.source_padding, batch.target_padding)
    return [None if part is None else part.tolist() for part in parts]


@forking
@pytest.mark.parametrize("workers_ahead", [1, 2])
def test_every_step_has_its_batch_also_after_a_jump(workers_ahead):
    """A training that goes on after a stop begins in the middle."""
    plain, made = batches(RECIPE, TASK), Prefetch(batches(RECIPE, TASK), RECIPE.steps, workers_ahead, is_pinned=False)
    for step in (0, 1, 2, 7, 8, 9, 10, 11, 3, 4):
        assert numbers(made(step)) == numbers(plain(step))


@forking
def test_a_training_is_the_same():
    def trained(batch_at):
        trainer = Trainer(make_model(RECIPE, TASK), batch_at, RECIPE, CPU)
        losses = [event.loss for event in trainer.run(lambda step: True)]
        return losses, trainer.model.state_dict()

    losses, weights = trained(batches(RECIPE, TASK))
    other_losses, other_weights = trained(Prefetch(batches(RECIPE, TASK), RECIPE.steps, 2, is_pinned=False))
    assert losses == other_losses
    assert all(torch.equal(weights[name], other_weights[name]) for name in weights)


@forking
def test_an_error_is_said_in_its_own_words():
    def batch_at(step: int) -> Batch:
        if step == 1:
            raise ConfigError("no text of this length")
        return batches(RECIPE, TASK)(step)

    made = Prefetch(batch_at, 3, 2, is_pinned=False)
    made(0)
    with pytest.raises(ConfigError) as error:
        made(1)
    assert str(error.value) == "no text of this length"


@forking
def test_nobody_works_on_when_the_training_is_over():
    others = set(multiprocessing.active_children())
    made = Prefetch(batches(RECIPE, TASK), 1000, 2, is_pinned=False)
    made(0)
    workers_ahead = set(multiprocessing.active_children()) - others
    assert len(workers_ahead) == 2
    del made
    assert not any(maker.is_alive() for maker in workers_ahead)


def test_a_cpu_makes_its_own_batches_and_gpus_share_the_cores(monkeypatch):
    monkeypatch.setattr(prefetch.sys, "platform", "linux")
    monkeypatch.setattr(prefetch.multiprocessing, "get_all_start_methods", lambda: ["fork", "spawn"])
    gpu = torch.device("cuda")
    for cores, n_trainings, wanted in ((16, 1, 8), (16, 4, 3), (4, 1, 3), (1, 1, 0), (2, 8, 0)):
        monkeypatch.setattr(prefetch.os, "sched_getaffinity", lambda process, n=cores: set(range(n)), raising=False)
        assert num_workers(gpu, n_trainings) == wanted
        assert num_workers(CPU, n_trainings) == 0
    monkeypatch.setattr(prefetch.sys, "platform", "darwin")
    assert num_workers(gpu) == 0


def test_moving_and_pinning_touch_every_part():
    batch = batches(replace(RECIPE, batch_size=9), TASK)(0)
    assert batch.source_padding is not None
    moved = batch.to(torch.device("meta"))
    assert {part.device.type for part in vars(moved).values()} == {"meta"}
    assert numbers(batch.to(CPU)) == numbers(batch)
    seen: list[torch.Tensor] = []
    batch._each(lambda part: seen.append(part) or part)
    assert {id(part) for part in seen} == {id(part) for part in vars(batch).values()}
