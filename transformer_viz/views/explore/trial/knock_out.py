"""The question *Is it needed?*: what the answers to many texts lose without the head in focus, or without each head."""

from collections.abc import Callable

import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.figures.knock_out import TITLES
from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.numbers_in_words import count_words, percent_words, signed_words
from transformer_viz.terms import INSTEAD, KIND_TITLES, head_label
from transformer_viz.views import glossary
from transformer_viz.views.components import chart, code, figure_file, style, table
from transformer_viz.views.components.bar import MOST_TYPED
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options, link


def show(shown: Shown) -> None:
    """Over which texts, a button, and what is lost."""
    state, model = st.session_state, shown.model
    assert model is not None
    if not link.is_on("trial_every") and asked.one_head() is None:
        return
    is_large = display_options.current().is_large
    if not is_large:
        assert shown.model is not None
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if shown.model.task is not None:
                asked.samples_box()
            link.segmented_control("In its place", INSTEAD, key="trial_how", help=glossary.sentence("In its place"))
            link.toggle("Every head", key="trial_every")
        link.text_area(
            "Texts of your own, one a line",
            key="trial_texts",
            height=68,
            most=MOST_TYPED,
            placeholder="Empty: " + ("fresh texts of the task" if shown.model.task is not None else "this run"),
        )
    link.option("trial_how", INSTEAD)
    texts = asked.texts_of(model)
    if not asked.is_asked(asked.KNOCK_OUT, shown, "Take it away"):
        st.caption(literal(_over(texts)))
        return
    head = None if state.trial_every else HeadPlace(state.kind, state.layer, state.head)
    found = runs.knock_out(model, shown.tokens, texts, state.trial_how, head)
    if words := asked.sentence(shown):
        st.markdown(f"**{literal(words)}**")
    if head is not None:
        st.markdown(literal(_in_full(found)))
    else:
        _every(found)
    if not is_large:
        code.show(Call("print({0}.exact_before, {0}.heads)", found), key="code_of_tab")


def _over(texts: runs.Texts) -> str:
    if texts.lines:
        return f"Over {count_words(len(texts.lines), 'text')} of your own."
    if texts.n_drawn:
        drawn = count_words(texts.n_drawn, "fresh text")
        return f"Over {drawn} of the task, of all lengths, against their right answers. A result is kept."
    return "Measured on this run alone: its one answer stays, or it does not."


def _in_full(found: KnockOut) -> str:
    """The numbers of one head."""
    [effect] = found.heads
    answers = "right answers" if found.n_known == found.n_texts else "what was written" if not found.n_known else "answers"
    before, without = percent_words(found.exact_before.value), percent_words(effect.exact.value)
    return (
        f"{count_words(found.n_texts, 'text')}, {answers}: {before} are written with all heads, {without} without "
        f"this one{asked.with_interval(effect.exact)}; log p of each token of the answer changes by "
        f"{signed_words(effect.log_p.value)} nats on average."
    )


def _every(found: KnockOut) -> None:
    """Two heatmaps of the kind in focus, and a table of all heads."""
    state, is_large = st.session_state, display_options.current().is_large
    for place, (number, title) in zip(st.columns(2), TITLES.items(), strict=True):
        with place:
            figure = figures.knock_out(found, state.kind, number, (state.layer, state.head), style=style.figure_style())
            words = f"Layers and heads of the {KIND_TITLES[state.kind]} by {title}; the table below has the same numbers"
            chart.show(figure, f"trial-{number}", words)
            figure_file.offer(figure, f"knock-out-{number}")
    if is_large:
        return
    columns = {
        "head": [head_label(each.place.layer, each.place.head) for each in found.heads],
        "attention": [each.place.kind for each in found.heads],
        "answers that stay": [each.stays.value for each in found.heads],
        "answers that stay, 95 %": [_ends(each.stays, asked.percents) for each in found.heads],
        "log p lost": [-each.log_p.value for each in found.heads],
        "log p lost, 95 %": [_ends(each.log_p, _lost) for each in found.heads],
    }
    table.show(columns, "What is lost without each head", percents=("answers that stay",), places=3)


def _lost(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"{-high + 0.0:.3f} to {-low + 0.0:.3f}"


def _ends(mean: Mean, written: Callable[[tuple[float, float]], str]) -> str:
    return "" if mean.ends is None else written(mean.ends)
