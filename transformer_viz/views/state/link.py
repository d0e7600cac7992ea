"""What a link holds: every control of every page. Counting from 1, as a person reads.

Read once, when a session opens; written in every run, defaults left out. A value that is not
possible is said and then left out, never silently replaced. Which widget has which key is in `controls.py`.

A whole run writes everything that its page has. A fragment that runs again writes its own keys alone: the
boxes outside it come from the browser as they were when it was asked, which may be from before a click.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import persist_widgets
from transformer_viz.views.state.controls import BY_KEY, KEYS, TABLE, Control
from transformer_viz.views.state.values import LONGEST_TEXT, Options


@dataclass
class Complaints:
    """What was wrong with a link, in sentences, and how many of them the person has seen already."""

    said: list[str] = field(default_factory=list)
    n_seen: int = 0

    def add(self, key: str, given: object, allowed: str) -> None:
        """`head=9 in the link is not possible …`."""
        self.said.append(f"{key}={str(given)[:60]} in the link is not possible here; possible is {allowed}.")


def read_once() -> None:
    """Puts what the link says into the session, as `want_*`, when the session opens."""
    if "link_read" in st.session_state:
        return
    st.session_state.link_read = True
    st.session_state.complaints = Complaints()
    for key in KEYS:
        if key in st.query_params:
            st.session_state[f"want_{key}"] = st.query_params[key]
    st.session_state.is_bare = not is_waiting(*KEYS)


def take(key: str) -> str | None:
    """What the link said for a key, once."""
    return st.session_state.pop(f"want_{key}", None)


def is_bare() -> bool:
    """Whether the session was opened by an address that says nothing; once."""
    return st.session_state.pop("is_bare", False)


def is_waiting(*names: str) -> bool:
    """Whether the link has one of these that nobody has taken yet."""
    return any(f"want_{name}" in st.session_state for name in names)


def complaints() -> Complaints:
    """The session's complaints about its link."""
    return st.session_state.complaints


def say(seen: object) -> None:
    """Shows what was wrong with the link, until the person goes on to something else than `seen`."""
    state, wrong = st.session_state, complaints()
    if state.setdefault("complained_at", seen) != seen:
        del wrong.said[: wrong.n_seen]
        state.complained_at = seen
    wrong.n_seen = len(wrong.said)
    for said in wrong.said:
        st.warning(literal(said), icon=":material/link_off:")


def open_page(page: str) -> None:
    """First in every whole run: what was on the screen is kept, and the page's controls are started that need nothing of it."""
    persist_widgets.keep()
    read_once()
    st.session_state.link_page, st.session_state.link_started = page, {}
    for control in TABLE:
        if page in control.pages and control.is_fixed:
            start(control.key)


def start(key: str, options: Options = None, default: Any = None, *, fallback: Any = None) -> Any:
    """Gives a control its value before it is drawn: the session's, the link's or the default.

    Args:
        key: of the control.
        options: what is possible here; those of the table where None.
        default: likewise; the first option where there is none. The link leaves it out.
        fallback: takes the place of a session's value that is not possible any more; the default where None.

    Returns:
        The value.
    """
    control, state = BY_KEY[key], st.session_state
    options = control.options if options is None else options
    default = control.default if default is None else default
    if default is None:
        assert options
        default = next(iter(options.values() if isinstance(options, Mapping) else options))
    if key not in state:
        given = linked(key, options)
        state[key] = default if given is None else given
    elif state[key] != default and not control.value.holds(state[key], options):
        state[key] = default if fallback is None else fallback
    leave_out(key, default)
    return state[key]


def linked(key: str, options: Options = None) -> Any:
    """What the link says of a control, once; None where it says nothing, or what is not possible and is said to be so."""
    control = BY_KEY[key]
    given = take(control.name)
    if given is None:
        return None
    options = control.options if options is None else options
    return control.value.read(given, options, lambda possible: complaints().add(control.name, given, possible))


def leave_out(key: str, value: Any = None) -> None:
    """The link says nothing of a control while it has this value, which is what the page opens with; None: always something."""
    st.session_state.link_started[key] = value


def values(keys: Collection[str] | None = None) -> dict[str, str | None]:
    """What the link says of the page's controls that have been started, or of some of them; None is a default."""
    state = st.session_state
    # Streamlit looks into several places for each value of a session.
    page, started = state.link_page, state.link_started
    words: dict[str, str | None] = {}
    defaults: dict[str, tuple[str, ...]] = {}
    for control in TABLE:
        if page not in control.pages or (keys is not None and control.key not in keys):
            continue
        if not _is_in_use(control):
            words[control.name] = None
        elif control.key in started:
            value = state.get(control.key)
            words[control.name] = None if value is None else control.value.written(value, control.options)
            if value == started[control.key]:
                defaults[control.name] = control.said_with
    said = {name for name, word in words.items() if word is not None and name not in defaults}
    return {name: None if name in defaults and not said & {*defaults[name]} else word for name, word in words.items()}


def _is_in_use(control: Control) -> bool:
    state = st.session_state
    return all(state.get(key) == value for key, value in control.when.items() if key in state.link_started)


def write(values: Mapping[str, str | None]) -> None:
    """Makes the URL say `values`, in a whole run; None is a default and stays out.

    What is no control's is left alone. A control of other pages alone is left out: who goes back while a page still runs
    comes with that page's link.
    """
    page = st.session_state.link_page
    own = {control.name for control in TABLE if page in control.pages}
    there = {key: value for key, value in st.query_params.to_dict().items() if key in own or key not in KEYS}
    _say({**there, **values})


def update(values: Mapping[str, str | None]) -> None:
    """Makes the URL say `values` too, in a fragment: the rest stays what was written last, whatever the browser sent."""
    _say({**st.session_state.get("link_written", {}), **values})


def _say(values: Mapping[str, str | None]) -> None:
    after, state = {key: value for key, value in values.items() if value is not None}, st.session_state
    last, state["link_written"] = state.get("link_written", after), after
    # What the browser sent may be from before what it was told last, which it shows as soon as that arrives, on a page that it
    # has come back to as well: where the two differ it is told again, though this run began with the very same link.
    if after != last or after != st.query_params.to_dict():
        # All at once: every change is a message to the browser.
        st.query_params.from_dict(after)


def too_long(texts: Mapping[str, str]) -> str:
    """In words, which of these texts (by what they are called) a link cannot hold; empty where it holds all."""
    left_out = [f"{name} ({len(typed):,} characters)" for name, typed in texts.items() if len(typed) > LONGEST_TEXT]
    words = f"This is too long for a link, which holds {LONGEST_TEXT:,} characters of each text: {', '.join(left_out)}."
    return words if left_out else ""
