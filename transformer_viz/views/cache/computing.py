"""Gets the result that a page shows: from the cache, computed at once where that is quick, or as a long job.

Each function here is given the function to call and its arguments; results are kept for all sessions (`store.py`), and each
session knows what made those that it was given.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, TypeVar

import streamlit as st
from streamlit.errors import StreamlitDuplicateElementKey

from transformer_viz.errors import BusyError
from transformer_viz.language import say
from transformer_viz.numbers_in_words import count_words
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.cache.job_queue import Job
from transformer_viz.views.cache.store import key_of, store
from transformer_viz.views.components.recorded_calls import Call, record

QUICK = 1e9
"""Multiplications that take a tenth of a second or less: computed in the page's own run."""
_MOST_STOPPED = 16
"""Stopped decodings that a session remembers."""

R = TypeVar("R")


@dataclass(frozen=True)
class Stopped:
    """The early end of a decoding: after so many steps, stopped by somebody or because it took too long."""

    n_steps: int
    is_late: bool

    @property
    def words(self) -> str:
        """`Stopped after 3 tokens.`"""
        tokens = count_words(self.n_steps, "token")
        if self.is_late:
            limit = long_jobs.time_limit_words()
            return say("Stopped after {tokens}, since a run may take {limit}.", tokens=tokens, limit=limit)
        return say("Stopped after {tokens}.", tokens=tokens)


def compute(words: str, cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """The result of a call. While it takes long, the page ends here with its progress.

    Args:
        words: what is done.
        cost: multiplications that it takes, at the most.
        function: is called; one with a keyword `on_progress` is given one.
        args: of the function.
        kwargs: keywords of the function.
    """
    call = Call(function, *args, **kwargs)
    if (result := _kept(call, cost)) is not None:
        return record(result, call)

    def work(job: Job) -> R:
        takes = "on_progress" in signature(function).parameters
        more: Any = {"on_progress": partial(long_jobs.report_share, job)} if takes else {}
        return store.get_or_make(key_of(call), lambda: function(*args, **kwargs, **more))

    return record(long_jobs.wait_for(key_of(call), words, work), call)


def compute_if_quick(cost: float, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
    """Returns what `compute` would if it is there or quick to compute, otherwise None."""
    call = Call(function, *args, **kwargs)
    return record(_kept(call, cost), call)


def computed(function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
    """The result of a call if it is kept, otherwise None."""
    return store.get(key_of(Call(function, *args, **kwargs)))


def decode(cost: float, function: Callable[..., R], *args: Any, waits: bool = True, **kwargs: Any) -> R:
    """The result of a call that writes tokens, shown as they come; after Stop it ends with what is written.

    Args:
        cost: multiplications that it takes, at the most.
        function: has the keywords `max_length` and `on_token` of `tv.decode`.
        args: of the function.
        waits: whether it is written where it is not there yet and takes long.
        kwargs: keywords of the function.

    Raises:
        BusyError: it is not there yet, takes long, and is not waited for.
    """
    whole = Call(function, *args, **kwargs)
    key = key_of(whole)
    stopped = _stopped().get(key)
    result = _kept(_until(whole, stopped), cost)
    if result is None and not waits:
        raise BusyError(say("This run is not there yet."))
    if result is None:
        result, stopped_now = long_jobs.wait_for(key, say("Reading the text"), partial(_write, _until(whole, stopped)))
        stopped = stopped_now or stopped
        _remember_stopped(key, stopped)
    if stopped is not None and waits:
        # One notice a run, though a page may ask for the same decoding several times.
        words, name = say("Write it again, to its end"), f"write-again-{hash(key)}"
        with suppress(StreamlitDuplicateElementKey), st.container(horizontal=True, vertical_alignment="center"):
            st.button(words, key=name, icon=":material/restart_alt:", on_click=_remember_stopped, args=(key, None))
            st.caption(stopped.words, width="content")
    return record(result, _until(whole, stopped))


def _kept(call: Call, cost: float) -> Any:
    """The result of a call that is kept or quick to compute, otherwise None."""
    if cost < QUICK:
        function: Any = call.function
        return store.get_or_make(key_of(call), lambda: function(*call.args, **call.kwargs))
    return store.get(key_of(call))


def _write(call: Call, job: Job) -> tuple[Any, Stopped | None]:
    """In the queue's thread: the result, and where it was stopped; None where it ended by itself."""
    # Another session may have waited for the same.
    if (result := store.get(key_of(call))) is not None:
        return result, None
    stopped: Stopped | None = None
    report = long_jobs.report_tokens(job)

    def on_token(written: Any) -> bool:
        nonlocal stopped
        goes_on = report(written)
        stopped = None if goes_on else Stopped(written.n_steps, job.is_late)
        return goes_on

    function: Any = call.function
    result = function(*call.args, **call.kwargs, on_token=on_token)
    store.put(key_of(_until(call, stopped)), result)
    return result, stopped


def _until(call: Call, stopped: Stopped | None) -> Call:
    """The call that writes only as far as somebody let it."""
    return call if stopped is None else Call(call.function, *call.args, **{**call.kwargs, "max_length": stopped.n_steps})


def _stopped() -> Mapping[Hashable, Stopped]:
    """The stopped decodings of this session, by the key of the whole call."""
    return st.session_state.get("stopped_decodings", {})


def _remember_stopped(key: Hashable, stopped: Stopped | None) -> None:
    """Remembers where a decoding stopped; None: it goes on to its end."""
    others = [(other, where) for other, where in _stopped().items() if other != key]
    st.session_state.stopped_decodings = dict([*others, *([(key, stopped)] if stopped else [])][-_MOST_STOPPED:])
