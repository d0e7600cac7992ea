"""The form of the Train page: what to learn, the switchboard, the recipe."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import streamlit as st

from transformer_viz import tasks
from transformer_viz.errors import TransformerVizError, listed
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.defaults import recipe_for
from transformer_viz.training.recipe import Recipe
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link

SIZES = {
    "n_encoder_layers": ("Encoder", 1, 12),
    "n_decoder_layers": ("Decoder", 1, 12),
    "n_heads": ("Heads", 1, 32),
    "d_model": ("d_model", 2, 1024),
    "d_ff": ("d_ff", 1, 4096),
}
SWITCHES = {
    "norm": "Norm placement",
    "position": "Positions",
    "embedding_scale": "Embeddings × √d_model",
    "tied_embeddings": "Tied embeddings",
    "activation": "Activation",
    "initialization": "Initialization",
    "dropout_in": "Dropout acts on",
    "final_norm": "Final norms",
    "norm_affine": "Norms learn weight and bias",
    "shared_norm": "One norm a block",
    "embedding_norm": "Norm on embeddings",
    "attention_bias": "Biases in attention",
    "feed_forward_bias": "Biases in feed-forward",
    "output_bias": "Bias in the output",
}
NUMBERS = {
    "steps": ("Steps", 1, 100_000),
    "batch_size": ("Batch size", 1, 1024),
    "learning_rate": ("Learning rate", 0.0, 10.0),
    "warm_up": ("Warm-up, share of steps", 0.0, 0.99),
    "label_smoothing": ("Label smoothing", 0.0, 0.99),
    "weight_decay": ("Weight decay", 0.0, 10.0),
    "sharpness": ("Sharpness penalty", 0.0, 100.0),
    "seed": ("Seed", 0, 2**31),
}
CHOICES = {"optimizer": "Optimizer", "schedule": "Schedule", "loss": "Loss"}
FLOATS = {"dropout": ("Dropout", 0.0, 0.99), "sinusoid_base": ("Sinusoid base", 1.01, 1e6)}
_MODEL = (*SIZES, *SWITCHES, *FLOATS)
FIELDS = (*_MODEL, *NUMBERS, *CHOICES, "frozen_embeddings")
_HINTS = {**get_type_hints(ModelConfig), **get_type_hints(Recipe)}
_HELP = {
    "n_encoder_layers": "Layers of the encoder",
    "n_decoder_layers": "Layers of the decoder",
    "n_heads": "Heads of every attention; they must divide d_model",
    "d_model": "Width of the residual stream",
    "d_ff": "Width of the feed-forward layer",
    "norm": "pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x))",
    "dropout_in": "everywhere, on embeddings with their positions only, or only on what the encoder's self-attention adds",
    "sharpness": "Weight of the cross-attention's entropy in the loss: sharp rows, wherever they point",
    "tied_embeddings": "output: the output projection is the target embedding; all: the source embedding too",
}


def show() -> Recipe | None:
    """Draws the form; the recipe, or None after saying what is not possible. What was chosen stays."""
    _start()
    state = st.session_state
    left, right = st.columns(2)
    left.selectbox("Task", tasks.names(), key="train_task", on_change=_reset, help="What is learned")
    right.selectbox("Variant", variants.names(), key="train_variant", on_change=_reset, help="Which published architecture")
    summary, _, more = variants.description(state.train_variant).partition("\n\n")
    right.caption(literal(summary), help=literal(more))
    if "train_n_heads" not in state and not _fill({}):
        return None
    with st.expander("Sizes", expanded=True):
        for column, (name, (label, least, most)) in zip(st.columns(len(SIZES)), SIZES.items(), strict=True):
            column.number_input(label, least, most, key=f"train_{name}", help=_HELP[name])
    with st.expander("Switchboard: norms, biases, scaling, positions"):
        _switchboard()
    with st.expander("Recipe: steps, optimizer, schedule, loss"):
        _recipe_fields()
    try:
        return _recipe()
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return None


def link_values() -> dict[str, str | None]:
    """What the URL says of the form; settings that are the default's stay out."""
    state = st.session_state
    values: dict[str, str | None] = {
        "task": None if state.train_task == "reverse" else state.train_task,
        "variant": None if state.train_variant == "pre-norm" else state.train_variant,
    }
    try:
        base = _effective(recipe_for(state.train_task, state.train_variant))
    except TransformerVizError:
        return {**values, "set": None}
    changed = {name: state[f"train_{name}"] for name in FIELDS if f"train_{name}" in state}
    said = [f"{name}={_written(value)}" for name, value in changed.items() if not _same(value, base[name])]
    return {**values, "set": ",".join(said) or None}


