"""Schedules at their edges and against their sources; whatever a recipe says is trained by, or refused in a sentence."""

import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
import torch

from tests.training import tiny
from transformer_viz import tasks
from transformer_viz.errors import TransformerVizError
from transformer_viz.model import variants
from transformer_viz.training import estimate, make_checkpoint
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import RECIPES

RECIPE = replace(tiny.RECIPE, steps=100, learning_rate=2.0)


def test_cosine_rises_to_the_peak_and_falls_to_nothing():
    recipe = replace(RECIPE, schedule="cosine", warm_up=0.1)
    rates = [recipe.learning_rate_at(step) for step in range(100)]
    at = {0: 0.2, 9: 2.0, 10: 2.0, 55: 1.0, 99: 1 + math.cos(math.pi * 89 / 90)}
    assert {step: rates[step] for step in at} == pytest.approx(at)
    assert rates[:10] == sorted(rates[:10]) and rates[10:] == sorted(rates[10:], reverse=True)


def test_the_learning_rate_is_positive_and_never_above_its_peak():
    """Guards a warm-up that overshoots where its share of the steps is not a whole number."""
    for steps, warm_up, schedule in product((1, 7, 10, 13, 97), (0.0, 0.08, 0.25, 1 / 3, 0.9), ("constant", "cosine")):
        recipe = replace(RECIPE, steps=steps, schedule=schedule, warm_up=warm_up)
        assert all(0 < recipe.learning_rate_at(step) <= 2.0 for step in range(steps))


def test_sharpness_ramps_between_its_edges_and_lengths_grow_from_eight_to_the_longest():
    recipe = replace(RECIPE, sharpness=0.3, sharpness_from=0.5, sharpness_until=0.8, longest=38, growing_until=0.3)
    assert [recipe.sharpness_at(step) for step in (0, 49, 50, 65, 80, 99)] == pytest.approx([0, 0, 0, 0.15, 0.3, 0.3])
    assert [recipe.top_length_at(step) for step in (0, 15, 30, 99)] == pytest.approx([8, 23, 38, 38])
    assert replace(RECIPE, longest=5).top_length_at(0) == 5


@pytest.mark.parametrize("steps", [5, 31, 100])
@pytest.mark.parametrize("rise", [0.1, 0.3, 0.5])
def test_one_cycle_is_torchs(steps, rise):
    recipe = replace(RECIPE, steps=steps, schedule="one-cycle", warm_up=rise)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=2.0, total_steps=steps, pct_start=rise, cycle_momentum=False
    )
    for step in range(steps):
        assert recipe.learning_rate_at(step) == pytest.approx(schedule.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step + 1 < steps:
            schedule.step()


def test_inverse_sqrt_is_that_of_the_paper():
    """lr ∝ min(step^-0.5, step · warmup^-1.5), scaled to its peak (Vaswani et al. 2017, equation 3)."""
    recipe = replace(RECIPE, steps=1000, schedule="inverse-sqrt", warm_up=0.1)
    paper = [min(n**-0.5, n * 100**-1.5) * 100**0.5 * 2.0 for n in range(1, 1001)]
    assert [recipe.learning_rate_at(step) for step in range(1000)] == pytest.approx(paper, rel=1e-9)


@pytest.mark.parametrize("name", RECIPES)
def test_shipped_recipes_make_their_task_and_model(name):
    recipe = RECIPES[name]
    task = tasks.make_task(recipe.task, recipe.task_options)
    model = make_checkpoint.make_model(recipe, task)
    for setting, value in {**variants.settings(recipe.variant), **recipe.model}.items():
        assert getattr(model.config, setting) == value
    assert set(recipe.mix) <= {*task.sources, *task.training_sources}
    json.dumps(recipe.to_json())


BASE: dict[str, Any] = {
    "task": "shift",
    "variant": "pre-norm",
    "task_options": {"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5], "held_out_share": 0.1, "by": 2},
    "model": {"d_model": 4, "n_heads": 2, "d_ff": 3, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_positions": 16},
    "mix": {"uniform": 1.0},
    "steps": 1,
    "batch_size": 2,
    "learning_rate": 0.01,
}
NUMBERS = (0, 1, 0.5, -1, 1.0, 1e30, 10**400)
OTHERS = (None, True, "", "growing", "sgd", "x" * 10**5, [], [0.5, 0.5], [1, "x"], {}, {"x": 1})
NAMED = (
    {"uniform": 1.0},
    {"uniform": 0.5, "few": 0.5},
    {"uniform": 0.5, "x": 0.5},
    {"uniform": "1"},
    {"uniform": 2.0, "few": -1},
)


def with_everything(base: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each field, each value of another type or out of range, and the whole."""
    for name in base:
        for value in (*NUMBERS, *OTHERS, *NAMED):
            yield name, value, {**base, name: value}


def recipes() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    whole = Recipe.from_json(BASE).to_json()
    assert set(whole) == {field.name for field in fields(Recipe)}
    yield from with_everything(whole)
    for part in ("task_options", "model"):
        for name, value, changed in with_everything(BASE[part]):
            yield f"{part}.{name}", value, {**BASE, part: changed}
    yield "model.source_vocabulary_size", 7, {**BASE, "model": {**BASE["model"], "source_vocabulary_size": 7}}


@pytest.mark.slow
def test_whatever_a_recipe_says_is_trained_by_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(make_checkpoint, "check_held_out", lambda *_: {})
    monkeypatch.setattr(estimate, "memory_of_machine", lambda: 4 * 2**30)
    trained, refused, wrong = [], [], []
    for number, (name, value, data) in enumerate(recipes()):
        folder = tmp_path / str(number)
        try:
            recipe = Recipe.from_json(json.loads(json.dumps(data)))
            estimate.check_memory(estimate.estimate(recipe))
            stop = "stop" if recipe.steps > 10 else "go on"
            make_checkpoint.make_checkpoint(recipe, folder, device="cpu", samples=None, control=lambda stop=stop: stop)
            trained.append(name)
        except TransformerVizError as error:
            refused.append(name)
            if folder.exists() or len(str(error)) > 2000:
                wrong.append(f"{name}={str(value)[:80]}: {str(error)[:200]}")
        except Exception as error:
            wrong.append(f"{name}={str(value)[:80]}: {error!r}")
    assert not wrong
    assert {field.name for field in fields(Recipe)} <= set(refused)
    assert {"steps", "seed", "betas", "clip", "epoch_size", "mix", "optimizer", "task_options.by", "model.d_ff"} <= set(trained)
