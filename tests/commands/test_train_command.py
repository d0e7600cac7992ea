"""`train`: which recipe the options make, what is refused before an hour of training, and a tiny run to the end."""

import dataclasses
import errno
import io
import os
import signal
import sys

import pytest

from transformer_viz import load_checkpoint, places
from transformer_viz.commands import parse
from transformer_viz.model import variants
from transformer_viz.training import in_progress
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import RECIPES

QUICK = ("--steps", "3", "--batch-size", "2", "--samples", "128", "--device", "cpu")
SIZES = ("--d-model", "6", "--heads", "3", "--layers", "1", "--d-ff", "5")


@pytest.fixture
def recipe_of():
    """`recipe_of("reverse", "--steps", "7")`: the recipe that these options make."""

    def make(*options: str) -> Recipe:
        _, arguments = parse(["train", *options])
        return arguments["recipe"].make()

    return make


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Training itself is replaced: `made` collects (recipe, folder, keywords)."""
    from transformer_viz.commands import _training

    calls: list[tuple] = []

    def pretend(recipe, folder, **options):
        calls.append((recipe, folder, options))
        shares = {"exact_match": 1.0, "by_source": {}, "by_length": {}, "best_head_mass": 0.5, "failures": []}
        return {**shares, "best_head": {"layer": 0, "head": 0}, "samples": 1, "seed": 0}

    monkeypatch.setattr(_training, "make_checkpoint", pretend)
    monkeypatch.setattr(places, "ROOT", tmp_path)
    return calls


def test_a_tiny_run_to_the_end(home, cli, tmp_path):
    done = cli("train", "reverse", *QUICK, *SIZES, "--seed", "11", "-o", "new/tiny one")
    assert done.code == 0
    assert done.out.startswith("exact match")
    assert done.out.endswith("written: new/tiny one\n")
    assert "3/3" in done.err
    checkpoint = load_checkpoint(str(tmp_path / "new" / "tiny one"), device="cpu")
    assert checkpoint.variant == "pre-norm"
    assert checkpoint.recipe["seed"] == 11
    assert checkpoint.recipe["steps"] == 3
    sizes = checkpoint.model.config
    assert (sizes.d_model, sizes.n_heads, sizes.n_encoder_layers, sizes.n_decoder_layers, sizes.d_ff) == (6, 3, 1, 1, 5)
    assert f"{checkpoint.metrics['exact_match']:.4f}" in done.out.splitlines()[0]


def test_training_that_falls_apart_is_said_and_leaves_nothing(home, cli, tmp_path):
    done = cli("train", "reverse", *QUICK, *SIZES, "--learning-rate", "1e30", "-o", "new")
    assert done.code == 2
    assert "fell apart" in done.err.splitlines()[-1]
    assert "--learning-rate" in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "either a TASK, --recipe NAME"),
        (["reverse", "--recipe", "reverse"], "either a TASK, --recipe NAME"),
        (["nope"], "choose one of"),
        (["../reverse"], "choose one of"),
        (["--recipe", "nope"], "reverse, reverse-small"),
        (["reverse", "--variant", "nope"], "pre-norm"),
        (["reverse", "--steps", "0"], "--steps: '0'"),
        (["reverse", "--batch-size", "-3"], "--batch-size: '-3'"),
        (["reverse", "--seed", "-1"], "--seed: '-1'"),
        (["reverse", "--learning-rate", "nan"], "'nan'"),
        (["reverse", "--learning-rate", "0"], "above 0"),
        (["reverse", "--sharpness", "-0.1"], "a number from 0"),
        (["reverse", "--sharpness", "inf"], "'inf'"),
        (["--recipe", "reverse", "--d-model", "64"], "a recipe fixes --d-model"),
        (["--recipe", "reverse", "--variant", "post-norm"], "a recipe fixes --variant"),
        (["--recipe", "reverse", "--layers", "1"], "a recipe fixes --layers"),
        (
            ["--recipe", "reverse", "--learning-rate", "1"],
            "--precision, --patience, --seed can be changed",
        ),
        (["reverse", "-o", "home/tiny/config.json/new"], "cannot be made"),
    ],
    ids=str,
)
def test_mistakes_are_found_before_anything_is_trained(home, mistake, made, arguments, named):
    assert named in mistake("train", *arguments)
    assert not made


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["reverse"], "reverse-pre-norm-0"),
        (["reverse", "--variant", "post-norm", "--seed", "7"], "reverse-post-norm-7"),
        (["--recipe", "reverse"], "reverse-pre-norm-2017"),
        (["--recipe", "reverse", "--seed", "3"], "reverse-pre-norm-3"),
    ],
    ids=str,
)
def test_the_folder_says_what_it_is(home, cli, made, tmp_path, arguments, name):
    done = cli("train", *arguments)
    assert done.code == 0
    ((_, folder, options),) = made
    assert folder == tmp_path / "trained" / name
    assert options["replace"] is False
    assert options["samples"] == 10_000
    assert done.out.endswith(f"written: {folder}\n")


@pytest.mark.skipif(os.name == "nt", reason="no flock there")
def test_two_do_not_train_into_one_folder(home, cli, tmp_path):
    """The first one's lock is held here; by whatever name the folder is called, the second is told, and changes nothing."""
    arguments = ("train", "reverse", *QUICK, *SIZES, "-o")
    before = (home / "tiny" / "config.json").read_bytes()
    (tmp_path / "same").symlink_to(home / "tiny")
    with in_progress.locked(home / "tiny"):
        for name, how in (("home/tiny", "--resume"), ("same", "--resume"), ("home/../home/tiny", "--force")):
            done = cli(*arguments, name, how)
            assert (done.code, done.out) == (2, "")
            assert f"{name} is being trained by another process" in done.err.splitlines()[-1]
    assert (home / "tiny" / "config.json").read_bytes() == before
    assert cli(*arguments, "home/tiny", "--force").code == 0


