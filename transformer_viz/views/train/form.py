"""The form of the page Train: task and variant, sizes, architecture, and how the training goes; and the command that does the
same training."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any, get_args, get_type_hints

import streamlit as st

from transformer_viz import tasks
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import known, later, say
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views import glossary
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link

SIZES = {
    "n_encoder_layers": (later("Encoder"), 1, 12),
    "n_decoder_layers": (later("Decoder"), 1, 12),
    "n_heads": (later("Heads"), 1, 32),
    "d_model": ("d_model", 2, 1024),
    "d_ff": ("d_ff", 1, 4096),
}
SWITCHES = {
    "norm": later("Norm placement"),
    "position": later("Positions"),
    "embedding_scale": later("Embeddings × √d_model"),
    "tied_embeddings": later("Tied embeddings"),
    "activation": later("Activation"),
    "initialization": later("Initialization"),
    "dropout_in": later("Dropout acts on"),
    "final_norm": later("Final norms"),
    "norm_affine": later("Norms learn weight and bias"),
    "shared_norm": later("One norm a block"),
    "embedding_norm": later("Norm on embeddings"),
    "attention_bias": later("Biases in attention"),
    "feed_forward_bias": later("Biases in feed-forward"),
    "output_bias": later("Bias in the output"),
}
NUMBERS = {
    "steps": (later("Steps"), 1, 100_000),
    "batch_size": (later("Batch size"), 1, 1024),
    "learning_rate": (later("Learning rate"), 0.0, 10.0),
    "warm_up": (later("Warm-up, share of steps"), 0.0, 0.99),
    "label_smoothing": (later("Label smoothing"), 0.0, 0.99),
    "weight_decay": (later("Weight decay"), 0.0, 10.0),
    "sharpness": (later("Sharpness penalty"), 0.0, 100.0),
    "seed": (later("Seed"), 0, 2**31),
}
CHOICES = {"optimizer": later("Optimizer"), "schedule": later("Schedule"), "loss": later("Loss")}
FLOATS = {"dropout": (later("Dropout"), 0.0, 0.99), "sinusoid_base": (later("Sinusoid base"), 1.01, 1e6)}
MODEL = (*SIZES, *SWITCHES, *FLOATS)
FIELDS = (*MODEL, *NUMBERS, *CHOICES)
HINTS = {**get_type_hints(ModelConfig), **get_type_hints(Recipe)}
_SUMMARIES = (
    later("No bias and no learned norm anywhere; d_k and d_v free of the model's width."),
    later("The layout of the 2017 paper: norm(x + f(x)), a separate norm for every sublayer."),
    later("The modern default: x + f(norm(x)) and a final norm on both stacks."),
    later("Word reversal with x + norm(f(x))."),
    later("One norm module for all sublayers of a block, and a norm on scaled embeddings."),
    later("What `torch.nn.Transformer` computes: norm(x + f(x)), and one more norm after each stack."),
)
"""The beginnings of the variants' descriptions."""
_WIDTH = 90
"""The width of a line of the command."""


@dataclass(frozen=True)
class Preset:
    """A training to begin with, and what to expect of it."""

    title: str
    help: str
    task: str
    variant: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recipe(self) -> Recipe:
        """The recipe of what is trained."""
        return recipe_for(self.task, self.variant, settings=self.settings, model=self.model)


_TASK, _VARIANT = "reverse", "pre-norm"
_LIMITS: dict[str, tuple[str, Any, Any]] = {**SIZES, **NUMBERS, **FLOATS}
_TINY = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 64, "d_ff": 128}
PRESETS = (
    Preset(
        later("A first training, one minute"),
        later(
            "Learns to write German numbers as figures, *vierzehn* as 14. One layer, 700 steps; nearly every "
            "number that it was not trained on comes out right."
        ),
        "numbers",
        "pre-norm",
        {"steps": 700},
        _TINY,
    ),
    Preset(
        later("Two sentences, ten seconds"),
        later("Learns the two German sentences of a published tutorial by heart, in 60 steps."),
        "german-toy",
        "post-norm",
    ),
    Preset(
        later("The published reversal, a few minutes"),
        later(
            "Learns to write strings of 10 to 19 letters backwards, with the variant and the settings of an article: 588 steps."
        ),
        "reverse",
        "residual-post-norm",
    ),
)


