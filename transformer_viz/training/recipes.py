"""The recipes of the shipped checkpoints, the published settings, and the recipe of a task and a variant made of them."""

from collections.abc import Mapping
from typing import Any

from transformer_viz.errors import OptionError
from transformer_viz.model import variants
from transformer_viz.training.recipe import Recipe

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_STRINGS: dict[str, Any] = {"task_options": {"alphabet": LETTERS, "trained_lengths": [10, 19]}, "mix": {"uniform": 1.0}}
# The published setting: 50,000 random strings of 10-19 letters, 3 epochs of batches of 256.
_EPOCHS: dict[str, Any] = {**_STRINGS, "steps": 588, "batch_size": 256, "epoch_size": 50_000}
_PUBLISHED_REVERSE: dict[str, Any] = {**_EPOCHS, "optimizer": "adam", "learning_rate": 1e-3}
_COSINE: dict[str, Any] = {"learning_rate": 2e-3, "weight_decay": 0.01, "clip": 1.0, "schedule": "cosine", "warm_up": 0.08}
_NATURAL: dict[str, Any] = {"variant": "pre-norm", "lengths": "natural", "seed": 2017}
_SMALL = {"d_model": 128, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 256}

GERMAN_CLAUSES = (
    *("statement", "object pronoun", "perfect", "modal verb", "separable verb", "time first", "object first", "not", "no"),
    *("adjective after the verb", "dative", "dative and accusative", "place", "direction", "preposition of the verb"),
    *("clock time", "number", "two subjects", "how often", "gern", "wish", "there is", "yes-or-no question"),
    *("question word", "that", "whether", "because", "if", "if first", "two clauses"),
)
"""The templates of `tasks/data/german.templates` that are trained on."""
_LANGUAGES = ("English (US)", "English (UK)", "German", "French", "Spanish", "Italian", "Dutch", "Swedish", "Japanese")
_TOYS = ("german-toy", "pinyin-toy")
_TOY = {"epoch_size": 2, "batch_size": 2}

RECIPES: dict[str, Recipe] = {
    "reverse": Recipe(
        task="reverse",
        variant="pre-norm",
        model={**_SMALL, "sinusoid_base": 100.0},
        mix={"uniform": 0.50, "few": 0.27, "palindromes": 0.08, "words": 0.15},
        steps=13_000,
        batch_size=128,
        lengths="growing",
        longest=38,
        **_COSINE,
        seed=2017,
    ),
    "reverse-small": Recipe(
        task="reverse",
        variant="residual-post-norm",
        **_PUBLISHED_REVERSE,
        # Not where the source has it: so more is learned from the same texts (docs/training.md).
        model={"dropout_in": "embeddings"},
        seed=2024,
    ),
    # The same texts, sizes and number of steps as `reverse-small`: a pre-norm model and a one-cycle schedule learn more.
    "reverse-588": Recipe(
        task="reverse",
        variant="pre-norm",
        **_EPOCHS,
        model={"n_encoder_layers": 1, "n_decoder_layers": 1, "d_ff": 256},
        learning_rate=2e-3,
        clip=1.0,
        schedule="one-cycle",
        seed=2024,
    ),
    # What a forgotten causal mask does: all seems learned, since the answer is in the input, and nothing can be decoded.
    "reverse-leak": Recipe(
        task="reverse",
        variant="pre-norm",
        **_STRINGS,
        model={"d_model": 64, "n_heads": 4, "n_encoder_layers": 1, "n_decoder_layers": 1, "d_ff": 128, "sinusoid_base": 100.0},
        steps=300,
        batch_size=128,
        learning_rate=3e-3,
        clip=1.0,
        schedule="one-cycle",
        mistake="no-causal",
        seed=2017,
    ),
    "pinyin": Recipe(
        task="pinyin",
        **_NATURAL,
        model={**_SMALL, "d_model": 192, "d_ff": 512, "n_decoder_layers": 1, "dropout": 0.1, "max_positions": 64},
        mix={"phrases": 0.9, "characters": 0.1},
        steps=7_000,
        batch_size=192,
        learning_rate=1.5e-3,
        weight_decay=0.05,
        clip=1.0,
        schedule="cosine",
        warm_up=0.08,
    ),
    "dates": Recipe(
        task="dates",
        **_NATURAL,
        model={**_SMALL, "sinusoid_base": 100.0, "max_positions": 128},
        mix=dict.fromkeys(_LANGUAGES, 1 / len(_LANGUAGES)),
        steps=4_000,
        batch_size=96,
        **_COSINE,
    ),
    "numbers": Recipe(
        task="numbers",
        **_NATURAL,
        model={**_SMALL, "max_positions": 64, "sinusoid_base": 100.0},
        mix={"any": 0.7, "short": 0.3},
        steps=3_000,
        batch_size=128,
        **_COSINE,
    ),
    "german": Recipe(
        task="german",
        **_NATURAL,
        model={**_SMALL, "max_positions": 64},
        mix=dict.fromkeys(GERMAN_CLAUSES, 1 / len(GERMAN_CLAUSES)),
        steps=12_000,
        batch_size=64,
        sorted_batches=16,
        **_COSINE,
    ),
}
"""The recipes that `train --recipe NAME` makes again."""

