"""The command line below the form of Train: what it trains is what the form says."""

import shlex
import subprocess
from dataclasses import replace

import pytest

from transformer_viz import commands, tasks
from transformer_viz.model import variants
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views.train import form
from transformer_viz.views.train.form import command


def recipe_of(line: str) -> Recipe:
    """What the command line would train."""
    words = shlex.split(line.replace("\\\n", " "))
    assert words[:4] == ["python", "-m", "transformer_viz", "train"]
    return commands.parse(words[3:])[1]["recipe"].make()


def same_training(given: Recipe, wanted: Recipe) -> None:
    """A setting may be said or left to the variant: what is trained is the same."""
    assert model_config(given, tasks.make_task(given.task, given.task_options)) == model_config(
        wanted, tasks.make_task(wanted.task, wanted.task_options)
    )
    assert {**given.to_json(), "model": None} == {**wanted.to_json(), "model": None}


@pytest.mark.parametrize("task", ["reverse", "sort", "german-toy"])
@pytest.mark.parametrize("variant", variants.names())
def test_the_command_trains_what_the_form_says(task: str, variant: str) -> None:
    base = recipe_for(task, variant)
    own_width = {"d_k": None, "d_v": None} if "d_k" in variants.settings(variant) else {}
    sizes = {"d_model": 24, "n_heads": 2, "n_encoder_layers": 5, "attention_bias": False, "dropout": 0.3, **own_width}
    recipe = replace(base, model={**base.model, **sizes}, steps=19, learning_rate=0.1 + 0.2, optimizer="sgd")
    for wanted in (base, recipe):
        line = command(task, variant, form.changes(wanted), folder="trained/mine", snapshots=24, samples=2000)
        same_training(recipe_of(line), wanted)


HOSTILE = "a'; rm -rf ~ \"$(x)\n-o"


@pytest.mark.parametrize(
    ("folder", "read"),
    [(f"trained/{HOSTILE}", f"trained/{HOSTILE}"), (f"~/{HOSTILE}", f"/home/me/{HOSTILE}"), ("~root/~", "~root/~")],
)
def test_a_hostile_name_is_one_word_of_a_shell(folder: str, read: str) -> None:
    line = command("reverse", "pre-norm", {}, folder=folder, snapshots=1, samples=1)
    words = shlex.split(line)
    assert words[-2:] == ["-o", folder]
    said = subprocess.run(
        ["sh", "-c", f"printf '%s|' {line.rpartition(' -o ')[2]}"], env={"HOME": "/home/me"}, capture_output=True, check=True
    )
    assert said.stdout.decode() == f"{read}|"
