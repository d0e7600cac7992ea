"""Train a checkpoint: a shipped recipe, or a task with settings of your own."""

import argparse
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.errors import ConfigError, OptionError, listed
from transformer_viz.model import variants
from transformer_viz.training.recipe import RECIPES

if TYPE_CHECKING:
    from transformer_viz.training.loop import Event
    from transformer_viz.training.recipe import Recipe

HELP = "train a checkpoint"
_ROOT = Path(__file__).resolve().parents[2]
_COUNT = _shared.whole(1, 10**9)
_DEFAULTS: dict[str, Any] = {"steps": 2000, "batch_size": 128, "learning_rate": 2e-3}
_MODEL_OPTIONS = {
    "d_model": "width of the model",
    "n_heads": "heads per attention; must divide the width",
    "n_encoder_layers": "layers of the encoder",
    "n_decoder_layers": "layers of the decoder",
    "d_ff": "width of the feed-forward layer",
}
_RECIPE_OPTIONS = {
    "steps": (_COUNT, "N", f"batches to train on ({_DEFAULTS['steps']}, or the recipe's)"),
    "batch_size": (_COUNT, "N", f"strings in a batch ({_DEFAULTS['batch_size']})"),
    "learning_rate": (_shared.decimal(0, or_equal=False), "X", f"the highest one ({_DEFAULTS['learning_rate']})"),
    "sharpness": (
        _shared.decimal(0, or_equal=True),
        "X",
        "final weight of the cross-attention's entropy in the loss (0, or the recipe's)",
    ),
    "seed": (_shared.whole(0, _shared.LARGEST_SEED), "N", "decides the first weights and the strings (0, or the recipe's)"),
}
_FREE_IN_RECIPES = ("steps", "sharpness", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe, or a task and its settings; the folder."""
    parser.add_argument("task", nargs="?", metavar="TASK", help="what to learn, for example reverse")
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        help=f"make a shipped checkpoint again, {' or '.join(RECIPES)}; only {_flags(_FREE_IN_RECIPES)} can be changed",
    )
    parser.add_argument("--variant", metavar="NAME", help=f"{listed(variants.names())} (pre-norm)")
    parser.add_argument("--layers", type=_COUNT, metavar="N", help="layers of the encoder and of the decoder")
    for name, words in _MODEL_OPTIONS.items():
        parser.add_argument(_flag(name), dest=name, type=_COUNT, metavar="N", help=f"{words} (the variant's)")
    for name, (kind, metavar, words) in _RECIPE_OPTIONS.items():
        parser.add_argument(_flag(name), dest=name, type=kind, metavar=metavar, help=words)
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="strings of the evaluation at the end (10000)")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="(trained/TASK-VARIANT-SEED)")
    parser.add_argument("--force", action="store_true", help="replace the folder if it is there")
    _shared.add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when the checkpoint is written."""
    if (arguments.task is None) == (arguments.recipe is None):
        raise OptionError(
            "give either a TASK or --recipe NAME, as in: train reverse --variant post-norm, or: train --recipe reverse"
        )
    recipe = _named(arguments) if arguments.recipe else _own(arguments)
    folder = arguments.output or _ROOT / "trained" / f"{recipe.task}-{recipe.variant}-{recipe.seed}"
    _check_place(folder)
    metrics = _train(recipe, folder, arguments)
    from transformer_viz.commands.evaluate import print_table

    print_table(metrics)
    print(_shared.visible(f"written: {folder}"))
    return 0


def _train(recipe: "Recipe", folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    from tqdm import tqdm

    from transformer_viz.runs.make_checkpoint import make_checkpoint

    words = f"training {recipe.task}, {recipe.variant}, {recipe.steps} steps, into {folder}"
    print(_shared.visible(words), file=sys.stderr)
    with tqdm(total=recipe.steps, unit="step", file=sys.stderr) as bar:

        def show(event: "Event") -> None:
            if not math.isfinite(event.loss):
                raise ConfigError(
                    f"the loss is {event.loss} after step {event.step}: training fell apart, and nothing was written. "
                    "Take a smaller --learning-rate."
                )
            bar.update(event.step - bar.n)
            bar.set_postfix(loss=f"{event.loss:.4f}", exact=f"{event.sequence_accuracy:.3f}")

        return make_checkpoint(
            recipe, folder, device=arguments.device, replace=arguments.force, samples=arguments.samples, on_event=show
        )


def _check_place(folder: Path) -> None:
    """Finds out before training, not after, whether the folder can be made."""
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OptionError(f"{folder} cannot be made: {there} is not a folder that can be written to. Choose another with -o.")


def _named(arguments: argparse.Namespace) -> "Recipe":
    if arguments.recipe not in RECIPES:
        raise OptionError(f"recipe {arguments.recipe!r} is not known; choose one of {listed(RECIPES)}")
    fixed = [n for n in ("variant", "layers", *_MODEL_OPTIONS, *_RECIPE_OPTIONS) if n not in _FREE_IN_RECIPES]
    if given := _given(arguments, fixed):
        raise OptionError(
            f"a recipe fixes {_flags(given)}; only {_flags(_FREE_IN_RECIPES)} can be changed. Or train a TASK with your own"
        )
    return replace(RECIPES[arguments.recipe], **_given(arguments, _FREE_IN_RECIPES))


def _own(arguments: argparse.Namespace) -> "Recipe":
    from transformer_viz import tasks
    from transformer_viz.training.recipe import Recipe

    task, variant = tasks.make(arguments.task), arguments.variant or "pre-norm"
    return Recipe(
        task=arguments.task,
        variant=variant,
        model=_model(arguments, variants.settings(variant)),
        mix={source: 1 / len(task.sources) for source in task.sources},
        weight_decay=0.01,
        clip=1.0,
        schedule="cosine",
        warm_up=0.08,
        **{**_DEFAULTS, **_given(arguments, _RECIPE_OPTIONS)},
    )


def _model(arguments: argparse.Namespace, of_variant: dict[str, Any]) -> dict[str, Any]:
    """Sizes that were given; what neither they nor the variant say is the model's default."""
    both = {} if arguments.layers is None else {"n_encoder_layers": arguments.layers, "n_decoder_layers": arguments.layers}
    given = {**both, **_given(arguments, _MODEL_OPTIONS)}
    if "d_ff" not in of_variant:
        given.setdefault("d_ff", 2 * given.get("d_model", 128))
    return given


def _given(arguments: argparse.Namespace, names: Any) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def _flags(names: Any) -> str:
    return listed(_flag(name) for name in names)


def _flag(name: str) -> str:
    return "--" + name.removeprefix("n_").replace("_", "-")
