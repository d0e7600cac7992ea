"""`train`: the switchboard has every setting, recipes from files, the published settings, TensorBoard."""

import json

import pytest

from tests.needs import needs
from transformer_viz.commands import parse
from transformer_viz.errors import OptionError
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import RECIPES


def recipe_of(*options: str) -> Recipe:
    _, arguments = parse(["train", *options])
    return arguments["recipe"].make()


def test_every_kind_of_switch_reaches_the_recipe():
    recipe = recipe_of(
        *("reverse", "--norm", "residual-post", "--no-attention-bias", "--shared-norm", "--position", "none", "--d-k", "7"),
        *("--sinusoid-base", "50", "--tied-embeddings", "all", "--optimizer", "sgd", "--momentum", "0.5", "--loss", "kl"),
        *(
            "--label-smoothing",
            "0.1",
            "--schedule",
            "one-cycle",
            "--patience",
            "3",
            "--precision",
            "bfloat16",
            "--freeze-embeddings",
        ),
    )
    assert recipe.model == {
        **{"norm": "residual-post", "attention_bias": False, "shared_norm": True, "position": "none", "d_k": 7},
        **{"sinusoid_base": 50.0, "tied_embeddings": "all", "d_ff": 256},
    }
    said = (
        recipe.optimizer,
        recipe.momentum,
        recipe.loss,
        recipe.label_smoothing,
        recipe.schedule,
        recipe.patience,
        recipe.precision,
    )
    assert said == ("sgd", 0.5, "kl", 0.1, "one-cycle", 3, "bfloat16")
    assert recipe.frozen_embeddings


def test_the_published_settings_are_those_of_their_sources():
    toy = recipe_of("german-toy", "--variant", "bias-free")
    assert (toy.optimizer, toy.learning_rate, toy.momentum, toy.steps, toy.batch_size) == ("sgd", 1e-3, 0.99, 30, 2)
    assert (toy.clip, toy.weight_decay, toy.schedule, toy.warm_up) == (None, 0.0, "constant", 0.0)
    reverse = recipe_of("reverse", "--variant", "residual-post-norm")
    assert (reverse.optimizer, reverse.betas, reverse.epsilon, reverse.learning_rate) == ("adam", (0.9, 0.98), 1e-9, 1e-3)
    assert (reverse.epoch_size, reverse.batch_size, reverse.steps) == (50_000, 256, 3 * 196)
    assert reverse.task_options["trained_lengths"] == [10, 19]


def test_epochs_are_steps():
    assert (
        recipe_of("reverse", "--epoch-size", "1000", "--batch-size", "64", "--epochs", "3", "--task-options", "{}").steps == 48
    )
    with pytest.raises(OptionError, match="--epoch-size"):
        recipe_of("reverse", "--epochs", "3")


def test_a_recipe_file_is_the_recipe(tmp_path):
    path = tmp_path / "config.json"
    for data in (RECIPES["dates"].to_json(), {"recipe": RECIPES["dates"].to_json(), "metrics": {}}):
        path.write_text(json.dumps(data), encoding="utf-8")
        assert recipe_of("--recipe-file", str(path)) == RECIPES["dates"]
    assert recipe_of("--recipe-file", str(path), "--steps", "7").steps == 7


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--recipe-file", "broken.json"], "is not JSON"),
        (["--recipe-file", "list.json"], "no recipe"),
        (["--recipe-file", "nothing.json"], "No such file"),
        (["reverse", "--task-options", "5"], "no JSON object"),
        (["reverse", "--task-options", '{"colour": 1}'], "colour"),
        (["sort", "--norm", "sideways"], "residual-post"),
        (["reverse", "--label-smoothing", "1"], "at least 0 and below 1"),
        (["reverse", "--d-model", "8192", "--d-ff", "65536", "--layers", "64"], "GB of memory and the machine has"),
        (["dates", "--tied-embeddings", "all"], "needs one vocabulary"),
        (["reverse", "--source-embedding", "nothing.npy"], "--source-embedding: there is no file nothing.npy"),
        (["reverse", "--recipe-file", "x.json"], "either a TASK"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_and_leave_nothing(cli, tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    done = cli("train", *arguments, "--device", "cpu", "-o", "new")
    assert done.code == 2
    assert named in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert not (tmp_path / "new").exists()


@needs("tensorboard")
def test_tensorboard_gets_the_events(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = ("--d-model", "6", "--heads", "3", "--layers", "1", "--d-ff", "5", "--steps", "10", "--batch-size", "2")
    options = ("--samples", "128", "--device", "cpu", "--tensorboard", "board", "-o", "new")
    assert cli("train", "reverse", *sizes, *options).code == 0
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    assert {"loss", "held_out", "mass_0_2"} <= set(events.Tags()["scalars"])
    header, *rows = (tmp_path / "new" / "history.csv").read_text().splitlines()
    loss = float(dict(zip(header.split(","), rows[-1].split(","), strict=True))["loss"])
    assert events.Scalars("loss")[-1].value == pytest.approx(loss, rel=1e-4)
