"""Shows a long job on a page: the page ends with its progress and a Stop button, and is drawn again with the result.

The work is done in the thread of the queue (`job_queue.py`), so the page answers meanwhile; a fragment polls it. A session has
one job at a time: a page ends at the first result that is not there yet, and asking for another one cancels the former.
"""

import time
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from transformer_viz import server_settings
from transformer_viz.errors import BusyError
from transformer_viz.language import say, spoken
from transformer_viz.numbers_in_words import count_words, ordinal_words, percent_words
from transformer_viz.views.cache.job_queue import Job, JobQueue, State
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.server.page_slots import release_slot
from transformer_viz.views.state import visit_language
from transformer_viz.views.state.early_end import end_page

if TYPE_CHECKING:
    from transformer_viz.tracing.progress import Written

FIRST_WAIT, POLL, POLL_WAITING = 0.3, 0.25, 1.0
"""Seconds that a page waits for a job before it shows that it is not done yet; between two looks at a running job; and at a
waiting one, since thirty pages that look four times a second take a third of a processor."""

T = TypeVar("T")


@dataclass(frozen=True)
class Writing:
    """The progress of a decoding: what it has written so far, and in how many seconds since its first token."""

    written: "Written"
    seconds: float

    @property
    def words(self) -> str:
        """`12 tokens · 9.8 a second`."""
        n = self.written.n_steps
        tokens = count_words(n, "token")
        if n < 2 or self.seconds <= 0:
            return tokens
        return say("{tokens} · {rate:.3g} a second", tokens=tokens, rate=(n - 1) / self.seconds)


@dataclass(frozen=True)
class Progress:
    """The progress of any other job: in words, and as a share from 0 to 1 where that is known."""

    words: str
    share: float | None


@cache
def queue() -> JobQueue:
    """The server's."""
    return JobQueue(server_settings.limits())


@cache
def loading_queue() -> JobQueue:
    """The queue of models to load: transformers loads one at a time, and a loading waits for nobody's run."""
    return JobQueue(server_settings.limits())


def time_limit_words() -> str:
    """`300 s here (TRANSFORMER_VIZ_MAX_RUN_SECONDS)`."""
    n, variable = queue().limits.run_seconds, server_settings.variable("run_seconds")
    return say("{n} s here ({variable})", n=n, variable=variable)


def wait_for(
    key: Hashable, words: str, work: Callable[[Job], T], *, late_error: Exception | None = None, patience: float = 0.0
) -> T:
    """The result of a long job. Until it is there, the page ends here.

    Args:
        key: what is computed, by value.
        words: what the job does, shown until it reports its progress.
        work: runs in the queue's thread and reports its progress to the job that it is given.
        late_error: of the loading of a model, which has a queue of its own: what it ends with where it takes too long.
        patience: seconds that the page waits before it shows that the result is not there yet.

    Raises:
        BusyError: too many jobs wait already.
        Exception: what the work raised.
    """
    state = st.session_state
    job: Job | None = state.get("long_job")
    if job is not None and job.key != key:
        job.cancel()
    if state.get("cancelled_job") == key:
        st.button(
            say("Begin again"),
            key="long-job-again",
            icon=":material/play_arrow:",
            on_click=state.update,
            kwargs={"cancelled_job": None},
        )
        end_page()
    state.cancelled_job = None
    if job is None or job.is_cancelled:
        job = state.long_job = (queue() if late_error is None else loading_queue()).submit(key, spoken(work), late_error)
    job.touch()
    # Others may be drawn while this page only waits.
    release_slot()
    is_done, end = job.wait(FIRST_WAIT), time.monotonic() + patience
    while not is_done and time.monotonic() < end:
        job.wait(POLL)
        is_done = job.touch() == "done"
    if not is_done:
        then = job.state
        st.fragment(visit_language.spoken(_watch), run_every=POLL_WAITING if then == "waiting" else POLL)(then, words)
        end_page()
    del state["long_job"]
    return job.result()


@contextmanager
def whole_page() -> Generator[None]:
    """Around a page. A page that is drawn to its end needs no job any more, whatever the one before it was waiting for."""
    yield
    job: Job | None = st.session_state.pop("long_job", None)
    if job is not None:
        job.cancel()


def report_share(job: Job, share: float, words: str = "") -> None:
    """For work that can say which share of it is done.

    Args:
        job: that does it.
        share: from 0 to 1.
        words: that say it better than a percentage.

    Raises:
        BusyError: it took too long.
    """
    if not job.report(Progress(words or percent_words(share), share)):
        raise BusyError(
            say(
                "This was ended at {share}, since a run may take {limit}. Take less of it, or a smaller model.",
                share=percent_words(share),
                limit=time_limit_words(),
            )
        )


def report_tokens(job: Job) -> Callable[["Written"], bool]:
    """For work that writes: `on_token` of `decode`."""
    first_at: list[float] = []

    def on_token(written: "Written") -> bool:
        first_at[:] = first_at or [time.monotonic()]
        return job.report(Writing(written, time.monotonic() - first_at[0]))

    return on_token


def _watch(then: State, words: str) -> None:
    """A fragment: the job's progress, as long as the job is in the state in which the page found it."""
    job: Job | None = st.session_state.get("long_job")
    if job is not None and job.is_stopped:
        job.wait(POLL)
    if job is None or job.touch() != then:
        st.rerun()
    with st.container(key="long-job"):
        with st.container(horizontal=True, vertical_alignment="center"):
            label = say("Leave the queue") if then == "waiting" else say("Stop")
            st.button(label, key="long-job-stop", icon=":material/stop:", on_click=_stop, args=(job,), disabled=job.is_stopped)
            place = st.empty()
        if then == "waiting":
            place.markdown(f":material/hourglass_top: {place_words(job)}")
        elif isinstance(job.progress, Progress):
            place.progress(job.progress.share or 0.0, literal(say("{job}: {progress}", job=words, progress=job.progress.words)))
        elif isinstance(job.progress, Writing):
            place.markdown(f":material/edit_note: {literal(job.progress.words)}")
            for text in job.progress.written.texts:
                st.text(text)
        else:
            place.markdown(f":material/menu_book: {say('{job} …', job=literal(words))}")


def place_words(job: Job) -> str:
    """`2nd in line; 1 run before yours`."""
    n_before = job.n_before
    ordinal, runs = ordinal_words(n_before + 1), count_words(n_before, "run")
    return say("{ordinal} in line; {runs} before yours", ordinal=ordinal, runs=runs)


def _stop(job: Job) -> None:
    # What a decoding has written is worth keeping; half of anything else is nothing.
    if isinstance(job.progress, Writing):
        job.stop()
    else:
        job.cancel()
    if job.is_cancelled:
        st.session_state.cancelled_job = job.key
