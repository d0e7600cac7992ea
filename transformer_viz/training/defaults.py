"""The recipe of a task and a variant when nobody says more: the published setting where there is one, else a good default."""

from collections.abc import Mapping
from typing import Any

from transformer_viz import tasks
from transformer_viz.errors import OptionError
from transformer_viz.model import variants
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import PUBLISHED

_DEFAULTS: dict[str, Any] = {
    "steps": 2000,
    "batch_size": 128,
    "learning_rate": 2e-3,
    "weight_decay": 0.01,
    "clip": 1.0,
    "schedule": "cosine",
    "warm_up": 0.08,
}


def recipe_for(
    task_name: str,
    variant: str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    task_options: Mapping[str, Any] | None = None,
    epochs: int | None = None,
) -> Recipe:
    """A whole recipe from what was said.

    Args:
        task_name: what to learn.
        variant: a published variant; pre-norm by default.
        settings: of the recipe; the published setting's or the default's where they are left out.
        model: of the model; the variant's where they are left out.
        task_options: keywords of the task.
        epochs: instead of `steps`, where `epoch_size` is given.

    Raises:
        ConfigError, OptionError: something is not known or not possible.
    """
    variant = variant or "pre-norm"
    of_variant = variants.settings(variant)
    published: dict[str, Any] = dict(PUBLISHED.get((task_name, variant)) or PUBLISHED.get((task_name, None)) or {})
    of_published, options = published.pop("model", {}), published.pop("task_options", {})
    options = dict(options if task_options is None else task_options)
    task = tasks.make(task_name, options)
    kinds = (*task.sources, *task.training_sources)
    chosen: dict[str, Any] = {
        # A published setting is complete: what it does not say is not done.
        **({} if published else _DEFAULTS),
        "mix": {source: 1 / len(kinds) for source in kinds},
        **published,
        **(settings or {}),
    }
    if epochs is not None:
        chosen["steps"] = _steps(epochs, chosen)
    return Recipe(
        task=task_name,
        variant=variant,
        task_options=options,
        model={**of_published, **_model(dict(model or {}), of_variant)},
        lengths="natural" if task.natural_lengths else "trained",
        **chosen,
    )


def _steps(epochs: int, settings: Mapping[str, Any]) -> int:
    if not settings.get("epoch_size"):
        raise OptionError("--epochs needs --epoch-size, the number of texts in an epoch; or give --steps")
    return epochs * -(-settings["epoch_size"] // settings["batch_size"])


def _model(given: dict[str, Any], of_variant: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that were given; what neither they nor the variant say is the model's default."""
    if "d_ff" not in of_variant:
        given.setdefault("d_ff", 2 * given.get("d_model", 128))
    # A width of one head that the variant fixes would hide what the given width and heads mean.
    if "d_k" in of_variant and ("d_model" in given or "n_heads" in given):
        given.setdefault("d_k", None)
        given.setdefault("d_v", None)
    return given
