"""Explore: one run, step by step, with every layer's and head's attention and every mask."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import streamlit as st

from transformer_viz.analysis.head_order import graded_head
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.architecture import Block, summary
from transformer_viz.sentences.run_sentences import Piece, Sentence, say_sentence
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.components import (
    bar,
    decoding,
    drawing,
    first_question,
    guess,
    lesson_card,
    mask_tokens,
    measured,
    style,
)
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore import compare_with, curtain, hypotheses, measures, picture, tables, trace_file
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import aligner, display_options, focus, lesson_place, levels, link, own_text, words

TITLE, ICON, ORDER = later("Explore"), ":material/grid_on:", 0
HAS_VIEWER = True
"""True for a page with a viewer, which writes its part of the address itself."""
_DRAWING, _WIDE, _LARGE = later("The model"), 372, 470
"""The drawing of the model, and its width in pixels."""
_LEAKS = later(
    "Only in training: a mask was forgotten there, so the model could read its answer. By itself it "
    "writes nothing right. Masks shows where it looked, with the mistake *No causal mask*."
)


def show() -> None:
    """Draws the page."""
    chosen = bar.show("explore", with_models=True, with_files=True, with_decoding=True, is_own_text=True)
    if chosen.is_large and not levels.is_all():
        style.stage_alone()
    if chosen.is_file:
        trace_file.show()
        return
    model = chosen.model
    if model is None:
        return
    found = bar.made(chosen, model, lambda: _decode(chosen, model))
    if found is None:
        # The last picture would tell what a lesson still asks.
        if not lesson_card.waits():
            _draw_last_picture(chosen)
        return
    greedy, whole = found
    search, trace, node = whole.search, whole, 0
    if search is not None:
        node = hypotheses.start(search, (model_list.identity(model), whole.source, *decoding.keywords(model).values()))
        trace = greedy if lesson_card.hides_search() else call(Trace.at_node, whole, node)
    if whole is greedy:
        st.session_state.explore_last = (model.name, chosen.device, chosen.text)
    shown = words.shown(trace)
    if link.is_bare():
        focus.set_step(trace.n_given)
        # Another page may have been first, and its head is that of all pages.
        if "head" not in st.session_state and (place := graded_head(shown)) is not None:
            focus.go_to_head("cross", *place)
        first_question.begin()
    if lesson_place.current() is not None:
        # It is the lesson's own first question, which is answered or skipped there.
        first_question.put_away()
    if own_text.waits():
        focus.suit(shown, model)
    at = focus.start(shown, model)
    if own_text.begins(at.run, unfolds=chosen.unfolds and chosen.with_answer and shown.writes):
        focus.set_step(shown.n_given)
    aligner.start(trace, model)
    searched = None if search is None else whole
    covered = lesson_card.ask(trace, model, searched)
    by_lesson = curtain.of_lesson(covered)
    if covered is not None and (covered.cover.is_of_search or shown is not trace):
        # Of a search what greedy decoding writes may be seen; and rows that are covered are those of tokens.
        shown = trace = greedy if covered.cover.is_of_search else trace
        focus.start(shown, model)
    now = by_lesson or replace(curtain.of_page(shown, model, chosen), asked=lesson_card.flagged())
    if now.is_guessed:
        guess.hear(shown, focus.current())
        now = curtain.of_page(shown, model, chosen)
    if now.offer is not None:
        style.question_alone()
    measuring = measures.Measuring(trace, model, is_offered=now.is_open and measured.are_shown())
    # How it learned would tell what is covered.
    is_told = model.task is not None and chosen.with_answer and not chosen.is_large and by_lesson is None
    is_leaky = is_told and bool(getattr(model, "recipe", {}).get("mistake"))
    if is_leaky:
        st.caption(say(_LEAKS))
    if model.task is not None and trace.expected is None and (remark := model.task.remark(model.task.read(chosen.text))):
        st.info(literal(remark), icon=":material/help:")
    if chosen.with_answer and not chosen.is_large:
        mask_tokens.show(trace, model)
    if model.network.sizes.recurrences:
        st.caption(literal(next(block.sentence for block in model.architecture if block.role == "recurrence")))
    tree = None
    if search is not None and covered is not None and covered.cover.is_of_search:
        hypotheses.show_covered(covered.words)
    if search is not None and by_lesson is None and not display_options.is_hidden(later("The branches of a search")):
        st.markdown(hypotheses.comparison(greedy, whole, search))
        tree = hypotheses.show(whole, search, node, greedy=greedy)
        hypotheses.tell(trace, search, node)
    with _beside_model(shown, model, large=chosen.is_large):
        remarks: Sentence = ()
        if is_told:
            does: Piece = ("strong", say("This model {does}", does=say(model.task.about)))
            remarks += (
                say_sentence("{this_model_does}. ", this_model_does=does)
                if is_leaky or not levels.is_all()
                else say_sentence("{this_model_does}; nobody told it how. ", this_model_does=does)
            )
        below = partial(_draw_below, trace, model, chosen)
        picture.show(shown, chosen, now, measuring.measured, remark=remarks, below=below)
    if by_lesson is None and now.offer is None:
        tables.show(Shown(shown, measuring.kept(trace), model, searched, whole is not greedy, measuring.measured, tree))
        measuring.finish()


def _decode(chosen: bar.Bar, model: LoadedModel) -> tuple[Trace, Trace]:
    """The greedy decoding, and the run that is shown: the same one, or one by another decoding."""
    how = decoding.strategy(model)
    length = decoding.length(model) if how == "beam" else {}
    greedy = runs.run(model, chosen.text, **length)
    if how == "greedy":
        return greedy, greedy
    keywords = decoding.keywords(model)
    if how == "forced" and not keywords:
        keywords["target"] = greedy.text if greedy.expected is None else greedy.expected
    return greedy, runs.run(model, chosen.text, **keywords)


def _draw_below(trace: Trace, model: LoadedModel, chosen: bar.Bar) -> None:
    """Draws what stands in the row below the picture."""
    about = say("{term}: {sentence}", term=glossary.sentence(_DRAWING), sentence=summary(model.architecture))
    link.toggle(say(_DRAWING), key="where", help=about)
    # Compare shows the answer, and decodes greedily and by sampling as this page does: a search has more settings here.
    has_sides = decoding.strategy(model) in ("greedy", "sample")
    if levels.is_all() and chosen.with_answer and not chosen.is_large and has_sides:
        compare_with.popover(trace, model, decoding.keywords(model))


def _draw_last_picture(chosen: bar.Bar) -> None:
    """Draws the last picture, greyed, below what is said about a text that cannot be read."""
    if (last := st.session_state.get("explore_last")) is None:
        return
    name, device, text = last
    try:
        model = model_list.load_any(name, device)
        trace = words.shown(runs.run(model, text))
    except TransformerVizError:  # its checkpoint has gone meanwhile
        return
    focus.start(trace, model)
    aligner.start(trace, model)
    st.caption(say("The last picture, of {text}:", text=of_run(text)))
    picture.show(trace, chosen, is_grey=True)


@contextmanager
def _beside_model(trace: Trace, model: LoadedModel, *, large: bool) -> Generator[None]:
    """Draws the model, where it is open, left of what is drawn within; in a narrow window above it."""
    if not link.is_on("where"):
        yield
        return
    with st.container(horizontal=True, key="with-drawing"):
        with st.container(width=_LARGE if large else _WIDE, key="drawing-area"):
            now = focus.current()
            marks = drawing.Marks(
                focus=(now.kind, now.layer),
                head=focus.head_words(now.head),
                may={(kind, layer) for kind in trace.kinds for layer in trace.attentions[kind].layers},
            )
            title = say("The model that runs: {architecture}.", architecture=summary(model.architecture))

            def go(block: Block) -> None:
                """To the same head of another attention; one that it has not is not gone to (`focus.start`)."""
                if block.kind in trace.kinds and block.layer in trace.attentions[block.kind].layers:
                    st.session_state.kind, st.session_state.layer = block.kind, block.layer

            drawing.show(model.architecture, title, "drawing", marks, large=large, on_press=go)
        with st.container(key="beside-drawing"):
            yield
