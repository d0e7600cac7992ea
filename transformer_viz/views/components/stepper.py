"""The step player, the focus map and the mosaics of one run: decoded, searched or read from a file."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.analysis.head_order import farthest_head
from transformer_viz.analysis.word_pooling import Words, kind_title
from transformer_viz.errors import join_names
from transformer_viz.export.content import linked, picture_title
from transformer_viz.export.strips import legend
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.maps import labels_of
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.player import guess as guess_figure
from transformer_viz.figures.player import player as player_figure
from transformer_viz.figures.player import scale_words
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.hidden_answer import COVERED, HIDDEN, hide_answer
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, deep_mosaic, first_question, guess, player, screen, style, term_tips
from transformer_viz.views.components.deep_mosaic import OnTile, show_mosaic
from transformer_viz.views.components.first_question import Offer
from transformer_viz.views.components.measured import MEASURES, Measured
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.state import aligner, focus, levels, link
from transformer_viz.views.state.display_options import DisplayOptions

NOTHING = Measured()
_ENDS = {"word": "your own word", "head": "another head", "why": "why there?"}
"""What one may do after the last step."""


def show(
    trace: Trace,
    chosen: DisplayOptions,
    beside: Callable[[], None] = lambda: None,
    measured: Measured = NOTHING,
    *,
    covered_from: int | None = None,
    offer: Offer | None = None,
) -> None:
    """Everything of one run that steps, for which `focus.start` and `aligner.start` have been called.

    With the answer hidden all of it is of the run as far as it is revealed, and there is something to guess.

    Args:
        trace: the run.
        chosen: how it looks.
        beside: draws what else stands in the row of the focus.
        measured: what is shown beside the weights or instead.
        covered_from: a row from which on a question covers the run until it is answered; one may step through it before that.
        offer: the first question, in the place of that row's sentence; any step puts it away.
    """
    step, is_covered = focus.step(), covered_from is not None
    if is_covered or not chosen.with_answer:
        trace = hide_answer(trace, step if covered_from is None else covered_from)
    at, is_guessed = focus.current(), not is_covered and not chosen.with_answer and trace.n_steps > 0
    with st.container(key="player-area"):
        if is_guessed:
            measured = NOTHING
            guess.show(trace, at, large=chosen.is_large, dark=style.theme() == "dark")
        else:
            _player(trace, chosen, at, measured, covered_from, offer)

    def draw_in_row() -> None:
        beside()
        # Below the pictures of a hidden answer nothing is pinned.
        if levels.is_all() and chosen.with_answer:
            with st.container(width="content", key="pin-place"):
                _pin_boxes(trace, focus.current().kind)

    focus.controls(trace, in_levels=True, beside=draw_in_row)
    measured.row()
    at = focus.current()
    size = "{} query rows by {} key columns".format(*trace.attentions[at.kind].weights.shape[2:])
    about = (
        f"{kind_title(trace, at.kind)} of the focus head, {size}, and the candidates of this step. The sentence above says it."
    )
    if is_guessed:
        figure = guess_figure(trace, at.kind, at.layer, at.head, step, chosen.scale, style.figure_style())
        chart.show(figure, player.FOCUS_KEY, about, run=at.run)
    else:
        title = picture_title(trace, at.kind, at.layer, at.head)
        unfolds = at.step if _unfolds(trace, at.kind, chosen) else None
        figure = _map_call(trace, chosen, at, measured)()
        chart.show(figure, player.FOCUS_KEY, about, run=at.run, title=title, unfolds=unfolds)
    # What the browser knows of steps is from before the answer was hidden.
    known: dict[str, Any] = {"step": None} if is_guessed else {}
    mosaics(trace, chosen, at, lambda tile: focus.go_to_tile({**tile, **known}, trace), measured)


@st.fragment
def _player(
    trace: Trace,
    chosen: DisplayOptions,
    at: focus.Focus,
    measured: Measured,
    covered_from: int | None,
    offer: Offer | None,
) -> None:
    """A fragment, so that a rested step reruns these lines only, and redraws no chart.

    Its kind, layer and head are those of the page's last whole run. A report that was on its way while
    a click moved the focus still carries the values of the boxes from before the click.
    """
    if st.session_state.pop("whole_page_wanted", False):
        st.rerun()
    link.settle("step", "pin", "lines", "measure")
    focus.draw_hidden()
    lines = link.hidden("lines", ("on", "off").__contains__, "on, off") or ("auto" if levels.is_all() else "none")
    # Between words of two languages lines show best how the order changes, so they are on wherever the map still fits below.
    is_aligned = Words(trace).are_words and any(key is not None for key in trace.alignment)
    if is_aligned and not st.session_state.lines and not screen.is_narrow():
        lines = "auto" if chosen.is_large else "on"
    if measured.chosen:
        link.hidden("measure", MEASURES[1:].__contains__, join_names(MEASURES[1:]))
    now = replace(at, step=min(focus.step(), st.session_state.last_step))
    looks: Any = {"large": chosen.is_large, "dark": style.theme() == "dark"}
    aligns = None if covered_from is not None else aligner.current(trace)
    # What rows, columns and marks mean; on a phone, which has no bar of colours and no words beside the kind, these too.
    hint = legend(trace, now.kind)
    if screen.is_narrow():
        shown = scale_words(trace, now.kind, now.layer, now.head, chosen.scale, measured.results.get(now.kind))
        hint = f"{KIND_TITLES[now.kind]}: {hint} · {shown}"
    content = player.data(trace, now, hint=hint, aligner=aligns, **looks)
    content["linked"] = linked(trace, now.kind, focus.pinned(), lines, aligns) | {
        "boxed": st.session_state.get("pins_by_box", 0)
    }
    content["unfolds"] = trace.writes and chosen.unfolds
    content["ways"] = {} if levels.is_all() or "cross" not in trace.kinds else {trace.n_steps - 1: _ENDS}
    if covered_from is not None:
        # What a question may not tell, from a row on: of the run itself it has been taken out already.
        n, content["covered_from"] = trace.n_steps - covered_from, covered_from
        content["sentences"][covered_from:] = [[("plain", "This step is covered until the question is answered.")]] * n
        content["output"][covered_from:] = [{"text": HIDDEN, "title": COVERED, "class": "covered", "tint": 0}] * n
        # Whether it is right is for later too, and so is where to go after the last step.
        content["answer"], content["ways"] = {"class": "", "words": ()}, {}
        if offer is not None:
            content["sentences"][covered_from] = term_tips.mark(offer.sentence)
            content["ways"], content["is_asked"] = {covered_from: offer.ways}, True
    elif (told := first_question.told(at.run)) is not None:
        content["sentences"][trace.n_given] = [*told.sentence, *content["sentences"][trace.n_given]]
        content["ways"] = {**content["ways"], trace.n_given: told.ways}
    player.show(measured.added_to(content, trace, now), partial(_heard, trace))


def _heard(trace: Trace, what: str, report: Any) -> None:
    """What the player reports; nonsense is passed over."""
    state = st.session_state
    if what == "step" and report.get("run") == state.get("run"):
        focus.go_to_step(report.get("step"), trace)
        state.whole_page_wanted = bool(state.get("lesson_awaits")) or first_question.is_open()
    elif what == "pin" and (report.get("run"), report.get("kind")) == (state.get("run"), state.get("kind")):
        focus.pin(report.get("place"), trace)
        state.whole_page_wanted = bool(state.get("lesson_awaits")) or first_question.is_open()
    elif what == "lines" and report in ("on", "off"):
        state.lines = report
    elif what == "measure" and report in MEASURES:
        state.measure, state.whole_page_wanted = "" if report == MEASURES[0] else report, True
    elif what == "way":
        first_question.choose(report)
        # After the last step: to a head that looks elsewhere, or to the numbers from which these weights come.
        if report == "head":
            focus.go_to_head(state.kind, *farthest_head(trace.attentions[state.kind], state.layer, state.head))
        elif report == "why":
            state.explore_tab = "Inside"
        state.whole_page_wanted = True


@st.fragment
def _pin_boxes(trace: Trace, kind: Kind) -> None:
    """Boxes for the row and the column that are pinned, drawn while their popover is open: the keyboard's way to what a click
    on the large map does."""
    state = st.session_state
    if state.pop("whole_page_wanted", False):
        st.rerun()
    with st.popover("Pin", icon=":material/push_pin:", key="pin-boxes", on_change="rerun") as popover:
        if popover.open:
            state.pin_row, state.pin_column = focus.pinned() or (None, None)
            rows, columns = ({None: "none", **dict(enumerate(names))} for names in labels_of(trace, kind))
            st.selectbox("Row", rows, key="pin_row", format_func=rows.__getitem__, on_change=_pinned_by_box)
            st.selectbox("Column", columns, key="pin_column", format_func=columns.__getitem__, on_change=_pinned_by_box)


def _pinned_by_box() -> None:
    state = st.session_state
    focus.set_pin((state.pin_row, state.pin_column))
    state.pins_by_box, state.whole_page_wanted = state.get("pins_by_box", 0) + 1, True


def _unfolds(trace: Trace, kind: Kind, chosen: DisplayOptions) -> bool:
    """Whether what later steps do is not to be seen; what an encoder reads is there from the beginning."""
    return trace.writes and kind != "encoder" and chosen.unfolds


def _map_call(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured) -> Call:
    looks: dict[str, Any] = {"scale": chosen.scale, "measure": measured.results.get(now.kind), "style": style.figure_style()}
    return Call(plain(player_figure), trace, now.kind, now.layer, now.head, now.step, **looks)


def mosaics(
    trace: Trace,
    chosen: DisplayOptions,
    now: focus.Focus,
    on_tile: OnTile,
    measured: Measured = NOTHING,
    *,
    in_pages: bool = True,
) -> None:
    """All heads of every kind, side by side, or a page of those of a deep model; `on_tile` hears of a click on one."""
    if in_pages and deep_mosaic.is_deep(trace):
        deep_mosaic.show(trace, chosen, now, on_tile, measured.of(now.kind))
        return
    calls = mosaic_calls(trace, chosen, now, measured)
    for column, (kind, call) in zip(st.columns(len(calls)), calls.items(), strict=True):
        with column:
            show_mosaic(call(), kind, now, on_tile, unfolds=_unfolds(trace, kind, chosen))


def picture_calls(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured = NOTHING) -> list[Call]:
    """What draws the large map and all heads of every kind."""
    return [_map_call(trace, chosen, now, measured), *mosaic_calls(trace, chosen, now, measured).values()]


def mosaic_calls(trace: Trace, chosen: DisplayOptions, now: focus.Focus, measured: Measured = NOTHING) -> dict[Kind, Call]:
    """What draws all heads of every kind."""
    looks: dict[str, Any] = {"scale": chosen.scale, "style": style.figure_style()}
    tiles = {kind: (now.layer, now.head) if kind == now.kind else None for kind in trace.kinds}
    return {kind: Call(plain(mosaic), trace, kind, tile, measure=measured.of(kind), **looks) for kind, tile in tiles.items()}
