"""Train a checkpoint: a shipped recipe, a recipe from a file, or a task with settings of your own.

A training that was stopped goes on with --resume.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer_viz import places, reading
from transformer_viz.commands import _shared, _switches
from transformer_viz.errors import FileError, OptionError, listed
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.training.recipes import RECIPES

HELP = "train a checkpoint"
_LARGEST_RECIPE = 4 * 2**20
_FREE_IN_RECIPES = ("steps", "sharpness", "precision", "patience", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe, or a task and its settings; the folder."""
    parser.add_argument("task", nargs="?", metavar="TASK", help="what to learn, for example reverse, dates or pinyin")
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        help=f"make a shipped checkpoint again, {' or '.join(RECIPES)}; only {_flags(_FREE_IN_RECIPES)} can be changed",
    )
    parser.add_argument("--recipe-file", type=Path, metavar="FILE", help="a recipe as JSON, or a checkpoint's config.json")
    parser.add_argument("--variant", metavar="NAME", help=f"{listed(variants.names())} (pre-norm)")
    parser.add_argument("--task-options", type=_options, metavar="JSON", help="keywords of the task, as in '{\"by\": 3}'")
    parser.add_argument("--epochs", type=_shared.whole(1, 10**6), metavar="N", help="with --epoch-size, instead of --steps")
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="texts of the evaluation at the end (10000)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="(TASK-VARIANT-SEED, where `checkpoints` says)",
    )
    parser.add_argument("--force", action="store_true", help="replace the folder if it is there")
    parser.add_argument("--resume", action="store_true", help="go on with a training that was stopped")
    parser.add_argument(
        "--snapshots", type=_shared.whole(0, 200), default=0, metavar="N", help="weights kept along the way, for the replay (0)"
    )
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="write the events for TensorBoard too")
    _shared.add_device(parser)
    recipe = parser.add_argument_group("training", "what is not given is the published setting's, or a good default")
    _switches.add(recipe, Recipe, _switches.RECIPE)
    model = parser.add_argument_group("model", "the switchboard: what is not given is the variant's")
    model.add_argument("--layers", type=_shared.whole(1, 64), metavar="N", help="layers of the encoder and of the decoder")
    _switches.add(model, ModelConfig, _switches.MODEL)
    embeddings = parser.add_argument_group("embeddings", "a matrix (tokens, width) in .npy or .safetensors")
    for side in ("source", "target"):
        words = f"pretrained, for the {side} tokens"
        embeddings.add_argument(f"--{side}-embedding", type=_shared.existing_file, metavar="FILE", help=words)
    embeddings.add_argument("--freeze-embeddings", action="store_true", help="leave the embeddings as they are")
    # Of the Train page: the folder of the job, in which the page reads events and writes requests.
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """0 when the checkpoint is written, 128 + N when signal N stopped training (130: Ctrl-C) and it can go on."""
    from transformer_viz import tasks
    from transformer_viz.checkpoints import refuse_existing

    recipe = _recipe(arguments)
    task = tasks.make(recipe.task, recipe.task_options)
    model_config(recipe, task)
    task.check_samples(arguments.samples, "--samples ")
    folder = arguments.output or places.trained() / f"{recipe.task}-{recipe.variant}-{recipe.seed}"
    check_place(folder)
    if not arguments.resume:
        refuse_existing(folder, arguments.force)
    from transformer_viz.commands._training import carry_out

    return carry_out(recipe, folder, arguments)


def check_place(folder: Path) -> None:
    """Finds out before training, not after, whether the folder can be made."""
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OptionError(f"{folder} cannot be made: {there} is not a folder that can be written to. Choose another with -o.")


def _recipe(arguments: argparse.Namespace) -> Recipe:
    named = [arguments.task is not None, arguments.recipe is not None, arguments.recipe_file is not None]
    if sum(named) != 1:
        raise OptionError(
            "give either a TASK, --recipe NAME or --recipe-file FILE, as in: train reverse --variant post-norm, "
            "or: train --recipe reverse"
        )
    recipe = _own(arguments) if arguments.task else _changed(arguments)
    return replace(recipe, frozen_embeddings=True) if arguments.freeze_embeddings else recipe


def _changed(arguments: argparse.Namespace) -> Recipe:
    """A named recipe, or one from a file."""
    recipe = _from_file(arguments.recipe_file) if arguments.recipe_file else RECIPES.get(arguments.recipe)
    if recipe is None:
        raise OptionError(f"recipe {arguments.recipe!r} is not known; choose one of {listed(RECIPES)}")
    names = ("variant", "task_options", "epochs", "layers", *_switches.MODEL, *_switches.RECIPE)
    if fixed := _switches.given(arguments, [n for n in names if n not in _FREE_IN_RECIPES]):
        raise OptionError(
            f"a recipe fixes {_flags(fixed)}; only {_flags(_FREE_IN_RECIPES)} can be changed. Or train a TASK with your own"
        )
    return replace(recipe, **_switches.given(arguments, _FREE_IN_RECIPES))


def _from_file(path: Path) -> Recipe:
    try:
        data = reading.json_of(path, _LARGEST_RECIPE)
    except FileError as error:
        raise OptionError(f"{path} cannot be read: {error}. Give a recipe, or a checkpoint's config.json.") from error
    if isinstance(data, dict) and isinstance(data.get("recipe"), dict):
        data = data["recipe"]
    if not isinstance(data, dict):
        raise OptionError(f"{path} holds no recipe. Give a recipe, or a checkpoint's config.json.")
    return Recipe.from_json(data)


def _own(arguments: argparse.Namespace) -> Recipe:
    from transformer_viz.training.recipes import recipe_for

    both = {} if arguments.layers is None else {"n_encoder_layers": arguments.layers, "n_decoder_layers": arguments.layers}
    return recipe_for(
        arguments.task,
        arguments.variant,
        settings=_switches.given(arguments, _switches.RECIPE),
        model={**both, **_switches.given(arguments, _switches.MODEL)},
        task_options=arguments.task_options,
        epochs=arguments.epochs,
    )


def _options(text: str) -> dict[str, Any]:
    try:
        data = reading.parsed(text)
    except FileError:
        data = None
    if not isinstance(data, dict):
        raise argparse.ArgumentTypeError(f'{text[:40]!r} is no JSON object, such as {{"by": 3}}')
    return data


def _flags(names: Any) -> str:
    return listed(_switches.flag(name) for name in names)
