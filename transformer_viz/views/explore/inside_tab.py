"""The tab Inside: one row of one head, from what enters to what leaves, and the arithmetic of every number."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.addresses import HeadAddress, row_address
from transformer_viz.errors import NotSeenError, OptionError, TransformerVizError
from transformer_viz.inside_head import explanations
from transformer_viz.language import later, say
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, style
from transformer_viz.views.components import inside as picture
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options, focus, link, words

TITLE, ORDER, IN_LARGE = later("Inside"), 0, True
TELLS = later("The numbers inside a head")
_NUMBER = re.compile(r"[a-z_]{1,20}(\.[1-9]\d{0,4}){0,2}", re.ASCII)
_PRESSED = re.compile(rf"-([1-9]\d?)|(\+?)({_NUMBER.pattern.replace('(', '(?:')})", re.ASCII)
_LONGEST_WAY = 32
"""Terms that one goes on to before the first of them is forgotten."""


def show(shown: Shown) -> None:
    """Draws the row in focus, or what is in its way."""
    state, trace = st.session_state, shown.tokens
    if not isinstance(state.head, int):
        st.info(
            say("All heads as one have no query, keys and values of their own. Choose a head above."), icon=":material/info:"
        )
        return
    # What is pinned among words is no token. Without a pinned row it is the step, and of an encoder beside a decoder its first.
    row, key = (focus.pinned() or (None, None)) if not words.is_on(trace) else (None, None)
    if row is None:
        row = min(words.token_step(trace), len(trace.rows) - 1) if trace.is_stepped(state.kind) else 0
    head = HeadAddress(state.kind, state.layer, state.head)
    try:
        if shown.model is None:
            inside = _of_file(trace, row_address(head, row))
        else:
            # Here, because a file has this tab where there is no model.
            from transformer_viz.views.cache import runs

            inside = runs.inside(shown.model, trace, head, row)
    except NotSeenError as error:
        state.inside_untold = state.run
        st.info(literal(str(error)), icon=":material/info:")
        return
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    if inside is None:
        return
    key = key if key is not None and key < len(inside.key_tokens) else None
    # Whether there is such a number in this row is seen where it is explained.
    allowed = say("the name of a number and its place, as weight.5 or key.5.1")
    explained = partial(link.hidden, "explained", lambda address: _NUMBER.fullmatch(address) is not None, allowed)
    explained()
    way = _way(inside, key)
    explained()
    is_large = display_options.current().is_large
    looks = picture.Looks(style.theme(), is_large)
    picture.show(inside, way, looks, key, lambda pressed: _pressed(pressed, way), state.get("inside_wanted", 0))
    if not is_large:
        printed = Call(explanations.explain, inside, state.explained) if state.explained else Call("{}.weights", inside)
        code.show(Call("print({})", printed), key="code_of_tab")


def _of_file(trace: Trace, address: str) -> Inside | None:
    """The inside of a row that the file holds; where it holds others, draws a way to them, and else how to record one."""
    held = trace.insides
    found = next((inside for inside in held if inside.address == address), None)
    if found is not None:
        return record(found, Call("inside = next(inside for inside in {}.insides if inside.address == {})", trace, address))
    if not held:
        st.markdown(
            say("This file does not hold what happens inside a head. Record it with the run, for one head and one row:")
        )
        st.code(f"python -m transformer_viz trace TEXT --inside {address} -o FILE", language="bash", wrap_lines=True)
        return None
    st.markdown(say("The file does not hold the inside of {address}. It holds:", address=literal(address)))
    with st.container(horizontal=True):
        for inside in held:
            st.button(inside.address, key=f"go-inside-{inside.address}", on_click=_go, args=(inside,))
    return None


def _go(inside: Inside) -> None:
    state = st.session_state
    focus.go_to_head(inside.kind, inside.layer, inside.head)
    focus.set_pin((inside.row, None))
    state.pinned_in = (state.run, state.kind)


def _way(inside: Inside, key: int | None) -> list[str]:
    """The addresses of the numbers that were pressed one after the other; the last one is explained."""
    state = st.session_state
    pinned = (inside.address, key)
    if state.setdefault("inside_pinned", pinned)[1] != key:
        state.explained = ""
    state.inside_pinned = pinned
    way = state.get("inside_way", [])
    way = way if way and way[-1] == state.explained else [state.explained] if state.explained else []
    try:
        for address in way:
            explanations.explain(inside, address)
    except OptionError:
        way, state.explained = [], ""
    return way or [f"weight.{(int(inside.weights.argmax()) if key is None else key) + 1}"]


def _pressed(pressed: Any, way: Sequence[str]) -> None:
    """Explains the number that was pressed in the browser: another one, a term of the last one, or one pressed before. What is
    no number's address is passed over."""
    if not isinstance(pressed, str) or not (asked := _PRESSED.fullmatch(pressed)):
        return
    back, is_term, address = asked.groups()
    way = [*way][: int(back)] if back else [*way, address][-_LONGEST_WAY:] if is_term else [address]
    st.session_state.inside_way, st.session_state.explained = way, way[-1]
