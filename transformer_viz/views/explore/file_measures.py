"""The switch between weights and the measures (by value, cause …) that an opened trace file holds.

Nothing is measured here, since that takes the model. What a link asks for and the file does not hold is refused by name.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from transformer_viz.errors import TraceError
from transformer_viz.language import enumerated, later, listed, say
from transformer_viz.terms import MODES, Kind, kind_words
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES, TITLES, Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.measured import BY_CAUSE, BY_VALUE, MEASURES, OF_SWITCH, Measured, switched
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import link, words

_MEASURED_BY = later("To get it, run the model here, or use `tv.attribute`")


def held(trace: Trace, *, is_offered: bool) -> Measured:
    """The measures that a run's file holds, as they are shown; no switch where it holds none and none was asked for.

    Args:
        trace: the run, by tokens.
        is_offered: whether there may be a switch: what counts would tell a hidden answer.
    """
    state, why, results = st.session_state, "", list[Attribution]()
    try:
        made = "measure = {}.attributions[{}]"
        results = [record(result, Call(made, trace, name)) for name, result in trace.attributions.items()]
    except TraceError as error:
        why = str(error)
    switch = switched() if is_offered else MEASURES[0]
    link.option("cause_mode", MODES)
    by_kind: dict[Kind, Attribution] = {}
    if switch != "weights" and not why:
        by_kind, why = _found(trace, results, switch)
    methods = {result.method for result in results}
    buttons = {"weights", switch, *(name for name, of in OF_SWITCH.items() if of in methods)}
    if not is_offered or buttons == {"weights"}:
        return Measured()
    # The one of a link stands among the buttons too.
    modes = dict.fromkeys([*(result.mode for result in results if result.method == BY_CAUSE and result.mode), state.cause_mode])

    def draw_row() -> None:
        """Draws which measure of the file it is, what it is, and what is in its way."""
        if switch == "weights":
            return
        about = ""
        if by_kind:
            one = next(iter(by_kind.values()))
            help_ = literal(glossary.sentence({BY_VALUE: "value-weighted norm", BY_CAUSE: "cause"}[one.method]))
            about = say(
                "{upper}, as the file has it. {help}.",
                upper=literal(say(one.title)[:1].upper() + say(one.title)[1:]),
                help=help_,
            )
        draw_boxes(switch, list(modes), about)
        if why:
            st.info(literal(why), icon=":material/block:")

    return Measured(switch, by_kind, draw_row, tuple(measure for measure in MEASURES if measure in buttons))


def _found(trace: Trace, held: Sequence[Attribution], switch: str) -> tuple[dict[Kind, Attribution], str]:
    """The results of a measure by kinds, and why there is none of the kind in focus."""
    method = OF_SWITCH[switch]
    state, mode = st.session_state, st.session_state.cause_mode if switch == "cause" else None
    there = {result.kind: result for result in held if result.method == method and (mode is None or result.mode == mode)}
    if not there:
        title = TITLES[method]
        known = enumerated(
            dict.fromkeys(say("{title} of {kind}", title=say(result.title), kind=kind_words(result.kind)) for result in held)
        ) or say("no measure at all")
        wanted = say("{measure} by {mode}", measure=say(title), mode=say(mode)) if mode else say(title)
        return {}, say(
            "This file holds no {measure}; it holds {held}. {how}.", measure=wanted, held=known, how=say(_MEASURED_BY)
        )
    title = say(next(iter(there.values())).title)
    if words.is_on(trace):
        return {}, say("{title} is measured on tokens, not on words. Choose *tokens* above.", title=title)
    if state.kind not in there:
        some = listed(kind_words(kind) for kind in KINDS_WITH_CAUSES if kind in there)
        # A small map that has it keeps it, as on Explore.
        kept = there if switch == "value" else {}
        return kept, say(
            "This file holds {title} of {listed}, and none of {kind}.", title=title, listed=some, kind=kind_words(state.kind)
        )
    return {kind: result for kind, result in there.items() if switch == "value" or kind == state.kind}, ""


def draw_boxes(switch: str, modes: Sequence[str], about: str) -> None:
    """Draws the row of a measure below the boxes of the focus.

    Args:
        switch: the button of the player that is pressed.
        modes: ways to take a token away, for the causes.
        about: what the measure is, as Markdown.
    """
    quiet: Any = {"label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="measure-row"):
        if switch == "cause":
            first = MODES[0] if MODES[0] in modes else modes[0]
            link.segmented_control(say("Without it"), modes, key="cause_mode", default=first, **quiet)
        if about:
            st.markdown(about, width="stretch")
