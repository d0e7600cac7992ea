"""How a model reads and writes, as far as it leaves a choice: its generation config, its chat
template, its languages, its shortlist.

What is chosen holds for every model of the session that has the choice, on every page. The session has it under these names.
"""

from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.model_options import ModelOptions
from transformer_viz.views.state import link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

OWN = ""
"""A language that is the model's own choice."""


def start(model: "LoadedModel") -> None:
    """The choices that this model has, before their boxes are drawn."""
    has, languages = model.options, (OWN, *model.languages)
    for key, is_there, default in (
        ("generation", has.generation, True),
        ("chat", has.chat, False),
        ("shortlist", has.shortlist, True),
    ):
        if is_there is not None:
            link.is_on(key, default)
    if model.languages:
        for key in ("source_language", "target_language"):
            link.option(key, languages, OWN, language_words)


def language_words(code: str) -> str:
    """As the box has it."""
    return code or "its own"


def asked() -> ModelOptions:
    """What the session asks for; None is as a model is by itself."""
    state = st.session_state
    return ModelOptions(
        generation=None if state.get("generation", True) else False,
        chat=state.get("chat") or None,
        source_language=state.get("source_language") or None,
        target_language=state.get("target_language") or None,
        shortlist=None if state.get("shortlist", True) else False,
    )


def of(model: "LoadedModel") -> ModelOptions:
    """What the session asks for, as far as this model has the choice."""
    now, has, languages = asked(), model.options, model.languages
    return ModelOptions(
        generation=None if has.generation is None else now.generation,
        chat=None if has.chat is None else now.chat,
        source_language=now.source_language if now.source_language in languages else None,
        target_language=now.target_language if now.target_language in languages else None,
        shortlist=None if has.shortlist is None else now.shortlist,
    )


def switched(model: "LoadedModel") -> "LoadedModel":
    """The model as the session asks for it."""
    switches = of(model)
    return model if switches == ModelOptions() else model.with_options(switches)
