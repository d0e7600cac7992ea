"""`train`: which recipe the options make, what is refused before an hour of training, a tiny run, and how it is stopped."""

import csv
import dataclasses
import errno
import io
import json
import os
import signal
import sys

import pytest

from tests.needs import needs
from transformer_viz import app_folders, load_checkpoint
from transformer_viz.commands import _training, parse
from transformer_viz.errors import OptionError
from transformer_viz.model import variants
from transformer_viz.training import saved_state
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import RECIPES

QUICK = ("--steps", "3", "--batch-size", "2", "--samples", "128", "--device", "cpu")
SIZES = ("--d-model", "6", "--heads", "3", "--layers", "1", "--d-ff", "5")


def recipe_of(options: str) -> Recipe:
    return parse(["train", *options.split()])[1]["recipe"].make()


def test_every_kind_of_option_reaches_the_recipe():
    recipe = recipe_of(
        "reverse --norm residual-post --no-attention-bias --shared-norm --position none --d-k 7 --sinusoid-base 50 "
        "--tied-embeddings all --optimizer sgd --momentum 0.5 --schedule one-cycle --patience 3 --freeze-embeddings"
    )
    sizes = {"norm": "residual-post", "attention_bias": False, "shared_norm": True, "position": "none", "d_k": 7}
    assert recipe.model == {**sizes, "sinusoid_base": 50.0, "tied_embeddings": "all", "d_ff": 256}
    assert (recipe.optimizer, recipe.momentum, recipe.schedule, recipe.patience) == ("sgd", 0.5, "one-cycle", 3)
    assert recipe.frozen_embeddings
    assert recipe_of("reverse --epoch-size 1000 --batch-size 64 --epochs 3 --task-options {}").steps == 48
    with pytest.raises(OptionError, match="--epoch-size"):
        recipe_of("reverse --epochs 3")


def test_published_settings_are_those_of_their_sources():
    toy = recipe_of("german-toy --variant bias-free")
    assert (toy.optimizer, toy.learning_rate, toy.momentum, toy.steps, toy.batch_size) == ("sgd", 1e-3, 0.99, 30, 2)
    assert (toy.clip, toy.weight_decay, toy.schedule, toy.warm_up) == (None, 0.0, "constant", 0.0)
    reverse = recipe_of("reverse --variant residual-post-norm")
    assert (reverse.optimizer, reverse.betas, reverse.epsilon, reverse.learning_rate) == ("adam", (0.9, 0.98), 1e-9, 1e-3)
    assert (reverse.epoch_size, reverse.batch_size, reverse.steps) == (50_000, 256, 3 * 196)
    assert reverse.task_options["trained_lengths"] == [10, 19]


@pytest.mark.parametrize("name", variants.names())
def test_a_variant_has_its_published_sizes(name):
    """Guards defaults of the command that silently replace what was published."""
    recipe = recipe_of(f"reverse --variant {name}")
    assert recipe.variant == name
    assert not set(recipe.model) & set(variants.settings(name))
    assert recipe_of(f"reverse --variant {name} --d-ff 40").model == {"d_ff": 40}


def test_recipes_by_name_and_from_files(tmp_path):
    recipe = recipe_of("--recipe reverse --steps 9 --sharpness 0.5 --seed 5")
    assert recipe == dataclasses.replace(RECIPES["reverse"], steps=9, sharpness=0.5, seed=5)
    path = tmp_path / "config.json"
    for data in (RECIPES["dates"].to_json(), {"recipe": RECIPES["dates"].to_json(), "metrics": {}}):
        path.write_text(json.dumps(data), encoding="utf-8")
        assert recipe_of(f"--recipe-file {path}") == RECIPES["dates"]
    assert recipe_of(f"--recipe-file {path} --steps 7").steps == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "either a TASK, --recipe NAME"),
        ("reverse --recipe-file x.json", "either a TASK"),
        ("../reverse", "choose one of"),
        ("--recipe nope", "reverse, reverse-small"),
        ("reverse --variant nope", "pre-norm"),
        ("reverse --steps 0", "--steps: '0'"),
        ("reverse --task-options 5", "no JSON object"),
        ('reverse --task-options {"colour":1}', "colour"),
        ("reverse --d-model 8192 --d-ff 65536 --layers 64", "GB of memory and the machine has"),
        ("dates --tied-embeddings all", "needs one vocabulary"),
        ("--recipe reverse --d-model 64", "a recipe fixes --d-model"),
        ("--recipe reverse --variant post-norm", "a recipe fixes --variant"),
        ("--recipe reverse --learning-rate 1", "--precision, --patience, --seed can be changed"),
        ("--recipe-file broken.json", "is not JSON"),
        ("--recipe-file list.json", "no recipe"),
        ("--recipe-file nothing.json", "No such file"),
        ("reverse -o home/tiny/config.json/new", "cannot be made"),
    ],
)
def test_impossible_options_are_refused_before_training(home, cli, tmp_path, arguments, words):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    done = cli("train", *("-o new" if " -o " not in arguments else "").split(), *arguments.split())
    assert (done.code, done.out) == (2, "")
    assert words in done.err.splitlines()[-1]
    assert not (tmp_path / "new").exists()


