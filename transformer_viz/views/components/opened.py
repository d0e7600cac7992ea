"""Trace files that a visitor has opened: the box to drop them into, and what this session holds.

Nothing here is shared between sessions, and nothing of a file is believed: `load_trace` reads it within
limits, and its name is text, never a path. Needs no model.
"""

import hashlib
import io
import re
import threading
import unicodedata
import weakref
from dataclasses import dataclass

import streamlit as st

from transformer_viz.errors import TraceError
from transformer_viz.language import say
from transformer_viz.trace import limits
from transformer_viz.trace.store import load_trace
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import uploader
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.components.uploader import MB

SORT = "opened"
"""The sort of these files, for `uploader`."""
MOST_TRACES, MOST_HELD = 8, 256 * MB
"""The most traces, and bytes of arrays, that a session holds; the oldest gives way."""
MOST_OF_ALL = 1024 * MB
"""The most bytes of arrays that all sessions together hold."""
_LONGEST_NAME = 100
"""Signs of a file name, as many as Export gives one at most: the lines that load the file say it."""

# One file is read at a time, so that reading takes its memory once; also guards what all sessions hold.
_READING = threading.Lock()
_HELD: weakref.WeakSet[Trace] = weakref.WeakSet()


@dataclass(frozen=True)
class Opened:
    """One file that was read."""

    trace: Trace
    file_name: str
    """The name of the file, on one line and without folders."""
    run: str
    """Tells its content from any other run's, here and in the browser."""


def box(key: str) -> None:
    """A box to drop trace files into; `key` is the place. What became of the last ones is for `say`, elsewhere on the page."""
    most = largest_file()
    uploader.box(say("Drop trace files (.npz) here"), key, SORT, add, most_bytes=most, most=MOST_TRACES)
    # The box says itself how large a file was that it refuses, and what is allowed, and knows no way out.
    st.caption(
        say(
            "At most {most} MB a file, and {most_traces} files at once. Too large? Record less of the run: "
            "half precision (`--precision float16`), one kind (`--kinds cross`), or some layers (`--layers "
            "1`).",
            most=most // MB,
            most_traces=MOST_TRACES,
        )
    )


def tell() -> None:
    """Says what became of the files that were dropped last: errors, and what was closed to make room."""
    if uploader.tell(SORT):
        st.caption(
            say(
                "The tab Export, the command trace and tv.save_trace write trace files. Trace.from_arrays makes "
                "one from other arrays."
            )
        )


def traces() -> dict[str, Trace]:
    """This session's opened traces by their unique names, oldest first."""
    return {name: one.trace for name, one in _all().items()}


def get(name: str) -> Opened:
    """One of them, by its name in `traces()`."""
    file = _all()[name]
    record(file.trace, Call(load_trace, file.file_name))
    return file


def latest() -> str | None:
    """The name of the trace that was dropped last, or None."""
    return st.session_state.get("opened_latest") if _all() else None


def add(file_name: str, data: bytes) -> str:
    """Reads a file's bytes and holds the trace; its name. A file that is open already is not held twice.

    Raises:
        TraceError: not a trace, too large, or no room for it.
    """
    state, file_name = st.session_state, _plain(file_name)
    run = "f" + hashlib.sha256(data).hexdigest()[:24]
    name = next((name for name, one in _all().items() if one.run == run), None)
    if name is None:
        upload = io.BytesIO(data)
        upload.name = file_name
        with _READING:
            trace = load_trace(upload, max_bytes=largest_file(), max_unpacked=limits.MOST_UNPACKED)
            limits.check(trace, file_name)
            # The oldest are let go of until another trace fits.
            held, n_bytes = _all(), trace.nbytes
            while held and (len(held) >= MOST_TRACES or sum(one.trace.nbytes for one in held.values()) + n_bytes > MOST_HELD):
                oldest = next(iter(held))
                _let_go(oldest)
                words = say(
                    "{oldest} was closed to make room: at most {most_traces} traces and {most_held} MB are kept.",
                    oldest=oldest,
                    most_traces=MOST_TRACES,
                    most_held=MOST_HELD // MB,
                )
                uploader.note(SORT, words, is_error=False)
            if sum(other.nbytes for other in _HELD) + n_bytes > MOST_OF_ALL:
                words = say("This server holds as many opened traces as it can. Try again later, or run the app yourself.")
                raise TraceError(words)
            _HELD.add(trace)
        # `hello`, and `hello (2)` where there is one already.
        stem, number = file_name.removesuffix(".npz").removesuffix(".NPZ"), 1
        name = stem
        while name in _all():
            number += 1
            name = f"{stem} ({number})"
        _all()[name] = Opened(trace, file_name, run)
    state.opened_latest = name
    return name


def close(name: str) -> None:
    """Lets go of one."""
    _let_go(name)
    state = st.session_state
    if state.get("opened_latest") == name:
        state.opened_latest = next(reversed(_all()), None)
    hush()


def hush() -> None:
    """Forgets what `say` says."""
    uploader.forget(SORT)


def largest_file() -> int:
    """The most bytes of a file: ours, or the server's where that is less."""
    return min(limits.LARGEST_FILE, st.get_option("server.maxUploadSize") * MB)


def _all() -> dict[str, Opened]:
    """The session's own, changed in place: a session keeps a replaced value until its run has ended."""
    return st.session_state.setdefault("opened", {})


def _let_go(name: str) -> None:
    # What was drawn of it may live until the next run; it no longer counts.
    _HELD.discard(_all().pop(name).trace)


def _plain(file_name: str) -> str:
    """The last part of a name, on one line, without signs that cannot be seen, cut where it is long."""
    last = re.split(r"[\\/]", file_name)[-1]
    seen = "".join(sign for sign in last if not unicodedata.category(sign).startswith("C")).strip()
    ending = ".npz" if seen.lower().endswith(".npz") else ""
    stem = seen[: len(seen) - len(ending)] or "trace"
    return (stem if len(stem) <= _LONGEST_NAME else stem[: _LONGEST_NAME - 1] + "…") + ending
