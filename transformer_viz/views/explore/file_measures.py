"""The switch between weights and the measures (by value, cause …) that an opened trace file holds.

Nothing is measured here, since that takes the model. What a link asks for and the file does not hold is refused by name.
"""

from collections.abc import Iterable
from typing import Any

import streamlit as st

from transformer_viz.errors import TraceError
from transformer_viz.terms import KIND_TITLES, MODES, Kind
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES, TITLES, Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.measured import (
    BY_CAUSE,
    BY_SHARES,
    MEASURES,
    OF_SWITCH,
    Measured,
    switched,
)
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import link, words

_MEASURED_BY = "To get it, run the model here, or use `tv.attribute`"


class Held:
    """What is shown of the measures of a run, by tokens, from a file.

    Args:
        trace: the run.
        is_offered: whether there may be a switch: what counts would tell a hidden answer.
    """

    def __init__(self, trace: Trace, *, is_offered: bool) -> None:
        self._trace, self._why = trace, ""
        self._is_offered = is_offered
        try:
            made = "measure = {}.attributions[{}]"
            self._held = [record(each, Call(made, trace, name)) for name, each in trace.attributions.items()]
        except TraceError as error:
            self._held, self._why = [], str(error)
        self.switch = switched() if is_offered else MEASURES[0]
        link.option("cause_mode", MODES)
        if others := self._others():
            link.option("other_measure", others, _first(others), self._titles().__getitem__)
        self._found = {} if self.switch == "weights" or self._why else self._results()

    def _others(self) -> list[str]:
        return list(dict.fromkeys(each.method for each in self._held if each.method not in OF_SWITCH.values()))

    def _titles(self) -> dict[str, str]:
        return {each.method: TITLES.get(each.method, each.title) for each in self._held}

    def _modes(self) -> list[str]:
        return list(dict.fromkeys(each.mode for each in self._held if each.method == BY_CAUSE and each.mode is not None))

    def _results(self) -> dict[Kind, Attribution]:
        """Of the measure that is asked for, by kinds; where there is none of the kind in focus, it is said."""
        state = st.session_state
        method = OF_SWITCH.get(self.switch) or (state.other_measure if self._others() else "")
        mode = state.cause_mode if self.switch == "cause" else None
        there = {each.kind: each for each in self._held if each.method == method and (mode is None or each.mode == mode)}
        if not there:
            held = ", ".join(dict.fromkeys(f"{each.title} of {KIND_TITLES[each.kind]}" for each in self._held))
            title = f"{_title(method) if method else 'other measure'}{f' by {mode}' if mode else ''}"
            self._why = f"This file holds no {title}; it holds {held or 'no measure at all'}. {_MEASURED_BY}."
            return {}
        title = next(iter(there.values())).title
        if words.is_on(self._trace):
            self._why = f"{title} is measured on tokens, not on words. Choose *tokens* above."
            return {}
        if state.kind not in there:
            self._why = f"This file holds {title} of {_listed(there)}, and none of {KIND_TITLES[state.kind]}."
            # A small map that has it keeps it, as on Explore.
            return there if self.switch == "value" else {}
        shown = {state.kind, *(["cross"] if method == BY_SHARES else [])}
        return {kind: each for kind, each in there.items() if self.switch == "value" or kind in shown}

    @property
    def measured(self) -> Measured:
        """What is shown; no switch where the file holds nothing and nothing was asked for."""
        held = {"weights", self.switch, *(["more"] if self._others() else [])}
        held |= {switch for switch, method in OF_SWITCH.items() if any(each.method == method for each in self._held)}
        if not self._is_offered or held == {"weights"}:
            return Measured()
        results = dict(self._found)
        shares = next((each for kind, each in results.items() if each.method == BY_SHARES and kind == "cross"), None)
        offered = tuple(each for each in MEASURES if each in held)
        return Measured(self.switch, results, shares, self._row, offered)

    def _row(self) -> None:
        """Which of several it is, what it is, and what is in its way."""
        if self.switch == "weights":
            return
        with st.container(horizontal=True, vertical_alignment="center", key="measure-row"):
            quiet: Any = {"label_visibility": "collapsed"}
            if self.switch == "cause" and (modes := list(dict.fromkeys((*self._modes(), st.session_state.cause_mode)))):
                first = MODES[0] if MODES[0] in modes else modes[0]
                link.segmented_control("Without it", modes, key="cause_mode", default=first, **quiet)
            if self.switch == "more" and (others := self._others()):
                words = self._titles().__getitem__
                link.selectbox("Measure", others, key="other_measure", default=_first(others), words=words, width=260, **quiet)
            if self._found:
                one = next(iter(self._found.values()))
                st.markdown(
                    f"{literal(one.title[:1].upper() + one.title[1:])}, as the file has it. {_help(one)}", width="stretch"
                )
        if self._why:
            st.info(literal(self._why), icon=":material/block:")


def _first(others: list[str]) -> str:
    return BY_SHARES if BY_SHARES in others else others[0]


def _title(method: str) -> str:
    return TITLES.get(method, method.replace("_", " "))


def _help(result: Attribution) -> str:
    term = {"value_weighted": "value-weighted norm", BY_CAUSE: "cause"}.get(result.method)
    return "" if term is None else f"{literal(glossary.sentence(term))}."


def _listed(kinds: Iterable[Kind]) -> str:
    return " and ".join(KIND_TITLES[kind] for kind in KINDS_WITH_CAUSES if kind in kinds)
