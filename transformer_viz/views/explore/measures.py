"""The switch between weights, by value, cause and the other measures; each is computed when somebody chooses it.

What is quick is there with the page. For another one the page is drawn with the weights, and then waits where the measure will
be said, as for every long run. A measure that cannot be had is refused there by name.
"""

from typing import Any

import streamlit as st

from transformer_viz.attribution.methods import METHODS
from transformer_viz.errors import TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import KIND_TITLES, MODES, Kind
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES, TITLES, Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import runs
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.measured import BY_SHARES, BY_VALUE, OF_SWITCH, Measured, switched
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.state import link, words

OTHERS = tuple(name for name in METHODS if name not in OF_SWITCH.values())
_TITLES = {BY_SHARES: f"source | prefix ({TITLES[BY_SHARES]})"}


class Measuring:
    """What a page asks of its run, by tokens: what is there at once, and the rest after all else is drawn.

    Args:
        trace: the run.
        model: that made it.
        is_offered: whether there is a switch; without one all is weights. What counts would tell a hidden answer.
    """

    def __init__(self, trace: Trace, model: LoadedModel, *, is_offered: bool) -> None:
        state = st.session_state
        self._run = (model, trace)
        self._is_offered, self._switch = is_offered, switched() if is_offered else "weights"
        link.option("other_measure", OTHERS, BY_SHARES, _title, is_drawn=self._switch == "more")
        link.option("cause_mode", MODES, is_drawn=self._switch == "cause")
        self._method = OF_SWITCH.get(self._switch, state.other_measure)
        self._mode = state.cause_mode if METHODS[self._method].modes else "word"
        self._found: dict[Kind, Attribution] = {}
        self._refused, self._missing = "", list[Kind]()
        if self._switch == "weights":
            return
        self._refused = self._why_not(trace, state.kind)
        if not words.is_on(trace):
            self._look(self._kinds(trace, state.kind))

    def _why_not(self, trace: Trace, kind: Kind) -> str:
        """What the measure does not have of what is in focus."""
        title = _title(self._method)
        if words.is_on(trace):
            return f"{title} is measured on tokens, not on words. Choose *tokens* above."
        if kind in KINDS_WITH_CAUSES:
            return ""
        others = " or ".join(KIND_TITLES[each] for each in KINDS_WITH_CAUSES if each in trace.kinds)
        words_on = f"Choose {others}." if others else "This model has nothing else."
        return f"{KIND_TITLES[kind].capitalize()} has no {title}: an encoder writes nothing that could be measured. {words_on}"

    def _kinds(self, trace: Trace, kind: Kind) -> list[Kind]:
        """Of every kind by value, since small maps have it; else of the one in focus, and the source's shares."""
        known: list[Kind] = [each for each in KINDS_WITH_CAUSES if each in trace.kinds]
        if self._method == BY_VALUE:
            return known
        return [each for each in known if each == kind or (self._method == BY_SHARES and each == "cross")]

    def _look(self, kinds: list[Kind]) -> None:
        try:
            for kind in kinds:
                found = runs.attribution_at_once(*self._run, self._method, self._mode, kind)
                if found is None:
                    self._missing.append(kind)
                else:
                    self._found[kind] = found
        except TransformerVizError as error:
            self._refused = str(error)

    @property
    def measured(self) -> Measured:
        """What is shown."""
        if not self._is_offered:
            return Measured()
        shares = self._found.get("cross") if self._method == BY_SHARES else None
        return Measured(self._switch, dict(self._found), shares, self._row)

    def kept(self, trace: Trace) -> Trace:
        """The run with what was found, for its file."""
        for found in self._found.values():
            trace = call(Trace.with_attribution, trace, found)
        return trace

    def _row(self) -> None:
        """Which measure it is, what it says and what it cannot say; and what is in its way."""
        if self._switch == "weights":
            return
        with st.container(horizontal=True, vertical_alignment="center", key="measure-row"):
            if self._switch == "cause":
                link.segmented_control("Without it", MODES, key="cause_mode", label_visibility="collapsed")
            if self._switch == "more":
                looks: Any = {"width": 260, "label_visibility": "collapsed"}
                link.selectbox("Measure", OTHERS, key="other_measure", default=BY_SHARES, words=_title, **looks)
            method = METHODS[self._method]
            st.markdown(f"{literal(method.help)}. **It cannot say** {literal(method.cannot)}.", width="stretch")
        if self._refused:
            st.info(literal(self._refused), icon=":material/block:")
        elif self._missing:
            self._place = st.container(key="measure-run")

    def finish(self) -> None:
        """Waits for what takes long; the last thing on a page, which ends here until it is there."""
        if self._refused or not self._missing:
            return
        with self._place:
            try:
                runs.attribution(*self._run, self._method, self._mode, self._missing[0])
            except TransformerVizError as error:
                st.info(literal(str(error)), icon=":material/block:")
                return
        st.rerun()


def _title(method: str) -> str:
    return _TITLES.get(method, METHODS[method].title)
