"""The language of a visit, which is decided as it begins: what the address says, or its lesson; what was chosen in this browser
before; the browser's own.

Another language is another visit: the page is loaded anew, with `lang=zh` in its address, so that nothing of the old one stays.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from transformer_viz.language import ENGLISH, languages, speaking

KEY = "lang"
"""In the link, which leaves English out."""
COOKIE = "transformer_viz_language"
"""The cookie that the switch leaves in the browser."""
NAMES = {"en": "English", "zh": "中文"}
"""The languages by the names that they have for themselves."""
_DECIDED = "language"
_LESSON = re.compile(r"(?:([a-z]{2,3})\.)?[a-z][a-z0-9-]*\.\d+", re.ASCII)
P = ParamSpec("P")
R = TypeVar("R")


def current() -> str:
    """Decides it, where that has not been done. Where nobody visits, as while the server gets ready, it is English."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return ENGLISH
    state = st.session_state
    if _DECIDED not in state:
        state[_DECIDED] = next(filter(languages().__contains__, _wanted()), ENGLISH)
    return state[_DECIDED]


def _wanted() -> list[Any]:
    context = get_script_run_ctx()
    query = parsed("" if context is None else context.query_string)
    lesson = _LESSON.fullmatch(word) if isinstance(word := query.get("lesson"), str) else None
    browser = st.context.locale
    return [
        query.get(KEY) if isinstance(query.get(KEY), str) else None,
        None if lesson is None else lesson[1] or ENGLISH,
        st.context.cookies.get(COOKIE),
        browser.split("-")[0].lower() if isinstance(browser, str) else None,
    ]


def parsed(query: str) -> dict[str, Any]:
    """The words of a query; a list where one has several."""
    return {key: words[0] if len(words) == 1 else words for key, words in parse_qs(query, keep_blank_values=True).items()}


def in_address() -> dict[str, str]:
    """The part of every address of this visit that says its language."""
    return {} if current() == ENGLISH else {KEY: current()}


def spoken(part: Callable[P, R]) -> Callable[P, R]:
    """A part of a page that Streamlit runs by itself, as a fragment or a callback, in the language of the visit."""

    @wraps(part)
    def said(*args: P.args, **keywords: P.kwargs) -> R:
        with speaking(current()):
            return part(*args, **keywords)

    return said