def _start() -> None:
    link.read_once()
    state = st.session_state
    if "train_task" in state:
        return
    state.train_task = link.choice("task", link.take("task"), tuple(tasks.names()), "reverse")
    state.train_variant = link.choice("variant", link.take("variant"), tuple(variants.names()), "pre-norm")
    _fill(_from_link(link.take("set")))


def _reset() -> None:
    """Another task or variant brings its own settings."""
    for name in FIELDS:
        st.session_state.pop(f"train_{name}", None)
    st.session_state.pop("train_name", None)


def _fill(changes: Mapping[str, Any]) -> bool:
    """The form's fields from the task's and variant's own recipe; whether there is one."""
    state = st.session_state
    try:
        base = _effective(recipe_for(state.train_task, state.train_variant))
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return False
    for name in FIELDS:
        state[f"train_{name}"] = changes.get(name, base[name])
    return True


def _effective(recipe: Recipe) -> dict[str, Any]:
    """Every field of the form as this recipe has it."""
    config = _config(recipe)
    return {name: getattr(config if name in _MODEL else recipe, name) for name in FIELDS}


def changes(recipe: Recipe) -> dict[str, Any]:
    """The settings in which a recipe differs from its task's and variant's own, by their names."""
    before, now = _effective(recipe_for(recipe.task, recipe.variant)), _effective(recipe)
    changed = {name: value for name, value in now.items() if not _same(value, before[name])}
    # Where only the width is said, the width of the feed-forward layer follows it.
    return {**changed, "d_ff": now["d_ff"]} if "d_model" in changed else changed


def _recipe() -> Recipe:
    """The task's and variant's own recipe with what the form says otherwise."""
    state = st.session_state
    base = recipe_for(state.train_task, state.train_variant)
    before = _effective(base)
    now = {name: state[f"train_{name}"] for name in FIELDS}
    changed = {name: value for name, value in now.items() if not _same(value, before[name])}
    settings = {name: value for name, value in changed.items() if name not in _MODEL}
    model = {**base.model, **{name: value for name, value in changed.items() if name in _MODEL}}
    if {"d_model", "n_heads"} & set(changed) and "d_k" in variants.settings(base.variant):
        model |= {"d_k": None, "d_v": None}
    recipe = replace(base, model=model, **settings)
    _config(recipe)
    return recipe


def _config(recipe: Recipe) -> ModelConfig:
    """The model that a recipe makes, or an error that says why it makes none."""
    # Here, because every page knows the names of these fields, also those that need no model.
    from transformer_viz.training.make_checkpoint import model_config

    return model_config(recipe, tasks.make(recipe.task, recipe.task_options))


def _switchboard() -> None:
    bools = [name for name in SWITCHES if _HINTS[name] is bool]
    choices = [name for name in SWITCHES if name not in bools]
    for column, name in zip(st.columns(3) * 3, choices, strict=False):
        column.selectbox(SWITCHES[name], get_args(_HINTS[name]), key=f"train_{name}", help=_HELP.get(name))
    for column, name in zip(st.columns(4) * 2, bools, strict=False):
        column.toggle(SWITCHES[name], key=f"train_{name}")
    for column, (name, (label, least, most)) in zip(st.columns(3), FLOATS.items(), strict=False):
        column.number_input(label, least, most, key=f"train_{name}", format="%g")


def _recipe_fields() -> None:
    for column, (name, label) in zip(st.columns(3), CHOICES.items(), strict=True):
        column.selectbox(label, get_args(_HINTS[name]), key=f"train_{name}")
    for column, (name, (label, least, most)) in zip(st.columns(4) * 2, NUMBERS.items(), strict=True):
        form: dict[str, Any] = {"format": "%g", "step": 0.001} if isinstance(least, float) else {}
        column.number_input(label, least, most, key=f"train_{name}", help=_HELP.get(name), **form)


def _from_link(given: str | None) -> dict[str, Any]:
    """`d_model=64,steps=500`; what is not possible is said."""
    found = {}
    for part in (given or "").split(","):
        name, _, text = part.partition("=")
        if not part:
            continue
        value = _read(name, text)
        if value is None:
            link.complaints().add("set", part, f"NAME=VALUE of {listed(FIELDS)}")
        else:
            found[name] = value
    return found


def _read(name: str, text: str) -> Any:
    limits = SIZES.get(name) or NUMBERS.get(name) or FLOATS.get(name)
    if limits is not None:
        _, least, most = limits
        try:
            value = float(text)
        except ValueError:
            return None
        if not math.isfinite(value) or not least <= value <= most or (isinstance(least, int) and value != int(value)):
            return None
        return int(value) if isinstance(least, int) else value
    if name not in FIELDS:
        return None
    if _HINTS[name] is bool:
        return {"true": True, "false": False}.get(text)
    return text if text in get_args(_HINTS[name]) else None


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _same(value: Any, other: Any) -> bool:
    return math.isclose(value, other) if isinstance(value, float) and isinstance(other, int | float) else value == other
