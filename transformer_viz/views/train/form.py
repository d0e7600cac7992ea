"""The form of the page Train: task and variant, sizes, architecture, and how the training goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import streamlit as st

from transformer_viz import tasks
from transformer_viz.errors import TransformerVizError
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views import glossary
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
    same,
)


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
        """What is trained."""
        return recipe_for(self.task, self.variant, settings=self.settings, model=self.model)


_TASK, _VARIANT = "reverse", "pre-norm"
_LIMITS: dict[str, tuple[str, Any, Any]] = {**SIZES, **NUMBERS, **FLOATS}
_TINY = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 64, "d_ff": 128}
PRESETS = (
    Preset(
        "A first training, one minute",
        "Learns to write German numbers as figures, *vierzehn* as 14. One layer, 700 steps; nearly every number that it was "
        "not trained on comes out right.",
        "numbers",
        "pre-norm",
        {"steps": 700},
        _TINY,
    ),
    Preset(
        "Two sentences, ten seconds",
        "Learns the two German sentences of a published tutorial by heart, in 60 steps.",
        "german-toy",
        "post-norm",
    ),
    Preset(
        "The published reversal, a few minutes",
        "Learns to write strings of 10 to 19 letters backwards, with the variant and the settings of an article: 588 steps.",
        "reverse",
        "residual-post-norm",
    ),
)


def show() -> Recipe | None:
    """Draws the form. Returns the recipe; where that is not possible, says why in the form and returns None."""
    left, right = st.columns(2)
    names: dict[str, Any] = {"on_change": _reset}
    with left:
        task = link.selectbox("Task", tasks.names(), key="train_task", default=_TASK, help=_help("Task"), **names)
    with right:
        first: dict[str, Any] = {"default": _VARIANT, **names}
        variant = link.selectbox("Variant", variants.names(), key="train_variant", help=_help("Variant"), **first)
    summary, _, more = variants.description(variant).partition("\n\n")
    right.caption(literal(summary), help=literal(more))
    try:
        base = _effective(recipe_for(task, variant))
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return None
    for name in FIELDS:
        _value(name, base[name])
    return _advanced(base)


def _advanced(base: Mapping[str, Any]) -> Recipe | None:
    """Draws every setting, an error under the group that it is about. Returns the recipe, or None with an error."""
    parts = (
        ("Size: layers, heads, widths", SIZES, _sizes),
        ("Architecture: norms, biases, scaling, positions", {**SWITCHES, **FLOATS}, _switchboard),
        ("Training: steps, optimizer, schedule, loss", {**NUMBERS, **CHOICES}, _recipe_fields),
    )
    state = st.session_state
    is_changed = any(not same(state[f"train_{name}"], value) for name, value in base.items())
    said = []
    with st.expander("Advanced: all settings", expanded=is_changed, icon=":material/tune:"):
        for title, names, draw in parts:
            st.markdown(f"**{title}**")
            draw(base)
            said.append((names, st.container()))
    try:
        return _recipe()
    except TransformerVizError as error:
        words = str(error)
        place = next((place for names, place in said if any(name in words for name in names)), st)
        place.error(literal(words), icon=":material/error:")
        if place is not st:
            st.caption("These settings cannot be trained. *Advanced* says which one to change.")
        return None


def _reset() -> None:
    """Puts all settings back to those of the chosen task and variant."""
    link.reset(*(f"train_{name}" for name in FIELDS), "train_name")


def _value(name: str, default: Any) -> Any:
    """The value of a setting, before its box is drawn."""
    key = f"train_{name}"
    if (limits := _LIMITS.get(name)) is not None:
        _, least, most = limits
        return link.number(key, least, most, default)
    return link.is_on(key, default) if HINTS[name] is bool else link.option(key, get_args(HINTS[name]), default)


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


def _recipe() -> Recipe:
    """The recipe of the chosen task and variant, with the settings that were changed in the form."""
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
    """The configuration of the model that a recipe makes.

    Raises:
        ConfigError: the recipe's settings make no model; the message says why.
    """
    # Imported here, because pages that need no model read the names of this form's fields too.
    from transformer_viz.training.recipe import model_config

    return model_config(recipe, tasks.make_task(recipe.task, recipe.task_options))


def _sizes(base: Mapping[str, Any]) -> None:
    for column, name in zip(st.columns(len(SIZES)), SIZES, strict=True):
        with column:
            _number(name, base)


def _switchboard(base: Mapping[str, Any]) -> None:
    bools = [name for name in SWITCHES if HINTS[name] is bool]
    choices = [name for name in SWITCHES if name not in bools]
    for column, name in zip(st.columns(2) * 4, choices, strict=False):
        with column:
            _choice(name, SWITCHES[name], base)
    for column, name in zip(st.columns(2) * 4, bools, strict=False):
        with column:
            link.toggle(SWITCHES[name], key=f"train_{name}", default=base[name], help=_help(SWITCHES[name]))
    for column, name in zip(st.columns(2), FLOATS, strict=False):
        with column:
            _number(name, base, format="%g")


def _recipe_fields(base: Mapping[str, Any]) -> None:
    for column, (name, label) in zip(st.columns(3), CHOICES.items(), strict=True):
        with column:
            _choice(name, label, base)
    for column, (name, (_, least, _)) in zip(st.columns(2) * 4, NUMBERS.items(), strict=True):
        form: dict[str, Any] = {"format": "%g", "step": 0.001} if isinstance(least, float) else {}
        with column:
            _number(name, base, **form)


def _number(name: str, base: Mapping[str, Any], **form: Any) -> None:
    label, least, most = _LIMITS[name]
    link.number_input(label, least, most, base[name], key=f"train_{name}", help=_help(label), **form)


def _choice(name: str, label: str, base: Mapping[str, Any]) -> None:
    link.selectbox(label, get_args(HINTS[name]), key=f"train_{name}", default=base[name], help=_help(label))


def _help(label: str) -> str:
    return literal(glossary.sentence(label))
