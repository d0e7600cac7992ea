"""From a tiny recipe to a folder that loads and decodes."""

import json
import math
from dataclasses import replace

import pytest

from tests.training import tiny
from tests.training.tiny import weights
from transformer_viz import decode, load_checkpoint
from transformer_viz.errors import ConfigError
from transformer_viz.training.make_checkpoint import make_checkpoint
from transformer_viz.training.recipe import Recipe

RECIPE = replace(tiny.RECIPE, variant="residual-post-norm", model={**tiny.SIZES, "max_positions": 17}, seed=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "tiny-one"
    events = []
    metrics = make_checkpoint(RECIPE, folder, device="cpu", samples=41, on_event=events.append)
    return folder, metrics, events


def test_the_folder_loads_and_decodes(made):
    folder, metrics, _ = made
    checkpoint = load_checkpoint(str(folder), device="cpu")
    assert checkpoint.name == "tiny-one"
    assert checkpoint.variant == "residual-post-norm"
    assert checkpoint.task.options() == {**RECIPE.task_options, "held_out_share": 0.0}
    assert checkpoint.metrics == metrics
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())
    trace = decode(checkpoint, "abcab")
    assert trace.made_by["checkpoint"] == "tiny-one"
    assert trace.made_by["variant"] == "residual-post-norm"
    assert trace.source_tokens == ("<start>", *"abcab", "<end>")


def test_the_description_makes_the_same_recipe_again(made):
    folder, metrics, _ = made
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert Recipe.from_json(config["recipe"]) == RECIPE
    assert config["format"] == 1
    assert config["metrics"] == metrics
    assert config["vocabularies"]["source"] == ["<pad>", "<start>", "<end>", "<unk>", *"abcd"]
    assert set(metrics) >= {"exact_match", "by_source", "by_length", "best_head_mass", "seed"}
    assert set(metrics["by_length"]) == {"2", "3", "4", "5"}


def test_history_and_events_are_the_same_numbers(made):
    folder, _, events = made
    # Every 50 steps, and every 10 with a look at held-out texts.
    assert [event.step for event in events] == [10, 20, 30, 40, 50, 60]
    assert all(set(event.checks) == {"held_out", "mass_0_0", "mass_0_1", "mass_0_2"} for event in events)
    lines = (folder / "history.csv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    assert names[:2] == ["step", "loss"]
    assert len(lines) == 7
    for line, event in zip(lines[1:], events, strict=True):
        row = dict(zip(names, line.split(","), strict=True))
        assert int(row["step"]) == event.step
        assert math.isclose(float(row["loss"]), event.loss, rel_tol=1e-5)
        assert row["attention_entropy"] == ""


def test_the_same_recipe_makes_the_same_weights(made, tmp_path):
    folder, metrics, _ = made
    again = make_checkpoint(RECIPE, tmp_path / "again", device="cpu", samples=41)
    assert again == metrics
    assert weights(tmp_path / "again") == weights(folder)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"variant": "nope"}, "'nope'"),
        ({"task": "nope"}, "'nope'"),
        ({"model": {"d_model": 13}}, "d_model=13"),
        ({"model": {"max_positions": 4}}, "max_positions=4"),
        ({"lengths": "growing", "longest": 40, "model": {"max_positions": 17}}, "max_positions=17"),
    ],
)
def test_recipes_that_cannot_work_leave_nothing_behind(tmp_path, change, named):
    """Guards a shape error in the middle of the training, after the lengths have grown past the positions."""
    with pytest.raises(ConfigError, match=named):
        make_checkpoint(replace(RECIPE, **change), tmp_path / "new", device="cpu", samples=41)
    assert not list(tmp_path.iterdir())
