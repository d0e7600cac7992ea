"""Is it needed? What answers lose without the head in focus, or without each, over texts."""

from collections.abc import Callable

import streamlit as st

from transformer_viz import figures, glossary
from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.knock_out import KnockOut
from transformer_viz.analysis.sentences import percent_words, signed_words
from transformer_viz.analysis.verdict import Mean
from transformer_viz.figures.knock_out import TITLES
from transformer_viz.terms import KIND_TITLES, head_label
from transformer_viz.views.components import chart, code, figure_file, table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.snippets import trial as programs
from transformer_viz.views.state import display_options
from transformer_viz.views.state.controls import INSTEAD, MOST_TYPED, SAMPLES


def show(shown: Shown) -> None:
    """Over which texts, a button, and what is lost."""
    state, model = st.session_state, shown.model
    assert model is not None
    if not state.trial_every and asked.one_head() is None:
        return
    is_large = display_options.current().is_large
    if not is_large:
        _controls(shown)
    texts = asked.texts_of(model)
    if not asked.is_asked(asked.KNOCK_OUT, shown, "Take it away"):
        st.caption(literal(_over(texts)))
        return
    head = None if state.trial_every else HeadPlace(state.kind, state.layer, state.head)
    found = runs.knock_out(model, shown.device, shown.tokens, texts, state.trial_how, head)
    if words := asked.sentence(shown):
        st.markdown(f"**{literal(words)}**")
    if head is not None:
        st.markdown(literal(_in_full(found)))
    else:
        _every(found, shown)
    if not is_large:
        given = (texts.lines, texts.n_drawn, runs.longest(model), state.trial_how, head)
        code.show(programs.knock_out(asked.run_of(shown), *given), "code_of_tab")


def _controls(shown: Shown) -> None:
    assert shown.model is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if shown.model.task is not None:
            st.selectbox("Fresh texts", SAMPLES, key="trial_samples", width=130)
        st.segmented_control("In its place", INSTEAD, key="trial_how", required=True, help=glossary.sentence("In its place"))
        st.toggle("Every head", key="trial_every")
    st.text_area(
        "Texts of your own, one a line",
        key="trial_texts",
        height=68,
        max_chars=MOST_TYPED,
        placeholder="Empty: " + ("fresh texts of the task" if shown.model.task is not None else "this run"),
    )


def _over(texts: runs.Texts) -> str:
    if texts.lines:
        return f"Over {len(texts.lines)} texts of your own."
    if texts.n_drawn:
        return f"Over {texts.n_drawn} fresh texts of the task, of all lengths, against their true answers. A result is kept."
    return "Over this run alone, against what it wrote: one answer, which stays or does not."


def _in_full(found: KnockOut) -> str:
    """The numbers of one head."""
    [effect] = found.heads
    answers = "true answers" if found.n_known == found.n_texts else "what was written" if not found.n_known else "answers"
    before, without = percent_words(found.exact_before.value), percent_words(effect.exact.value)
    return (
        f"{found.n_texts} text{'s' * (found.n_texts > 1)}, {answers}: {before} are written with all heads, {without} without "
        f"this one{asked.interval_words(effect.exact)}; log p of each token of the answer changes by "
        f"{signed_words(effect.log_p.value)} nats on average."
    )


def _every(found: KnockOut, shown: Shown) -> None:
    """Two heatmaps of the kind in focus, and a table of all heads."""
    state, is_large = st.session_state, display_options.current().is_large
    for place, (number, title) in zip(st.columns(2), TITLES.items(), strict=True):
        with place:
            figure = figures.knock_out(found, state.kind, number, (state.layer, state.head), theme=shown.theme, large=is_large)
            words = f"Layers and heads of the {KIND_TITLES[state.kind]} by {title}; the table below has the same numbers"
            chart.show(figure, f"trial-{number}", words, zooms=False)
            figure_file.offer(figure, f"knock-out-{number}")
    if is_large:
        return
    columns = {
        "head": [table.words(head_label(each.place.layer, each.place.head)) for each in found.heads],
        "attention": [table.words(each.place.kind) for each in found.heads],
        "answers that stay": [table.percent(each.stays.value) for each in found.heads],
        "answers that stay, 95 %": [_ends(each.stays, asked.percents) for each in found.heads],
        "log p lost": [table.number(-each.log_p.value, 3) for each in found.heads],
        "log p lost, 95 %": [_ends(each.log_p, _lost) for each in found.heads],
    }
    table.show("trial-heads-table", "What is lost without each head", columns)


def _lost(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"{table.number(-high, 3).text} to {table.number(-low, 3).text}"


def _ends(mean: Mean, written: Callable[[tuple[float, float]], str]) -> table.Cell:
    return table.words("" if mean.ends is None else written(mean.ends))
