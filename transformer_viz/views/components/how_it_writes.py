"""The box *How it writes* beside a model's name: its generation config in words, and its options."""

import streamlit as st

from transformer_viz.analysis.generation_words import generation_words
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model_options import ModelOptions
from transformer_viz.views.components.markdown import said
from transformer_viz.views.state import levels, link, switches


def popover(model: LoadedModel) -> None:
    """Nothing for a model that is ours, and for one that writes nothing."""
    has = model.options
    if not model.generation and has == ModelOptions():
        return
    words = "Its generation config, chat template, languages and shortlist"
    with (
        levels.only_in_all("how-it-writes", is_used=switches.of(model) != ModelOptions()),
        st.popover("How it writes", icon=":material/edit_note:", help=words),
    ):
        if has.generation is not None:
            link.toggle("As its generation config says", key="generation", default=True, help="Off: only its logits decide")
        if has.shortlist is not None:
            words = "Off: it may write any token. Probabilities are over the whole vocabulary in both cases"
            link.toggle("Only what its shortlist allows", key="shortlist", default=True, help=words)
        _say_rules(model)
        if has.chat is not None:
            words = "What the template adds is seen as tokens of the prompt"
            link.toggle("The text as a message in its chat template", key="chat", help=words)
        if model.languages:
            for which, does in (("source_language", "reads"), ("target_language", "writes")):
                link.selectbox(f"It {does}", key=which)


def _say_rules(model: LoadedModel) -> None:
    """A line for each."""
    has = model.options
    left = ModelOptions(
        generation=True if has.generation is False else None, shortlist=True if has.shortlist is False else None
    )
    whole = model if left == ModelOptions() else model.with_options(left)
    for number, clause in enumerate(generation_words(whole.generation, model.tokenizer.label)):
        is_off = list(whole.generation)[number] not in model.generation
        st.caption(f"~~{said(clause)}~~" if is_off else said(clause))