def show() -> Recipe | None:
    """Draws the form. Returns the recipe; where that is not possible, says why in the form and returns None."""
    left, right = st.columns(2)
    # Another task or variant brings its own settings.
    reset: Any = {"on_change": link.reset, "args": (*(f"train_{name}" for name in FIELDS), "train_name")}
    with left:
        task = link.selectbox(
            say("Task"), tasks.names(), key="train_task", said=str, default=_TASK, help=_help("Task"), **reset
        )
    with right:
        reset |= {"default": _VARIANT, "help": _help("Variant")}
        variant = link.selectbox(say("Variant"), variants.names(), key="train_variant", said=str, **reset)
    summary, _, more = variants.description(variant).partition("\n\n")
    right.caption(literal(known(summary)), help=literal(more))
    try:
        base = _effective(recipe_for(task, variant))
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return None
    # The values before their boxes are drawn: the group of settings is open where one of them was changed.
    for name, default in base.items():
        key = f"train_{name}"
        if name in _LIMITS:
            link.number(key, *_LIMITS[name][1:], default)
        elif HINTS[name] is bool:
            link.is_on(key, default)
        else:
            link.option(key, get_args(HINTS[name]), default)
    # Every setting, an error under the group that it is about.
    is_bool = {name: HINTS[name] is bool for name in SWITCHES}
    groups = {
        say("Size: layers, heads, widths"): [(len(SIZES), SIZES)],
        say("Architecture: norms, biases, scaling, positions"): [
            (2, [name for name in SWITCHES if not is_bool[name]]),
            (2, [name for name in SWITCHES if is_bool[name]]),
            (2, FLOATS),
        ],
        say("Training: steps, optimizer, schedule, loss"): [(3, CHOICES), (2, NUMBERS)],
    }
    places = []
    with st.expander(say("Advanced: all settings"), expanded=bool(_changed(base)), icon=":material/tune:"):
        for title, rows in groups.items():
            st.markdown(f"**{title}**")
            for n_columns, names in rows:
                for column, name in zip(cycle(st.columns(n_columns)), names, strict=False):
                    with column:
                        _setting(name, base[name])
            places.append(([name for _, names in rows for name in names], st.container()))
    try:
        own = recipe_for(task, variant)
        changed = _changed(base)
        settings = {name: value for name, value in changed.items() if name not in MODEL}
        model = {**own.model, **{name: value for name, value in changed.items() if name in MODEL}}
        if {"d_model", "n_heads"} & set(changed) and "d_k" in variants.settings(variant):
            model |= {"d_k": None, "d_v": None}
        recipe = replace(own, model=model, **settings)
        config(recipe)
        return recipe
    except TransformerVizError as error:
        words = str(error)
        place = next((place for names, place in places if any(name in words for name in names)), st)
        place.error(literal(words), icon=":material/error:")
        if place is not st:
            st.caption(say("These settings cannot be trained. *Advanced* says which one to change."))
        return None


def _setting(name: str, default: Any) -> None:
    """Draws the box of a setting."""
    key = f"train_{name}"
    if name not in _LIMITS:
        label = {**SWITCHES, **CHOICES}[name]
        if HINTS[name] is bool:
            link.toggle(say(label), key=key, default=default, help=_help(label))
        else:
            link.selectbox(say(label), get_args(HINTS[name]), key=key, default=default, help=_help(label), said=str)
        return
    label, least, most = _LIMITS[name]
    looks: dict[str, Any] = {"format": "%g"} if isinstance(least, float) else {}
    if looks and name in NUMBERS:
        looks["step"] = 0.001
    link.number_input(say(label), least, most, default, key=key, help=_help(label), **looks)


def _effective(recipe: Recipe) -> dict[str, Any]:
    """Every field of the form as this recipe has it."""
    model = config(recipe)
    return {name: getattr(model if name in MODEL else recipe, name) for name in FIELDS}


def changes(recipe: Recipe) -> dict[str, Any]:
    """The settings in which a recipe differs from its task's and variant's own, by their names."""
    before, now = _effective(recipe_for(recipe.task, recipe.variant)), _effective(recipe)
    changed = {name: value for name, value in now.items() if not same(value, before[name])}
    # The command makes d_ff follow d_model where it is given d_model alone.
    return {**changed, "d_ff": now["d_ff"]} if "d_model" in changed else changed


def _changed(base: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the form that differ from these."""
    now = {name: st.session_state[f"train_{name}"] for name in FIELDS}
    return {name: value for name, value in now.items() if not same(value, base[name])}


def config(recipe: Recipe) -> ModelConfig:
    """The configuration of the model that a recipe makes.

    Raises:
        ConfigError: the recipe's settings make no model; the message says why.
    """
    # Imported here, because pages that need no model read the names of this form's fields too.
    from transformer_viz.training.recipe import model_config

    return model_config(recipe, tasks.make_task(recipe.task, recipe.task_options))


def _help(label: str) -> str:
    return literal(glossary.sentence(label))


def same(value: Any, other: Any) -> bool:
    """Tells whether two values of a setting are equal, floats up to rounding."""
    return math.isclose(value, other) if isinstance(value, float) and isinstance(other, int | float) else value == other


def command(
    task: str,
    variant: str,
    settings: Mapping[str, Any],
    *,
    folder: str,
    snapshots: int,
    samples: int,
) -> str:
    """The command line, broken where it is long.

    Args:
        task: what is learned.
        variant: which architecture.
        settings: those of model and recipe that differ from the defaults of task and variant, by their names in Python.
        folder: where the checkpoint goes; a `~/` in front is the reader's own folder.
        snapshots: weights kept along the way.
        samples: texts of the evaluation at the end.
    """
    parts = [
        f"python -m transformer_viz train {shlex.quote(task)} --variant {shlex.quote(variant)}",
        *(_option(setting, value) for setting, value in settings.items()),
        f"--snapshots {snapshots}",
        f"--samples {samples}",
        f"-o {_path(folder)}",
    ]
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) > _WIDTH:
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)


def _path(path: str) -> str:
    """A path quoted for a shell, which expands `~` only outside quotation marks."""
    home = "~/" if path.startswith("~/") else ""
    return home + shlex.quote(path.removeprefix(home))


def _option(name: str, value: Any) -> str:
    flag = name.removeprefix("n_").replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
