"""The switch between weights, by value and cause; each is computed when somebody chooses it.

What is quick is there with the page. For another one the page is drawn with the weights, and then waits where the measure will
be said, as for every long run. A measure that cannot be had is refused there by name.
"""

import streamlit as st

from transformer_viz.attribution.methods import METHODS
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import one_of, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import MODES, Kind, kind_words
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES, Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import runs
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.measured import BY_VALUE, OF_SWITCH, Measured, switched
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore.file_measures import draw_boxes
from transformer_viz.views.state import link, words


class Measuring:
    """The measure that is chosen for a run, by tokens: at once where that is quick, otherwise after all else is drawn.

    Args:
        trace: the run.
        model: that made it.
        is_offered: whether there is a switch; without one all is weights. What counts would tell a hidden answer.
    """

    def __init__(self, trace: Trace, model: LoadedModel, *, is_offered: bool) -> None:
        state = st.session_state
        self._run = (model, trace)
        self._is_offered, self._switch = is_offered, switched() if is_offered else "weights"
        link.option("cause_mode", MODES, is_drawn=self._switch == "cause")
        self._mode = state.cause_mode if self._switch == "cause" else "word"
        self._found: dict[Kind, Attribution] = {}
        self._refused, self._missing = "", list[Kind]()
        if self._switch == "weights":
            return
        self._method = OF_SWITCH[self._switch]
        title, known = say(METHODS[self._method].title), [kind for kind in KINDS_WITH_CAUSES if kind in trace.kinds]
        if words.is_on(trace):
            self._refused = say("{title} is measured on tokens, not on words. Choose *tokens* above.", title=title)
            return
        if state.kind not in KINDS_WITH_CAUSES:
            others = one_of(kind_words(kind) for kind in known)
            more = say("Choose {others}.", others=others) if others else say("This model has nothing else.")
            name = kind_words(state.kind).capitalize()
            self._refused = say(
                "{name} has no {title}: an encoder writes nothing that could be measured. {more}",
                name=name,
                title=title,
                more=more,
            )
        try:
            # Of every kind by value, since small maps have it; else of the one in focus.
            for kind in (kind for kind in known if self._method == BY_VALUE or kind == state.kind):
                result = runs.attribution(*self._run, self._method, self._mode, kind, waits=False)
                if result is None:
                    self._missing.append(kind)
                else:
                    self._found[kind] = result
        except TransformerVizError as error:
            self._refused = str(error)

    @property
    def measured(self) -> Measured:
        """The measure that the player and the maps show."""
        if not self._is_offered:
            return Measured()
        return Measured(self._switch, dict(self._found), self._row)

    def kept(self, trace: Trace) -> Trace:
        """The run with what was found, for its file."""
        for found in self._found.values():
            trace = call(Trace.with_attribution, trace, found)
        return trace

    def _row(self) -> None:
        """Draws which measure it is, what it says and what it cannot say; and what is in its way."""
        if self._switch == "weights":
            return
        method = METHODS[self._method]
        draw_boxes(
            self._switch,
            MODES,
            say("{help}. **It cannot say** {cannot}.", help=literal(say(method.help)), cannot=literal(say(method.cannot))),
        )
        if self._refused:
            st.info(literal(self._refused), icon=":material/block:")
        elif self._missing:
            self._place = st.container(key="measure-run")

    def finish(self) -> None:
        """Waits for a measure that takes long, then draws the page again. Call it last: the page ends here until then."""
        if self._refused or not self._missing:
            return
        with self._place:
            try:
                runs.attribution(*self._run, self._method, self._mode, self._missing[0])
            except TransformerVizError as error:
                st.info(literal(str(error)), icon=":material/block:")
                return
        st.rerun()
