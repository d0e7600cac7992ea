"""Schedules at their edges, and recipes that cannot work."""

import json
import math
from typing import Any

import pytest

from tests.tasks import made_dictionary
from transformer_viz import tasks
from transformer_viz.model import variants
from transformer_viz.tasks import german
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import RECIPES

BASE: dict[str, Any] = {
    "task": "reverse",
    "variant": "pre-norm",
    "mix": {"uniform": 1.0},
    "steps": 100,
    "batch_size": 5,
    "learning_rate": 2.0,
}


def test_cosine_rises_to_the_peak_and_falls_to_nothing():
    recipe = Recipe(**BASE, schedule="cosine", warm_up=0.1)
    rates = [recipe.learning_rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[9] == pytest.approx(2.0)
    assert rates[10] == pytest.approx(2.0)
    assert rates[55] == pytest.approx(1.0)
    assert rates[99] == pytest.approx(1 + math.cos(math.pi * 89 / 90))
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("steps", [1, 7, 10, 13, 97])
@pytest.mark.parametrize("warm_up", [0.0, 0.08, 0.25, 1 / 3, 0.9])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_the_learning_rate_is_positive_and_never_above_its_peak(steps, warm_up, schedule):
    """Guards a warm-up that overshoots where its share of the steps is not a whole number."""
    recipe = Recipe(**{**BASE, "steps": steps}, schedule=schedule, warm_up=warm_up)
    for step in range(steps):
        assert 0 < recipe.learning_rate_at(step) <= 2.0


def test_sharpness_ramps_between_its_edges():
    recipe = Recipe(**BASE, sharpness=0.3, sharpness_from=0.5, sharpness_until=0.8)
    assert [recipe.sharpness_at(step) for step in (0, 49, 50)] == [0.0, 0.0, 0.0]
    assert recipe.sharpness_at(65) == pytest.approx(0.15)
    assert [recipe.sharpness_at(step) for step in (80, 99)] == pytest.approx([0.3, 0.3])


def test_lengths_grow_from_eight_to_the_longest():
    recipe = Recipe(**BASE, longest=38, growing_until=0.3)
    assert recipe.top_length_at(0) == 8
    assert recipe.top_length_at(15) == pytest.approx(23)
    assert [recipe.top_length_at(step) for step in (30, 99)] == [38, 38]
    assert Recipe(**BASE, longest=5).top_length_at(0) == 5


@pytest.mark.parametrize("name", RECIPES)
def test_shipped_recipes_make_their_task_and_model(name, tmp_path, monkeypatch):
    monkeypatch.setattr(german, "DICTIONARY", made_dictionary.write(tmp_path / "de-en"))
    recipe = RECIPES[name]
    task = tasks.make(recipe.task, recipe.task_options)
    model = make_model(recipe, task)
    for setting, value in {**variants.settings(recipe.variant), **recipe.model}.items():
        assert getattr(model.config, setting) == value
    assert set(recipe.mix) <= {*task.sources, *task.training_sources}
    json.dumps(recipe.to_json())
