"""What a link holds: every control of every page. Counting from 1, as a person reads.

Read once, when a session opens; written after every run, defaults left out. A value that is not
possible is said and then left out, never silently replaced.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from transformer_viz.analysis.heads import COMBINED, Head
from transformer_viz.errors import listed

KEYS = (
    *("text", "checkpoint", "kind", "layer", "head", "step"),
    *("sources", "targets", "sentence", "mask", "mistake", "tab", "show", "fill", "precision", "row"),
    *("beam", "alpha", "stop", "node", "prefix", "begin", "ban", "target"),
    *("task", "variant", "set", "job", "probe"),
    *("tables", "tint"),
    *("moment", "position"),
    *("b_text", "b_checkpoint", "b_layer", "b_head", "scale"),
    *(f"{side}_{name}" for side in "ab" for name in ("file", "snapshot", "strategy", "beam", "temperature", "seed")),
    "opened",
    "keep",
)
LONGEST_TEXT = 1500


@dataclass
class Complaints:
    """What was wrong with a link, in sentences."""

    said: list[str] = field(default_factory=list)

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


def complaints() -> Complaints:
    """The session's complaints about its link."""
    return st.session_state.complaints


def choice(key: str, given: str | None, options: tuple[str, ...], default: str) -> str:
    """One of `options`; another value is said."""
    if given is None or given in options:
        return default if given is None else given
    complaints().add(key, given, listed(options))
    return default


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
    """Makes the URL say `values`; None is a default and stays out. Other keys are left alone."""
    before = st.query_params.to_dict()
    after = {key: value for key, value in {**before, **values}.items() if value is not None}
    if after != before:
        # All at once: every message is an entry in the browser's history.
        st.query_params.from_dict(after)
