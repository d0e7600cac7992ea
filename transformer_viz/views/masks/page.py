"""Masks: see every mask of a batch, break it, and prove that nothing leaks."""

from typing import Any

import streamlit as st

from transformer_viz.errors import InputError, TraceTooLarge, TransformerVizError
from transformer_viz.language import later, say, sentences
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.sentences.compare_words import fills_words
from transformer_viz.sentences.run_sentences import source_unit
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import bar, lesson_card, tabs
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.masks import covered, mistakes_tab, setup
from transformer_viz.views.masks.setup import NO_MISTAKE, Setup
from transformer_viz.views.state import display_options, focus, link

TITLE, ICON, ORDER = later("Masks"), ":material/grid_off:", 1
HAS_VIEWER = True
"""True for a page with a viewer, which writes its part of the address itself."""

TABS = tabs.found("transformer_viz.views.masks")


def show() -> None:
    """Draws the page."""
    chosen = bar.show("masks", with_text=False, with_models=True)
    model = chosen.model
    if model is None:
        return
    if display_options.is_hidden(later("Masks, with the tokens beside them,")):
        return
    if not chosen.is_large:
        st.markdown(
            say(
                "A mask says what the model may not look at: letters that are not written yet, and the filling after shorter "
                "texts."
            )
        )
    setup.draw_boxes(model)
    try:
        now = setup.start(model, setup.read_boxes(model))
        trace = now.sound().forced()[now.sentence]
        if link.option("masks_tab", list(TABS)) != mistakes_tab.TITLE or not mistakes_tab.start_place(now):
            focus.start_place(trace, chosen.checkpoint)
        with st.container(horizontal=True, vertical_alignment="center", key="lab-header"):
            sentences: Any = {"words": setup.sentence_words(now.typed), "label_visibility": "collapsed"}
            link.segmented_control(say("Sentence"), range(len(now.typed.sources)), key="sentence", **sentences)
            if model.task is not None:
                mistakes: Any = {
                    "words": setup.mistake_words,
                    "said": setup.said_mistake,
                    "width": 280,
                    "label_visibility": "collapsed",
                }
                link.selectbox_pressed(say("Mistake"), [NO_MISTAKE, *MISTAKES], key="mistake", **mistakes)
            if now.is_changed:
                st.button(say("Reset all"), icon=":material/restart_alt:", on_click=setup.reset, key="lab-reset-all")
        read, written = (run()[now.sentence] for run in (now.forced, now.decoded))
        if (under := lesson_card.ask(read, model, written=written)) is not None:
            covered.show(now, under, written)
            return
        _say_outcome(now)
        tabs.show(TABS, "masks_tab", now)
    except InputError as error:
        st.error(literal(str(error)), icon=":material/keyboard:")
        examples: Any = {
            "on_click": st.session_state.update,
            "kwargs": {"sources": setup.default_sources(model), "targets": ""},
        }
        st.button(say("Use examples"), icon=":material/lightbulb:", **examples)
    except TraceTooLarge as error:
        words = say("These runs would take up to {needed}, more than the page allows.", needed=bytes_words(error.needed))
        st.warning(say("{words} Shorten the sentences, or take fewer.", words=words), icon=":material/memory:")
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        st.button(say("Reset"), on_click=setup.reset, icon=":material/restart_alt:", key="lab-reset-error")


def _say_outcome(now: Setup) -> None:
    """Draws what becomes of the sentence in focus, and how large it is."""
    before, model = now.sound().decoded()[now.sentence], now.model
    n_tokens, n_letters = len(model.tokenizer.encode_source(before.source)), sum(at is not None for at in before.source_letters)
    n_padding = (len(before.source_tokens) or before.n_given + 1) - n_tokens
    if model.task is None:
        # What another tokenizer frames is a part of its tokens.
        padding = (
            say("{n_padding} of padding {side} them", n_padding=n_padding, side=say(setup.side_of_padding(model)))
            if n_padding
            else say("no padding")
        )
        size = say("{n_tokens} tokens, and {padding}", n_tokens=n_tokens, padding=padding)
    else:
        letters = say("{n_letters} letters, ", n_letters=n_letters) if source_unit(before) == "letter" else ""
        size = say(
            "{letters}{n_tokens} tokens with its frame, and {n_padding} of padding",
            letters=letters,
            n_tokens=n_tokens,
            n_padding=n_padding,
        )
    words = [
        say(
            "Sentence {sentence} of {count}: **{source}** {before} It has {size}.",
            sentence=now.sentence + 1,
            count=len(now.typed.sources),
            source=of_run(before.source),
            before=_becomes(before, model),
            size=size,
        )
    ]
    if now.is_changed:
        after = now.decoded()[now.sentence]
        words.append(say("With {change} it {becomes}", change=literal(now.change_words()), becomes=_becomes(after, model)))
    st.markdown(sentences(words))


def _becomes(trace: Trace, model: LoadedModel) -> str:
    """Says what the model makes of a sentence: a text, how it goes on, or its fills of the mask tokens; with a full stop."""
    if not model.network.kind.writes:
        return say("is filled with **{trace}**.", trace=of_run(fills_words(trace))) if trace.fills else say("is read.")
    answer = display_options.answer_of(trace)
    fields = {"text": of_run(trace.text), "answer": answer}
    if not answer and trace.text.endswith((".", "!", "?", "…")):
        has_prompt = model.network.kind.has_prompt
        return say("goes on with **{text}**{answer}", **fields) if has_prompt else say("becomes **{text}**{answer}", **fields)
    if model.network.kind.has_prompt:
        return say("goes on with **{text}**{answer}.", **fields)
    return say("becomes **{text}**{answer}.", **fields)