# Options to recipes


@pytest.mark.parametrize("name", variants.names())
def test_a_variant_keeps_its_own_sizes(recipe_of, name):
    """Guards defaults of the command that silently replace what was published."""
    recipe = recipe_of("reverse", "--variant", name)
    assert recipe.variant == name
    assert not set(recipe.model) & set(variants.settings(name))
    assert recipe_of("reverse", "--variant", name, "--d-ff", "40").model == {"d_ff": 40}


def test_overrides_reach_a_recipe(recipe_of):
    recipe = recipe_of("--recipe", "reverse", "--steps", "9", "--sharpness", "0.5", "--seed", "5")
    assert recipe == dataclasses.replace(RECIPES["reverse"], steps=9, sharpness=0.5, seed=5)


# Ended from outside


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_pauses_a_training_and_is_its_exit_code(cli, monkeypatch, tmp_path, name, code):
    from transformer_viz.commands import _training

    answers = []
    number = getattr(signal, name)

    def pretend(recipe, folder, *, control, **options):
        for _ in range(2):
            answers.append(control())
            os.kill(os.getpid(), number)
        pytest.fail("the second one ends it at once")

    def pause(recipe, folder, *, control, **options):
        os.kill(os.getpid(), number)
        assert control() == "pause"

    before = signal.signal(number, lambda *_: pytest.fail("it was not heard"))
    try:
        monkeypatch.setattr(_training, "make_checkpoint", pause)
        done = cli("train", "reverse", *QUICK, "-o", str(tmp_path / "x"))
        assert done.code == code
        assert done.err.splitlines()[-1].endswith("Go on with --resume.")
        monkeypatch.setattr(_training, "make_checkpoint", pretend)
        assert cli("train", "reverse", *QUICK, "-o", str(tmp_path / "x")).code == code
        assert answers == ["go on", "pause"]
        # As with nohup: what is to be ignored stays so, and the second one finds no end.
        signal.signal(number, signal.SIG_IGN)
        with pytest.raises(pytest.fail.Exception, match="the second one"):
            cli("train", "reverse", *QUICK, "-o", str(tmp_path / "x"))
        assert answers == ["go on", "pause", "go on", "go on"]
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("heard", [0, 100])
def test_a_training_goes_on_when_nobody_watches_it_any_more(home, cli, monkeypatch, tmp_path, heard):
    """`train … 2>&1 | head -1`, a log on a disk that is full: from the first word, or from the progress bar on."""

    class Leaving(io.StringIO):
        def write(self, text: str) -> int:
            if self.tell() + len(text) > heard:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", Leaving())
    assert cli("train", "reverse", *QUICK, *SIZES, "-o", "new").code == 0
    assert load_checkpoint(str(tmp_path / "new"), device="cpu").metrics["samples"] == 128
