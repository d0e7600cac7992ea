"""Train a checkpoint: a shipped recipe, or a task with settings of your own."""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError, listed

if TYPE_CHECKING:
    from transformer_viz.training.recipe import Recipe

HELP = "train a checkpoint"
_ROOT = Path(__file__).resolve().parents[2]
_MODEL_OPTIONS = {
    "d_model": "width of the model (128)",
    "n_heads": "heads per attention (4)",
    "n_encoder_layers": "(2)",
    "n_decoder_layers": "(2)",
    "d_ff": "width of the feed-forward layer (2 x d_model)",
}
_RECIPE_OPTIONS = {
    "steps": (int, "batches to train on (2000)"),
    "batch_size": (int, "strings in a batch (128)"),
    "learning_rate": (float, "the highest one (0.002)"),
    "sharpness": (float, "final weight of the cross-attention's entropy in the loss (0)"),
    "seed": (int, "(0)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe, or a task and its settings; the folder."""
    parser.add_argument("task", nargs="?", metavar="TASK", help="what to learn, for example reverse")
    parser.add_argument("--recipe", metavar="NAME", help="make a shipped checkpoint again: reverse or reverse-small")
    parser.add_argument("--variant", metavar="NAME", help="pre-norm, post-norm or residual-post-norm (pre-norm)")
    for name, words in _MODEL_OPTIONS.items():
        parser.add_argument(_flag(name), dest=name, type=int, metavar="N", help=words)
    for name, (kind, words) in _RECIPE_OPTIONS.items():
        parser.add_argument(_flag(name), dest=name, type=kind, metavar="N" if kind is int else "X", help=words)
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
    from transformer_viz.runs.make_checkpoint import make_checkpoint

    recipe = _named(arguments) if arguments.recipe else _own(arguments)
    folder = arguments.output or _ROOT / "trained" / f"{recipe.task}-{recipe.variant}-{recipe.seed}"
    print(
        f"training {recipe.task}, {recipe.variant}, {sum(stage.steps for stage in recipe.stages())} steps, into {folder}",
        file=sys.stderr,
    )
    from tqdm import tqdm

    steps = sum(stage.steps for stage in recipe.stages())
    with tqdm(total=steps, unit="step", file=sys.stderr) as bar:

        def show(event: Any) -> None:
            bar.update(event.step - bar.n)
            bar.set_postfix(loss=f"{event.loss:.4f}", exact=f"{event.sequence_accuracy:.3f}")

        metrics = make_checkpoint(
            recipe, folder, device=arguments.device, replace_existing=arguments.force, samples=arguments.samples, on_event=show
        )
    from transformer_viz.commands.evaluate import print_table

    print_table(metrics)
    print(f"written: {folder}")
    return 0


def _named(arguments: argparse.Namespace) -> "Recipe":
    from transformer_viz.training.recipe import RECIPES

    if arguments.recipe not in RECIPES:
        raise OptionError(f"recipe {arguments.recipe!r} is not known; choose one of {listed(RECIPES)}")
    if arguments.variant or _given(arguments, _MODEL_OPTIONS):
        raise OptionError("a recipe fixes the model; leave out --variant and the sizes, or train a TASK with them")
    return dataclasses.replace(RECIPES[arguments.recipe], **_given(arguments, _RECIPE_OPTIONS))


def _own(arguments: argparse.Namespace) -> "Recipe":
    from transformer_viz import tasks
    from transformer_viz.training.recipe import Recipe

    task = tasks.make(arguments.task)
    model = _given(arguments, _MODEL_OPTIONS)
    model.setdefault("d_ff", 2 * model.get("d_model", 128))
    settings: dict[str, Any] = {"steps": 2000, "batch_size": 128, "learning_rate": 2e-3, **_given(arguments, _RECIPE_OPTIONS)}
    return Recipe(
        task=arguments.task,
        variant=arguments.variant or "pre-norm",
        model=model,
        mix={source: 1 / len(task.sources) for source in task.sources},
        weight_decay=0.01,
        clip=1.0,
        schedule="cosine",
        warm_up=0.08,
        **settings,
    )


def _given(arguments: argparse.Namespace, names: Any) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def _flag(name: str) -> str:
    return "--" + name.removeprefix("n_").replace("_", "-")
