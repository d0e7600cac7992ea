"""The picture of Explore: what the page says of a run to its viewer, and the boxes that belong to it, below."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.addresses import HeadAddress, row_address
from transformer_viz.analysis.head_order import farthest_head
from transformer_viz.errors import join_names
from transformer_viz.export.content import aligned, picture_title
from transformer_viz.export.strips import output_strip
from transformer_viz.language import later, say
from transformer_viz.sentences.run_sentences import Sentence, say_sentence
from transformer_viz.trace.hidden_answer import COVERED, HIDDEN
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import deep_mosaic, first_question, guess, ideas, term_tips, viewer
from transformer_viz.views.components.measured import MEASURES, NOTHING, Measured
from transformer_viz.views.explore.curtain import OPEN, Curtain
from transformer_viz.views.state import aligner, focus, lesson_place, levels, link
from transformer_viz.views.state.display_options import DisplayOptions

_ENDS = {"word": later("your own word"), "head": later("another head"), "why": later("why there?")}
"""The words for what one may do after the last step."""


def show(
    trace: Trace,
    chosen: DisplayOptions,
    curtain: Curtain = OPEN,
    measured: Measured = NOTHING,
    *,
    remark: Sentence = (),
    is_grey: bool = False,
    below: Callable[[], None] = lambda: None,
) -> None:
    """Draws everything of one run that steps, for which `focus.start` and `aligner.start` have been called.

    Args:
        trace: the run; of it only what the curtain allows is sent.
        chosen: how it looks.
        curtain: what may be seen.
        measured: what is shown beside the weights or instead.
        remark: what stands beside the kinds.
        is_grey: whether it is the last picture, below a text that cannot be read.
        below: draws what else stands in the row below.
    """
    measured = measured if curtain.is_open else NOTHING
    seen = curtain.cover(trace)
    parts = _parts(seen, chosen, curtain, measured, remark)
    if curtain.is_guessed:
        parts |= guess.parts(seen, focus.current())
    maps, overview, which, at = None, None, None, focus.current()
    if deep := deep_mosaic.is_deep(trace):
        deep_mosaic.start(seen)
        maps, overview = deep_mosaic.figures(seen, chosen, at, measured.of(at.kind))
        state = st.session_state
        which = (at.kind, state.head_order, state.heads_page, state.overview_of)
    looks = viewer.Looks({**parts, "overview": overview}, measured.chosen, measured.results, maps, which, is_grey)
    viewer.show(*(seen, chosen, looks), said=measured.step_words, on_way=partial(_go_on, seen), covered=not curtain.is_open)
    if curtain.is_guessed:
        guess.boxes(trace)
    with st.container(horizontal=True, vertical_alignment="center", key="focus-controls"):
        if deep:
            deep_mosaic.boxes(seen, measured.of(at.kind))
        focus.unit_offer(trace)
        # The first question stands alone.
        if curtain.offer is None:
            below()
    measured.row()


def _go_on(trace: Trace, way: str) -> None:
    """To what a button beside a step's sentence says; nonsense is passed over."""
    state = st.session_state
    first_question.choose(way)
    if ideas.choose(way):
        first_question.put_away()
    lesson_place.hear(way)
    if way == "head" and state.kind in trace.kinds:
        focus.go_to_head(state.kind, *farthest_head(trace.attentions[state.kind], state.layer, state.head))
    elif way == "export":
        state.explore_tab = "Export"
    elif way == "why":
        state.explore_tab, state.explained, state.inside_way = "Inside", "", []
        state.inside_wanted = state.get("inside_wanted", 0) + 1


def _tells_why(trace: Trace, chosen: DisplayOptions) -> bool:
    """Tells whether *Inside* can say where the weights of the head in focus come from: of all heads as one, and of a model
    whose queries and keys are not seen, it cannot, and of a file only what that holds."""
    at = focus.current()
    if not isinstance(at.head, int) or at.kind == "encoder" or st.session_state.get("inside_untold") == at.run:
        return False
    # It is offered at the last step, and explains that one or what is pinned.
    pinned, _ = focus.pinned() or (None, None)
    row = row_address(HeadAddress(at.kind, at.layer, at.head), trace.n_steps - 1 if pinned is None else pinned)
    return not getattr(chosen, "is_file", False) or any(inside.address == row for inside in trace.insides)


def _parts(trace: Trace, chosen: DisplayOptions, curtain: Curtain, measured: Measured, remark: Sentence) -> dict[str, Any]:
    """The page's words on the run as it is seen."""
    link.hidden("measure", MEASURES[1:].__contains__, join_names(MEASURES[1:]))
    aligns = aligner.current(trace) if curtain.is_open else None
    # The browser says which these are; what a head is is told where the step's sentence has the word.
    now: Any = {"head": ("head", ""), "n": ("heads", ""), "heads": ("plain", say("heads"))}
    here = say_sentence("{head}: one of {n} {heads}, parts that each look in their own way; the model writes from all.", **now)
    is_one = all(attention.weights.shape[:2] == (1, 1) for attention in trace.attentions.values())
    here = () if levels.is_all() or is_one else here
    tells_why = not levels.is_all() and "cross" in trace.kinds and _tells_why(trace, chosen)
    parts: dict[str, Any] = {
        "aligner": aligned(trace, aligns),
        "saved": picture_title(trace),
        "remark": [*term_tips.mark(remark, told=("weight",)), *here] if not chosen.is_large else [],
        "ways": {}
        if levels.is_all() or "cross" not in trace.kinds
        else {trace.n_steps - 1: {way: say(words) for way, words in _ENDS.items() if way != "why" or tells_why}},
        "measures": measured.switch,
        **({} if curtain.asked is None else {"asked": curtain.asked}),
    }
    if curtain.row is not None and not curtain.is_guessed:
        row = curtain.row
        # What a question may not tell, from a row on: of the run itself it has been taken out already.
        parts["coveredFrom"], parts["coveredWords"] = row, [("plain", curtain.words)]
        covered = {"text": HIDDEN, "title": say(COVERED), "class": "covered", "tint": 0}
        # Where a visitor is asked first, nothing is to be seen yet of what is still to come.
        later = covered if curtain.offer is None else {**covered, "text": ""}
        parts["output"] = [*output_strip(trace)[:row], covered, *[later] * (trace.n_steps - row - 1)]
        # Whether it is right is for later too, and so is where to go after the last step.
        parts["answer"], parts["ways"] = {"class": "", "words": ()}, {}
        if curtain.offer is not None:
            parts["coveredWords"] = term_tips.mark(curtain.offer.sentence)
            parts["ways"], parts["isAsked"] = {row: curtain.offer.ways}, True
            parts["ideas"] = ideas.offered()
    elif (told := first_question.told(focus.current().run)) is not None:
        parts["told"] = {trace.n_given: told.sentence}
        parts["ways"] = {**parts["ways"], trace.n_given: told.ways}
    return parts
