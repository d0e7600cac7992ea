"""The drawing of the model on the page Train, and beside it a published variant of the same sizes, with their differences."""

import streamlit as st

from transformer_viz.model import variants
from transformer_viz.model.architecture import Architecture, architecture_of, differing
from transformer_viz.model.config import ModelConfig
from transformer_viz.training.recipe import Recipe
from transformer_viz.views import glossary
from transformer_viz.views.components import drawing
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link
from transformer_viz.views.train import form
from transformer_viz.views.train.form import FLOATS, SIZES, SWITCHES, same, written

_NONE = "nothing"
_TITLE, _BESIDE = "Drawing of the model", "Beside it"
_WIDE = 372
"""Pixels."""
_LABELS = {**SWITCHES, **{name: label for name, (label, *_) in FLOATS.items()}}
_NOT_DRAWN = ("dropout", "dropout_in", "initialization")
"""Settings that change the training and not how the trained model runs."""


def show(recipe: Recipe | None) -> None:
    """Draws the switch and, while it is on and the form makes a model, the drawing."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="train-drawing-bar"):
        link.toggle(_TITLE, key="where", help=glossary.sentence(_TITLE))
        if st.session_state.where:
            help_ = glossary.sentence(_BESIDE)
            link.selectbox(_BESIDE, (_NONE, *variants.names()), key="train_beside", width=220, help=help_)
    if recipe is None or not st.session_state.where:
        return
    config, variant, title = form.config(recipe), st.session_state.train_beside, "The model of this form"
    mine = architecture_of(config)
    with st.container(key="train-drawing"):
        if variant == _NONE:
            with st.container(width=_WIDE):
                drawing.show(mine, f"{title}.", "drawing")
            return
        beside = at_sizes_of(config, variant)
        theirs = architecture_of(beside)
        values = {
            label: (getattr(config, name), getattr(beside, name)) for name, label in _LABELS.items() if name not in _NOT_DRAWN
        }
        said = "; ".join(
            f"{label}: {written(own)} here, {written(there)} in {variant}"
            for label, (own, there) in values.items()
            if not same(own, there)
        )
        st.caption(literal(f"≠ and dashes mark what differs. {said}." if said else f"Built like {variant}."))
        with st.container(horizontal=True):
            _one(title, mine, theirs, "drawing")
            _one(f"{variant}, at the same sizes", theirs, mine, "drawing-beside")


def at_sizes_of(config: ModelConfig, variant: str) -> ModelConfig:
    """A published variant with the layers, heads, widths and vocabularies of this model, so that only the structure differs."""
    kept = (*SIZES, "d_k", "d_v", "source_vocabulary_size", "target_vocabulary_size", "max_positions")
    return ModelConfig(**{**variants.settings(variant), **{name: getattr(config, name) for name in kept}})


def _one(title: str, architecture: Architecture, other: Architecture, key: str) -> None:
    with st.container(width=_WIDE):
        st.markdown(f"**{literal(title)}**")
        drawing.show(architecture, f"{title}.", key, drawing.Marks(different=differing(architecture, other)))