PUBLISHED: dict[tuple[str, str | None], dict[str, Any]] = {
    # Stochastic gradient descent on the two sentences, both in every batch, 30 epochs.
    ("german-toy", "bias-free"): {**_TOY, "optimizer": "sgd", "learning_rate": 1e-3, "momentum": 0.99, "steps": 30},
    # The source trains nothing. Two sentences leave nothing to generalise, and with dropout they take 150 steps more.
    ("pinyin-toy", "torch-reference"): {
        **_TOY,
        "optimizer": "adam",
        "learning_rate": 1e-4,
        "steps": 50,
        "model": {"dropout": 0.0},
    },
    ("reverse", "residual-post-norm"): _PUBLISHED_REVERSE,
}
PUBLISHED |= {(task, None): {**_TOY, "optimizer": "adam", "learning_rate": 5e-4, "steps": 60} for task in _TOYS}
"""The published setting of a task with its source's variant: what `train TASK --variant NAME` starts from."""


def recipe_for(
    task_name: str,
    variant: str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    task_options: Mapping[str, Any] | None = None,
    epochs: int | None = None,
) -> Recipe:
    """The recipe of a task and a variant: the published setting where there is one, else a good default.

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
    from transformer_viz import tasks  # numpy: the command's help does without

    variant = variant or "pre-norm"
    variant_model = variants.settings(variant)
    published: dict[str, Any] = dict(PUBLISHED.get((task_name, variant)) or PUBLISHED.get((task_name, None)) or {})
    published_model, published_options = published.pop("model", {}), published.pop("task_options", {})
    options = dict(published_options if task_options is None else task_options)
    task = tasks.make_task(task_name, options)
    sources = (*task.sources, *task.training_sources)
    # A published setting is complete: what it does not say is not done.
    chosen: dict[str, Any] = published or {"steps": 2000, "batch_size": 128, **_COSINE}
    chosen = {"mix": {source: 1 / len(sources) for source in sources}, **chosen, **(settings or {})}
    if epochs is not None:
        if not chosen.get("epoch_size"):
            raise OptionError("--epochs needs --epoch-size, the number of texts in an epoch; or give --steps")
        chosen["steps"] = epochs * -(-chosen["epoch_size"] // chosen["batch_size"])
    sizes = dict(model or {})
    if "d_ff" not in variant_model:
        sizes.setdefault("d_ff", 2 * sizes.get("d_model", 128))
    # A width of one head that the variant fixes would hide what the given width and heads mean.
    if "d_k" in variant_model and ("d_model" in sizes or "n_heads" in sizes):
        sizes = {"d_k": None, "d_v": None, **sizes}
    return Recipe(
        task=task_name,
        variant=variant,
        task_options=options,
        model={**published_model, **sizes},
        lengths="natural" if task.natural_lengths else "trained",
        **chosen,
    )
