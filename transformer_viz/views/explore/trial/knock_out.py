"""The question *Is it needed?*: what the answers to many texts lose without the head in focus, or without each head."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import HeadPlace
from transformer_viz.attribution.figures.knock_out import TITLES
from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words, signed_words
from transformer_viz.terms import INSTEAD, KIND_TITLES, head_label
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components import chart, code, table
from transformer_viz.views.components.bar import MOST_TYPED
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.by_length import SAMPLES
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options, link


def show(trace: Trace, model: LoadedModel) -> None:
    """Draws the boxes for texts and what stands in a head's place, a toggle and, while it is on, what is lost."""
    state, is_large = st.session_state, display_options.current().is_large
    if not link.is_on("trial_every") and asked.one_head() is None:
        return
    if not is_large:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if model.task is not None:
                link.selectbox("Fresh texts", SAMPLES, key="trial_samples", default=asked.FIRST_SAMPLES, width=130)
            link.segmented_control("In its place", INSTEAD, key="trial_how", help=glossary.sentence("In its place"))
            link.toggle("Every head", key="trial_every")
        link.text_area(
            "Texts of your own, one a line",
            key="trial_texts",
            height=68,
            most=MOST_TYPED,
            placeholder="Empty: " + ("fresh texts of the task" if model.task is not None else "this run"),
        )
    link.option("trial_how", INSTEAD)
    texts = asked.texts_of(model)
    if not asked.is_asked(asked.KNOCK_OUT, trace, model, "Take it away"):
        words = "Measured on this run alone: its one answer stays, or it does not."
        if texts.lines:
            words = f"Over {count_words(len(texts.lines), 'text')} of your own."
        elif texts.n_drawn:
            drawn = count_words(texts.n_drawn, "fresh text")
            words = f"Over {drawn} of the task, of all lengths, against their right answers. A result is kept."
        st.caption(literal(words))
        return
    head = None if state.trial_every else HeadPlace(state.kind, state.layer, state.head)
    found = runs.knock_out(model, trace, texts, state.trial_how, head)
    if words := asked.sentence(trace, model):
        st.markdown(f"**{literal(words)}**")
    if head is None:
        _every(found, is_large=is_large)
    else:
        [effect] = found.heads
        answers = "right answers" if found.n_known == found.n_texts else "what was written" if not found.n_known else "answers"
        before, without = percent_words(found.exact_before.value), percent_words(effect.exact.value)
        words = (
            f"{count_words(found.n_texts, 'text')}, {answers}: {before} are written with all heads, {without} without "
            f"this one{asked.with_interval(effect.exact)}; log p of each token of the answer changes by "
            f"{signed_words(effect.log_p.value)} nats on average."
        )
        st.markdown(literal(words))
    if not is_large:
        code.show(Call("print({0}.exact_before, {0}.heads)", found), key="code_of_tab")


def _every(found: KnockOut, *, is_large: bool) -> None:
    """Draws two heatmaps of the kind in focus, and a table of all heads."""
    state = st.session_state
    at = (state.layer, state.head)
    for column, (number, title) in zip(st.columns(2), TITLES.items(), strict=True):
        words = f"Layers and heads of the {KIND_TITLES[state.kind]} by {title}; the table below has the same numbers"
        key, file = f"trial-{number}", f"knock-out-{number}"
        with column:
            chart.draw(figures.knock_out, found, state.kind, number, at, key=key, words=words, file=file)
    if is_large:
        return
    stays, lost = [each.stays.ends for each in found.heads], [each.log_p.ends for each in found.heads]
    columns = {
        "head": [head_label(each.place.layer, each.place.head) for each in found.heads],
        "attention": [each.place.kind for each in found.heads],
        "answers that stay": [each.stays.value for each in found.heads],
        "answers that stay, 95 %": ["" if ends is None else interval_words(ends, percent_words) for ends in stays],
        "log p lost": [-each.log_p.value for each in found.heads],
        # `0.0 -`, since a `-` alone makes -0.000 of 0.
        "log p lost, 95 %": ["" if ends is None else f"{0.0 - ends[1]:.3f} to {0.0 - ends[0]:.3f}" for ends in lost],
    }
    table.show(columns, "What is lost without each head", percents=("answers that stay",), places=3)
