"""The choices that a model leaves in how it reads and writes: its generation config, its chat template, its languages, its
shortlist; and the box *How it writes*. What is chosen holds for every model of the session that has the choice, on every page.
The session has it under these names.

What is chosen holds for every model of the session that has the choice, on every page. The session has it under these names.
"""

from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.language import say
from transformer_viz.model_options import ModelOptions
from transformer_viz.sentences.generation_words import generation_words
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import levels, link

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
            link.option(key, languages, OWN, language_words, said=lambda code: code or say("its own"))


def language_words(code: str) -> str:
    """The words of the box for a language."""
    return code or "its own"


def asked() -> ModelOptions:
    """The options that the session asks for; None is as a model is by itself."""
    state = st.session_state
    return ModelOptions(
        generation=None if state.get("generation", True) else False,
        chat=state.get("chat") or None,
        source_language=state.get("source_language") or None,
        target_language=state.get("target_language") or None,
        shortlist=None if state.get("shortlist", True) else False,
    )


def of(model: "LoadedModel") -> ModelOptions:
    """The options that the session asks for, as far as this model has the choice."""
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


def popover(model: "LoadedModel") -> None:
    """The box: the generation config in words, and the options; nothing for a model that is ours, or writes nothing."""
    has = model.options
    if not model.generation and has == ModelOptions():
        return
    if not levels.is_all() and of(model) == ModelOptions():
        return
    words = say("Its generation config, chat template, languages and shortlist")
    with st.popover(say("How it writes"), icon=":material/edit_note:", help=words):
        if has.generation is not None:
            link.toggle(
                say("As its generation config says"), key="generation", default=True, help=say("Off: only its logits decide")
            )
        if has.shortlist is not None:
            words = say("Off: it may write any token. Probabilities are over the whole vocabulary in both cases")
            link.toggle(say("Only what its shortlist allows"), key="shortlist", default=True, help=words)
        off = ModelOptions(
            generation=True if has.generation is False else None, shortlist=True if has.shortlist is False else None
        )
        whole = (model if off == ModelOptions() else model.with_options(off)).generation
        for name, value in whole.items():
            for clause in generation_words({name: value}, model.tokenizer.label):
                st.caption(said(clause) if name in model.generation else f"~~{said(clause)}~~")
        if has.chat is not None:
            words = say("What the template adds is seen as tokens of the prompt")
            link.toggle(say("The text as a message in its chat template"), key="chat", help=words)
        if model.languages:
            link.selectbox(say("It reads"), key="source_language")
            link.selectbox(say("It writes"), key="target_language")
