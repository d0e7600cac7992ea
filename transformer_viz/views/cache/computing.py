"""Gets the result that a page shows: from the cache, computed at once where that is quick, or as a long job.

Each function here is given the function to call and its arguments; results are kept for all sessions (`store.py`), and each
session knows what made those that it was given.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.errors import StreamlitDuplicateElementKey

from transformer_viz.numbers_in_words import count_words
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.cache.job_queue import Job
from transformer_viz.views.cache.store import Call, store
from transformer_viz.views.components import recorded_calls

QUICK = 1e9
"""Multiplications that take a tenth of a second or less: computed in the page's own run."""
_MOST_STOPPED = 16
"""Stopped decodings that a session remembers."""

R = TypeVar("R")


@dataclass(frozen=True)
class Stopped:
    """Where a decoding ended before its own end: after so many steps, stopped by somebody or because it took too long."""

    n_steps: int
    is_late: bool

    @property
    def words(self) -> str:
        """`Stopped after 3 tokens.`"""
        late = f", since a run may take {long_jobs.time_limit_words()}" if self.is_late else ""
        return f"Stopped after {count_words(self.n_steps, 'token')}{late}."


def compute(words: str, cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """The result of a call. While it takes long, the page ends here with its progress.

    Args:
        words: what is done.
        cost: multiplications that it takes, at the most.
        function: is called; one with a keyword `on_progress` is given one.
        args: of the function.
        kwargs: keywords of the function.
    """
    call = Call(function, args, kwargs)
    if (result := store.get(call.key)) is not None:
        return _recorded(result, call)
    if cost < QUICK:
        return _recorded(store.get_or_make(call.key, call), call)

    def work(job: Job) -> R:
        more: Any = {"on_progress": partial(long_jobs.report_share, job)} if call.takes("on_progress") else {}
        return store.get_or_make(call.key, lambda: call(**more))

    return _recorded(long_jobs.wait_for(call.key, words, work), call)


def compute_if_quick(cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
    """What `compute` returns if it is there or quick to compute, otherwise None."""
    call = Call(function, args, kwargs)
    return _recorded(store.get_or_make(call.key, call) if cost < QUICK else store.get(call.key), call)


def computed(function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
    """The result of a call if it is kept, otherwise None."""
    return store.get(Call(function, args, kwargs).key)


def decode(cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """The result of a call that writes tokens, shown as they come; after Stop it ends with what is written.

    Args:
        cost: multiplications that it takes, at the most.
        function: has the keywords `max_length` and `on_token` of `tv.decode`.
        args: of the function.
        kwargs: keywords of the function.
    """
    whole = Call(function, args, kwargs)
    stopped = _stopped().get(whole.key)
    call = _until(whole, stopped)
    result = store.get(call.key)
    if result is None and cost < QUICK:
        result = store.get_or_make(call.key, call)
    elif result is None:
        result, stopped_now = long_jobs.wait_for(whole.key, "Reading the text", partial(_write, call))
        stopped = stopped_now or stopped
        _remember_stopped(whole.key, stopped)
    if stopped is not None:
        _offer_to_write_on(whole.key, stopped)
    return _recorded(result, call if stopped is None else _until(whole, stopped))


def decode_if_quick(cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
    """What `decode` returns if it is there or quick to compute, otherwise None."""
    whole = Call(function, args, kwargs)
    call = _until(whole, _stopped().get(whole.key))
    return _recorded(store.get_or_make(call.key, call) if cost < QUICK else store.get(call.key), call)


def _recorded(result: R, call: Call) -> R:
    """With what made it, for “Show the code”."""
    return recorded_calls.record(result, recorded_calls.Call(call.function, *call.args, **call.kwargs))


def _write(call: Call, job: Job) -> tuple[Any, Stopped | None]:
    """In the queue's thread: the result, and where it was stopped; None where it ended by itself."""
    # Another session may have waited for the same.
    if (result := store.get(call.key)) is not None:
        return result, None
    stopped: list[Stopped] = []
    report = long_jobs.report_tokens(job)

    def on_token(written: Any) -> bool:
        if report(written):
            return True
        stopped.append(Stopped(written.n_steps, job.is_late))
        return False

    result = call(on_token=on_token)
    store.put(_until(call, stopped[0] if stopped else None).key, result)
    return result, stopped[0] if stopped else None


def _until(call: Call, stopped: Stopped | None) -> Call:
    """The call that writes only as far as somebody let it."""
    return call if stopped is None else replace(call, kwargs={**call.kwargs, "max_length": stopped.n_steps})


def _stopped() -> Mapping[Hashable, Stopped]:
    """Of this session, by the key of the whole call."""
    return st.session_state.get("stopped_decodings", {})


def _remember_stopped(key: Hashable, stopped: Stopped | None) -> None:
    """None: it goes on to its end."""
    others = [(other, where) for other, where in _stopped().items() if other != key]
    st.session_state.stopped_decodings = dict([*others, *([(key, stopped)] if stopped else [])][-_MOST_STOPPED:])


def _offer_to_write_on(key: Hashable, stopped: Stopped) -> None:
    """One notice a run, though a page may ask for the same decoding several times."""
    words, name = "Write it again, to its end", f"write-again-{hash(key)}"
    with suppress(StreamlitDuplicateElementKey), st.container(horizontal=True, vertical_alignment="center"):
        st.button(words, key=name, icon=":material/restart_alt:", on_click=_remember_stopped, args=(key, None))
        st.caption(stopped.words, width="content")
