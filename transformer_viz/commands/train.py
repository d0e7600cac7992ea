"""The command `train`."""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from transformer_viz import app_folders, untrusted_files
from transformer_viz.commands._options import Option, Settings, flag_of
from transformer_viz.commands._shared import Device, Force, existing_file
from transformer_viz.errors import FileError, OptionError, join_names
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.schema import Range
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.training.recipes import RECIPES

_LARGEST_RECIPE = 4 * 2**20
_FREE_IN_RECIPES = ("steps", "sharpness", "precision", "patience", "seed")
_FREE_FLAGS = join_names(map(flag_of, _FREE_IN_RECIPES))
_OF_THE_TASK = frozenset({"source_vocabulary_size", "target_vocabulary_size"})
_NOT_SETTINGS = frozenset(
    {
        # What the task, the variant, or another option says.
        *("task", "variant", "task_options", "model", "mix", "lengths", "frozen_embeddings"),
        # Of the shipped recipes only.
        *("longest", "even_lengths", "growing_until", "sorted_batches", "betas", "sharpness_from", "sharpness_until"),
    }
)


def _read_object(text: str) -> dict[str, Any]:
    try:
        data = untrusted_files.parse_json(text)
    except FileError:
        data = None
    if not isinstance(data, dict):
        raise OptionError(f'{text[:40]!r} is no JSON object, such as {{"by": 3}}')
    return data


@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """A recipe by its name or from a file, or a task and its settings."""

    task: Annotated[str | None, "the task to learn, as in reverse, dates or pinyin", Option(is_argument=True)] = None
    recipe: Annotated[
        str | None, f"make a shipped checkpoint again, {' or '.join(RECIPES)}; only {_FREE_FLAGS} can be changed"
    ] = None
    recipe_file: Annotated[Path | None, "a recipe as JSON, or a checkpoint's config.json"] = None
    variant: Annotated[str | None, f"{join_names(variants.names())} (pre-norm)"] = None
    task_options: Annotated[dict[str, Any] | None, "settings of the task as JSON, as in '{\"by\": 3}'", _read_object] = None
    epochs: Annotated[int | None, "how often to go through --epoch-size texts, instead of --steps", Range(1, 10**6)] = None
    layers: Annotated[int | None, "layers of the encoder and of the decoder", Range(1, 64)] = None
    freeze_embeddings: Annotated[bool, "do not train the embeddings"] = False
    settings: Annotated[
        dict[str, Any],
        Settings(Recipe, "training (defaults: the published setting of the variant)", _NOT_SETTINGS),
    ]
    model: Annotated[dict[str, Any], Settings(ModelConfig, "model (defaults: those of the variant)", _OF_THE_TASK, "n_")]

    def make(self) -> Recipe:
        """The recipe that is meant."""
        if [self.task is None, self.recipe is None, self.recipe_file is None].count(False) != 1:
            raise OptionError(
                "give either a TASK, --recipe NAME or --recipe-file FILE, as in: train reverse --variant post-norm, "
                "or: train --recipe reverse"
            )
        others = {name: getattr(self, name) for name in ("variant", "task_options", "epochs", "layers")}
        if self.task:
            from transformer_viz.training.recipes import recipe_for

            both = {} if self.layers is None else {"n_encoder_layers": self.layers, "n_decoder_layers": self.layers}
            del others["layers"]
            recipe = recipe_for(self.task, settings=self.settings, model={**both, **self.model}, **others)
        else:
            recipe = _from_file(self.recipe_file) if self.recipe_file else RECIPES.get(self.recipe or "")
            if recipe is None:
                raise OptionError(f"recipe {self.recipe!r} is not known; choose one of {join_names(RECIPES)}")
            given = [name for name, value in {**others, **self.model, **self.settings}.items() if value is not None]
            if fixed := [flag_of(name, "n_") for name in given if name not in _FREE_IN_RECIPES]:
                raise OptionError(
                    f"a recipe fixes {join_names(fixed)}; only {_FREE_FLAGS} can be changed. Or train a TASK with your own"
                )
            recipe = replace(recipe, **self.settings)
        return replace(recipe, frozen_embeddings=True) if self.freeze_embeddings else recipe


def run(
    recipe: RecipeOptions,
    samples: Annotated[int, "how many texts to evaluate on at the end"] = 10_000,
    output: Annotated[
        Path | None, "folder for the checkpoint (TASK-VARIANT-SEED, in the folder that `checkpoints` prints)", Option("-o")
    ] = None,
    force: Force = False,
    resume: Annotated[bool, "continue a training that was stopped"] = False,
    snapshots: Annotated[int, "how many times to save the weights on the way, for How it learned", Range(0, 200)] = 0,
    tensorboard: Annotated[Path | None, "also write TensorBoard events into this folder"] = None,
    device: Device = "auto",
    source_embedding: Annotated[
        Path | None, "pretrained source embeddings: a matrix (tokens, width) as .npy or .safetensors", existing_file
    ] = None,
    target_embedding: Annotated[Path | None, "pretrained target embeddings, in the same form", existing_file] = None,
    # For a program that starts trainings, as the page Train does: see `training.reporter`.
    job: Annotated[Path | None, argparse.SUPPRESS] = None,
    job_seconds: Annotated[int | None, argparse.SUPPRESS] = None,
) -> int:
    """Train a checkpoint: a shipped recipe, a recipe from a file, or a task with settings of your own.

    --resume continues a training that was stopped. Exit code 130: stopped by Ctrl-C; 128 + N: by signal N.
    """
    from transformer_viz import tasks
    from transformer_viz.checkpoints import refuse_existing

    chosen = recipe.make()
    task = tasks.make_task(chosen.task, chosen.task_options)
    model_config(chosen, task)
    task.check_samples(samples, "--samples")
    folder = output or app_folders.trained() / f"{chosen.task}-{chosen.variant}-{chosen.seed}"
    # Found before training, not after.
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OptionError(f"{folder} cannot be made: {there} is not a folder that can be written to. Choose another with -o.")
    if not resume:
        refuse_existing(folder, force)
    from transformer_viz.commands._training import carry_out
    from transformer_viz.training.reporter import Reporter

    kept = {"samples": samples, "snapshots": snapshots, "replace": force, "resume": resume, "device": device}
    reporter = None if job is None else Reporter(job, job_seconds)
    return carry_out(chosen, folder, kept, (source_embedding, target_embedding), tensorboard, reporter)


def _from_file(path: Path) -> Recipe:
    try:
        data = untrusted_files.read_json(path, _LARGEST_RECIPE)
    except FileError as error:
        raise OptionError(f"{path} cannot be read: {error}. Give a recipe, or a checkpoint's config.json.") from error
    if isinstance(data, dict) and isinstance(data.get("recipe"), dict):
        data = data["recipe"]
    if not isinstance(data, dict):
        raise OptionError(f"{path} holds no recipe. Give a recipe, or a checkpoint's config.json.")
    return Recipe.from_json(data)
