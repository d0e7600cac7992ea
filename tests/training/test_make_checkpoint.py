"""From a tiny recipe to a folder that loads and decodes."""

import csv
import json
import math
from dataclasses import replace

import pytest

from tests.training import tiny
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


def test_the_folder_loads_decodes_and_describes_its_recipe(made):
    folder, metrics, _ = made
    checkpoint = load_checkpoint(str(folder), device="cpu")
    assert (checkpoint.name, checkpoint.variant, checkpoint.metrics) == ("tiny-one", "residual-post-norm", metrics)
    assert checkpoint.task.options() == {**RECIPE.task_options, "held_out_share": 0.0}
    assert not checkpoint.network.training and not any(p.requires_grad for p in checkpoint.network.parameters())
    assert decode(checkpoint, "abcab").source_tokens == ("<start>", *"abcab", "<end>")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert Recipe.from_json(config["recipe"]) == RECIPE
    assert (config["format"], config["metrics"]) == (1, metrics)
    assert config["vocabularies"]["source"] == ["<pad>", "<start>", "<end>", "<unk>", *"abcd"]


def test_history_and_events_are_the_same_numbers(made):
    folder, _, events = made
    # Every 50 steps, and every 10 with a look at held-out texts.
    assert [event.step for event in events] == [10, 20, 30, 40, 50, 60]
    assert all(set(event.checks) == {"held_out", "mass_0_0", "mass_0_1", "mass_0_2"} for event in events)
    rows = list(csv.DictReader((folder / "history.csv").read_text(encoding="utf-8").splitlines()))
    for row, event in zip(rows, events, strict=True):
        assert (int(row["step"]), row["attention_entropy"]) == (event.step, "")
        assert math.isclose(float(row["loss"]), event.loss, rel_tol=1e-5)


def test_lengths_that_grow_past_the_positions_are_refused_before_training(tmp_path):
    """Guards a shape error in the middle of it."""
    with pytest.raises(ConfigError, match="max_positions=17"):
        make_checkpoint(replace(RECIPE, lengths="growing", longest=40), tmp_path / "new", device="cpu", samples=41)
    assert not list(tmp_path.iterdir())
