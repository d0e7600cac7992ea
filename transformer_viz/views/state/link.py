"""What a link holds: every control of every page. Counting from 1, as a person reads.

Read once, when a session opens; written in every run, defaults left out. A value that is not
possible is said and then left out, never silently replaced. Which widget has which key is in `controls.py`.

A whole run writes everything that its page has. A fragment that runs again writes its own keys alone: the
boxes outside it come from the browser as they were when it was asked, which may be from before a click.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st

from transformer_viz.analysis.heads import COMBINED, Head
from transformer_viz.errors import listed
from transformer_viz.views.components.markdown import literal

KEYS = (
    *("text", "checkpoint", "device", "projector", "answer"),
    *("kind", "layer", "head", "step"),
    *("sources", "targets", "sentence", "mask", "mistake", "tab", "show", "fill", "precision", "row"),
    *("click", "reach"),
    *("code", "code_of_tab", "code_of_job"),
    *("beam", "alpha", "stop", "node"),
    *("change", "at", "prefix", "begin", "ban", "target"),
    *("task", "variant", "set", "name", "job", "probe"),
    *("tables", "tint", "samples", "file", "asked"),
    *("moment", "position"),
    *("b_text", "b_checkpoint", "b_layer", "b_head", "scale"),
    *(f"{side}_{name}" for side in "ab" for name in ("file", "snapshot", "strategy", "beam", "temperature", "seed")),
    "opened",
    "keep",
)
LONGEST_TEXT = 1500
_T = TypeVar("_T")


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


def take(key: str) -> str | None:
    """What the link said for a key, once."""
    return st.session_state.pop(f"want_{key}", None)


def take_text(key: str, most: int) -> str | None:
    """What the link said for a text, once; what is longer than `most` is cut, and that is said."""
    given = take(key)
    if given is not None and len(given) > most:
        complaints().add(key, given, f"a text of at most {most:,} characters; it is cut there")
    return given if given is None else given[:most]


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


def choice(key: str, given: str | None, options: tuple[str, ...], default: str) -> str:
    """One of `options`; another value is said."""
    if given is None or given in options:
        return default if given is None else given
    complaints().add(key, given, listed(options))
    return default


def named(key: str, given: str | None, words: Mapping[str, _T], default: _T) -> _T:
    """The option that a short word stands for; another word is said."""
    if given is None or given in words:
        return default if given is None else words[given]
    complaints().add(key, given, listed(words))
    return default


def word_of(option: object, words: Mapping[str, object]) -> str | None:
    """The word that stands for an option; None for the first one, the default."""
    found = [word for word, named in words.items() if named == option]
    return found[0] if found and found[0] != next(iter(words)) else None


def switch(key: str, given: str | None, word: str) -> bool:
    """Whether the link says `word`, the one thing that it can say here; another value is said."""
    if given not in (None, word):
        complaints().add(key, given, word)
    return given == word


def number(key: str, given: str | None, most: int, default: int) -> int:
    """A number from 1 to `most` in the link, from 0 here; another value is said."""
    if given is None:
        return default
    # str.isdigit is true of superscripts and other digits that int() cannot read.
    if given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= most:
        return int(given[:9]) - 1
    complaints().add(key, given, f"1 to {most}")
    return default


def one_of(key: str, given: str | None, numbers: Sequence[int], default: int) -> int:
    """One of `numbers`, from 0 here and from 1 in the link; another value is said."""
    if given is None:
        return default
    if given.isascii() and given.isdigit() and int(given[:9]) - 1 in numbers:
        return int(given[:9]) - 1
    is_whole = list(numbers) == list(range(len(numbers)))
    complaints().add(key, given, f"1 to {len(numbers)}" if is_whole else listed(number + 1 for number in numbers))
    return default


def decimal(key: str, given: str | None, least: float, most: float, default: float) -> float:
    """A number within limits; another value is said."""
    if given is None:
        return default
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if least <= value <= most:
        return value
    complaints().add(key, given, f"{least:g} to {most:g}")
    return default


def head(given: str | None, most: int, default: Head, key: str = "head") -> Head:
    """A head's number, or `mean` or `max`."""
    if given in COMBINED:
        return "mean" if given == "mean" else "max"
    if given is not None and not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= most):
        complaints().add(key, given, f"1 to {most}, mean, max")
        return default
    return default if given is None else int(given[:9]) - 1


def write(values: Mapping[str, str | None]) -> None:
    """Makes the URL say `values`, in a whole run; None is a default and stays out. Other keys are left alone."""
    _say({**st.query_params.to_dict(), **values})


def update(values: Mapping[str, str | None]) -> None:
    """Makes the URL say `values` too, in a fragment: the rest stays what was written last, whatever the browser sent."""
    _say({**st.session_state.get("link_written", {}), **values})


def _say(values: Mapping[str, str | None]) -> None:
    after = {key: value for key, value in values.items() if value is not None}
    st.session_state.link_written = after
    if after != st.query_params.to_dict():
        # All at once: every message is an entry in the browser's history.
        st.query_params.from_dict(after)


def text(given: str) -> str | None:
    """A text as the link has it; None where it is too long for a URL (`too_long` says so)."""
    return given if len(given) <= LONGEST_TEXT else None


def too_long(texts: Mapping[str, str]) -> str:
    """In words, which of these texts (by what they are called) a link cannot hold; empty where it holds all."""
    left_out = [f"{name} ({len(typed):,} characters)" for name, typed in texts.items() if len(typed) > LONGEST_TEXT]
    words = f"This is too long for a link, which holds {LONGEST_TEXT:,} characters of each text: {', '.join(left_out)}."
    return words if left_out else ""
