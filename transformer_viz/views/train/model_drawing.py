"""The drawing of the model on the page Train."""

import streamlit as st

from transformer_viz.language import later, say
from transformer_viz.model.architecture import architecture_of
from transformer_viz.training.recipe import Recipe
from transformer_viz.views import glossary
from transformer_viz.views.components import drawing
from transformer_viz.views.state import link
from transformer_viz.views.train import form

_TITLE = later("Drawing of the model")
_WIDE = 372
"""Pixels."""


def show(recipe: Recipe | None) -> None:
    """Draws the switch and, while it is on and the form makes a model, the drawing."""
    is_on = link.toggle(say(_TITLE), key="where", help=glossary.sentence(_TITLE))
    if recipe is not None and is_on:
        with st.container(width=_WIDE, key="train-drawing"):
            drawing.show(architecture_of(form.config(recipe)), say("The model of this form."), "drawing")