def test_a_tiny_run_to_the_end(home, cli, tmp_path):
    done = cli("train", "reverse", *QUICK, *SIZES, "--seed", "11", "-o", "new/tiny one")
    assert done.code == 0 and "3/3" in done.err
    assert done.out.startswith("exact match") and done.out.endswith("written: new/tiny one\n")
    checkpoint = load_checkpoint(str(tmp_path / "new" / "tiny one"), device="cpu")
    assert (checkpoint.variant, checkpoint.recipe["seed"], checkpoint.recipe["steps"]) == ("pre-norm", 11, 3)
    sizes = checkpoint.network.config
    assert (sizes.d_model, sizes.n_heads, sizes.n_encoder_layers, sizes.n_decoder_layers, sizes.d_ff) == (6, 3, 1, 1, 5)
    assert f"{checkpoint.metrics['exact_match']:.4f}" in done.out.splitlines()[0]
    done = cli("train", "reverse", *QUICK, *SIZES, "--learning-rate", "1e30", "-o", "fallen")
    assert done.code == 2 and not (tmp_path / "fallen").exists()
    assert "fell apart" in done.err.splitlines()[-1] and "--learning-rate" in done.err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [("reverse --variant post-norm --seed 7", "reverse-post-norm-7"), ("--recipe reverse", "reverse-pre-norm-2017")],
)
def test_the_folder_is_named_for_its_recipe(home, cli, monkeypatch, tmp_path, arguments, name):
    calls = []

    def pretend(recipe, folder, **options):
        calls.append((folder, options["replace"], options["samples"]))
        shares = {"exact_match": 1.0, "by_source": {}, "by_length": {}, "best_head_mass": 0.5, "failures": []}
        return {**shares, "best_head": {"layer": 0, "head": 0}, "samples": 1, "seed": 0}

    monkeypatch.setattr(_training, "make_checkpoint", pretend)
    monkeypatch.setattr(app_folders, "ROOT", tmp_path)
    done = cli("train", *arguments.split())
    assert (done.code, calls) == (0, [(tmp_path / "trained" / name, False, 10_000)])
    assert done.out.endswith(f"written: {calls[0][0]}\n")


@pytest.mark.skipif(os.name == "nt", reason="no flock there")
def test_two_do_not_train_into_one_folder(home, cli, tmp_path):
    """The first one's lock is taken here; by whatever name the folder is called, the second one changes nothing."""
    arguments = ("train", "reverse", *QUICK, *SIZES, "-o")
    before = (home / "tiny" / "config.json").read_bytes()
    (tmp_path / "same").symlink_to(home / "tiny")
    with saved_state.training_into(home / "tiny"):
        for name, how in (("home/tiny", "--resume"), ("same", "--resume"), ("home/../home/tiny", "--force")):
            done = cli(*arguments, name, how)
            assert (done.code, done.out) == (2, "")
            assert f"{name} is being trained by another process" in done.err.splitlines()[-1]
    assert (home / "tiny" / "config.json").read_bytes() == before
    assert cli(*arguments, "home/tiny", "--force").code == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_pauses_a_training_and_a_second_one_ends_it(cli, monkeypatch, name, code):
    answers, number = [], getattr(signal, name)

    def pause(recipe, folder, *, control, **options):
        os.kill(os.getpid(), number)
        assert control() == "pause"

    def go_on(recipe, folder, *, control, **options):
        for _ in range(2):
            answers.append(control())
            os.kill(os.getpid(), number)
        pytest.fail("the second one ends it at once")

    before = signal.signal(number, lambda *_: pytest.fail("it was not handled"))
    try:
        monkeypatch.setattr(_training, "make_checkpoint", pause)
        done = cli("train", "reverse", *QUICK, "-o", "x")
        assert done.code == code and done.err.splitlines()[-1].endswith("Go on with --resume.")
        monkeypatch.setattr(_training, "make_checkpoint", go_on)
        assert cli("train", "reverse", *QUICK, "-o", "x").code == code
        # What nohup starts ignores the signal, and goes on ignoring it.
        signal.signal(number, signal.SIG_IGN)
        with pytest.raises(pytest.fail.Exception, match="the second one"):
            cli("train", "reverse", *QUICK, "-o", "x")
        assert answers == ["go on", "pause", "go on", "go on"]
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("written", [0, 100])
def test_a_training_goes_on_when_nobody_reads_its_progress(home, cli, monkeypatch, tmp_path, written):
    """`train … 2>&1 | head -1`, a log on a disk that is full: from the first word, or from the progress bar on."""

    class Leaving(io.StringIO):
        def write(self, text: str) -> int:
            if self.tell() + len(text) > written:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", Leaving())
    assert cli("train", "reverse", *QUICK, *SIZES, "-o", "new").code == 0
    assert load_checkpoint(str(tmp_path / "new"), device="cpu").metrics["samples"] == 128


@needs("tensorboard")
def test_tensorboard_gets_the_events(home, cli, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert cli("train", "reverse", *QUICK, *SIZES, "--steps", "10", "--tensorboard", "board", "-o", "new").code == 0
    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    assert {"loss", "held_out", "mass_0_2"} <= set(events.Tags()["scalars"])
    *_, last = csv.DictReader((tmp_path / "new" / "history.csv").read_text().splitlines())
    assert events.Scalars("loss")[-1].value == pytest.approx(float(last["loss"]), rel=1e-4)
