"""The form of the Train page: what to learn, the switchboard, the recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import streamlit as st

from transformer_viz import glossary, tasks
from transformer_viz.errors import TransformerVizError, listed
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.defaults import recipe_for
from transformer_viz.training.recipe import Recipe
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link
from transformer_viz.views.state.training_fields import (
    CHOICES,
    FIELDS,
    FLOATS,
    HINTS,
    MODEL,
    NUMBERS,
    SIZES,
    SWITCHES,
    from_link,
    same,
    written,
)


@dataclass(frozen=True)
class Preset:
    """A training to begin with: what is chosen for whoever presses it, and what to expect."""

    title: str
    help: str
    task: str
    variant: str
    changes: Mapping[str, Any] = field(default_factory=dict)


_TINY = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 64, "d_ff": 128}
PRESETS = (
    Preset(
        "A first training, one minute",
        "German numbers into figures: *vierzehn* into 14. One layer, 700 steps; nearly every held-out number comes out right.",
        "numbers",
        "pre-norm",
        {**_TINY, "steps": 700},
    ),
    Preset(
        "Two sentences, ten seconds",
        "The two German sentences of a published tutorial, learned by heart in 60 steps.",
        "german-toy",
        "post-norm",
    ),
    Preset(
        "The published reversal, a few minutes",
        "Strings of 10 to 19 letters backwards, with the variant and the settings of its article: 588 steps.",
        "reverse",
        "residual-post-norm",
    ),
)


def show() -> Recipe | None:
    """Draws the form; the recipe, or None after saying what is not possible. What was chosen stays."""
    _start()
    state = st.session_state
    st.caption("Begin with one of these, or choose for yourself:")
    with st.container(gap="xsmall"):
        for preset in PRESETS:
            st.button(
                preset.title,
                f"preset-{preset.task}",
                preset.help,
                _choose,
                args=(preset,),
                icon=":material/bolt:",
                width="stretch",
            )
    left, right = st.columns(2)
    left.selectbox("Task", tasks.names(), key="train_task", on_change=_reset, help=_help("Task"))
    right.selectbox("Variant", variants.names(), key="train_variant", on_change=_reset, help=_help("Variant"))
    summary, _, more = variants.description(state.train_variant).partition("\n\n")
    right.caption(literal(summary), help=literal(more))
    if "train_n_heads" not in state and not _fill({}):
        return None
    return _advanced()


def _advanced() -> Recipe | None:
    """Every setting, and beside those that are meant what is not possible; the recipe, where it is."""
    parts = (
        ("Sizes", SIZES, _sizes),
        ("Switchboard: norms, biases, scaling, positions", {**SWITCHES, **FLOATS}, _switchboard),
        ("Recipe: steps, optimizer, schedule, loss", {**NUMBERS, **CHOICES}, _recipe_fields),
    )
    is_changed = settings_in_link()["set"] is not None
    said = []
    with st.expander("Advanced: all settings", expanded=is_changed, icon=":material/tune:"):
        for title, names, draw in parts:
            st.markdown(f"**{title}**")
            draw()
            said.append((names, st.container()))
    try:
        return _recipe()
    except TransformerVizError as error:
        words = str(error)
        place = next((place for names, place in said if any(name in words for name in names)), st)
        place.error(literal(words), icon=":material/error:")
        if place is not st:
            st.caption("This cannot be trained yet: see what is said under *Advanced*.")
        return None


def _choose(preset: Preset) -> None:
    state = st.session_state
    state.train_task, state.train_variant = preset.task, preset.variant
    _reset()
    _fill(preset.changes)


def settings_in_link() -> dict[str, str | None]:
    """The settings that are not the recipe's own: one name has all of them, so no line of the table can say it."""
    state = st.session_state
    try:
        base = _effective(recipe_for(state.train_task, state.train_variant))
    except TransformerVizError:
        return {"set": None}
    changed = {name: state[f"train_{name}"] for name in FIELDS if f"train_{name}" in state}
    said = [f"{name}={written(value)}" for name, value in changed.items() if not same(value, base[name])]
    return {"set": ",".join(said) or None}


def _start() -> None:
    is_first = "train_task" not in st.session_state
    link.start("train_task", tasks.names(), "reverse")
    link.start("train_variant", variants.names(), "pre-norm")
    if is_first:
        _fill(from_link(link.take("set"), lambda part: link.complaints().add("set", part, f"NAME=VALUE of {listed(FIELDS)}")))


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
    model = config(recipe)
    return {name: getattr(model if name in MODEL else recipe, name) for name in FIELDS}


def changes(recipe: Recipe) -> dict[str, Any]:
    """The settings in which a recipe differs from its task's and variant's own, by their names."""
    before, now = _effective(recipe_for(recipe.task, recipe.variant)), _effective(recipe)
    changed = {name: value for name, value in now.items() if not same(value, before[name])}
    # Where only the width is said, the width of the feed-forward layer follows it.
    return {**changed, "d_ff": now["d_ff"]} if "d_model" in changed else changed


def _recipe() -> Recipe:
    """The task's and variant's own recipe with what the form says otherwise."""
    state = st.session_state
    base = recipe_for(state.train_task, state.train_variant)
    before = _effective(base)
    now = {name: state[f"train_{name}"] for name in FIELDS}
    changed = {name: value for name, value in now.items() if not same(value, before[name])}
    settings = {name: value for name, value in changed.items() if name not in MODEL}
    model = {**base.model, **{name: value for name, value in changed.items() if name in MODEL}}
    if {"d_model", "n_heads"} & set(changed) and "d_k" in variants.settings(base.variant):
        model |= {"d_k": None, "d_v": None}
    recipe = replace(base, model=model, **settings)
    config(recipe)
    return recipe


def config(recipe: Recipe) -> ModelConfig:
    """The model that a recipe makes, or an error that says why it makes none."""
    # Here, because every page knows the names of these fields, also those that need no model.
    from transformer_viz.training.recipe import model_config

    return model_config(recipe, tasks.make(recipe.task, recipe.task_options))


def _sizes() -> None:
    for column, (name, (label, least, most)) in zip(st.columns(len(SIZES)), SIZES.items(), strict=True):
        column.number_input(label, least, most, key=f"train_{name}", help=_help(label))


def _switchboard() -> None:
    bools = [name for name in SWITCHES if HINTS[name] is bool]
    choices = [name for name in SWITCHES if name not in bools]
    for column, name in zip(st.columns(2) * 4, choices, strict=False):
        column.selectbox(SWITCHES[name], get_args(HINTS[name]), key=f"train_{name}", help=_help(SWITCHES[name]))
    for column, name in zip(st.columns(2) * 4, bools, strict=False):
        column.toggle(SWITCHES[name], key=f"train_{name}", help=_help(SWITCHES[name]))
    for column, (name, (label, least, most)) in zip(st.columns(2), FLOATS.items(), strict=False):
        column.number_input(label, least, most, key=f"train_{name}", format="%g", help=_help(label))


def _recipe_fields() -> None:
    for column, (name, label) in zip(st.columns(3), CHOICES.items(), strict=True):
        column.selectbox(label, get_args(HINTS[name]), key=f"train_{name}", help=_help(label))
    for column, (name, (label, least, most)) in zip(st.columns(2) * 4, NUMBERS.items(), strict=True):
        form: dict[str, Any] = {"format": "%g", "step": 0.001} if isinstance(least, float) else {}
        column.number_input(label, least, most, key=f"train_{name}", help=_help(label), **form)


def _help(label: str) -> str:
    return literal(glossary.sentence(label))
