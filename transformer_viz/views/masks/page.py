"""Masks: see every mask of a batch, break it, and prove that nothing leaks."""

import streamlit as st

from transformer_viz.analysis.sentences import source_unit
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, TraceTooLarge, TransformerVizError
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.tracing.trace_size import megabytes
from transformer_viz.views.components import bar, screen, style, tabs
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.masks import batch, setup
from transformer_viz.views.masks.setup import NO_MISTAKE, Setup
from transformer_viz.views.state import display_options, focus, link, on_demand

TITLE, ICON, ORDER = "Masks", ":material/grid_off:", 1

TABS = tabs.found("transformer_viz.views.masks")


def show() -> None:
    """The page."""
    chosen = bar.show("masks", with_text=False, long_texts=setup.long_texts())
    checkpoint = chosen.checkpoint
    if checkpoint is None:
        return
    if display_options.is_hidden("Masks, with the tokens beside them,"):
        link.write(link.values())
        return
    batch.show(checkpoint)
    try:
        typed = batch.typed()
        batch.check_readable(typed, checkpoint.task)
        _lab(chosen, checkpoint, typed)
    except InputError as error:
        link.say(None)
        link.write(link.values())
        st.error(literal(str(error)), icon=":material/keyboard:")
        st.button("Use examples of this checkpoint", on_click=_examples, args=(checkpoint,), icon=":material/lightbulb:")
    except TraceTooLarge as error:
        words = f"These runs would take up to {megabytes(error.needed)}, more than the page allows."
        st.warning(f"{words} Shorten the sentences, or take fewer.", icon=":material/memory:")
    except TransformerVizError as error:
        link.say(None)
        st.error(literal(str(error)), icon=":material/error:")
        st.button("Reset", on_click=setup.reset, icon=":material/restart_alt:", key="lab-reset-error")


def _lab(chosen: bar.Bar, checkpoint: Checkpoint, typed: batch.Typed) -> None:
    now = setup.start(chosen, checkpoint, typed, style.theme(), screen.is_narrow())
    focus.start_place(now.forced(changed=False)[now.sentence], checkpoint)
    for tab in TABS.values():
        if hasattr(tab, "start"):
            tab.start(now)
    on_demand.start(now.made_of)
    link.start("lab_tab", tuple(TABS))
    link.say((typed, now.sentence, now.edits, now.mistake))
    link.write({**link.values(), **on_demand.link_values(now.made_of)})
    _header(now)
    tabs.show(TABS, "lab_tab", now)


def _header(now: Setup) -> None:
    """The sentence in focus, the mistake, the way back, and in words what happens to it."""
    sources = now.typed.sources
    with st.container(horizontal=True, vertical_alignment="center", key="lab-header"):
        st.segmented_control(
            "Sentence",
            range(len(sources)),
            key="sentence",
            required=True,
            format_func=lambda i: f"{i + 1}: {of_run(_short(sources[i]))}",
            label_visibility="collapsed",
        )
        st.selectbox(
            "Mistake",
            [NO_MISTAKE, *MISTAKES],
            key="mistake",
            width=280,
            format_func=lambda name: "no mistake" if name == NO_MISTAKE else MISTAKES[name].title,
            label_visibility="collapsed",
        )
        if now.is_changed:
            st.button("Reset all", icon=":material/restart_alt:", on_click=setup.reset, key="lab-reset-all")
    before = now.decoded(changed=False)[now.sentence]
    real = len([letter for letter in before.source_letters if letter is not None])
    n = len(before.source_tokens)
    size = f"{real} letters, {real + 2} tokens" if source_unit(before) == "letter" else f"{real + 2} tokens"
    words = (
        f"Sentence {now.sentence + 1} of {len(sources)}: **{of_run(before.source)}** becomes "
        f"**{of_run(before.text)}**{display_options.answer_of(before)}. "
        f"It has {size} with its frame, and {n - real - 2} of padding."
    )
    if now.is_changed:
        after = now.decoded(changed=True)[now.sentence]
        text = f"**{of_run(after.text)}**{display_options.answer_of(after)}"
        words += f" With {literal(now.change_words())} it becomes {text}."
    st.markdown(words)


def _examples(checkpoint: Checkpoint) -> None:
    st.session_state.lab_sources = batch.default_sources(checkpoint.task)
    st.session_state.lab_targets = ""


def _short(source: str, most: int = 18) -> str:
    return source if len(source) <= most else source[: most - 1] + "…"
