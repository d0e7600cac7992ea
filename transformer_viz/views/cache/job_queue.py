"""Long jobs, one at a time on this machine, first come first served.

A session has one job at a time, so the session that has waited longest is next. A job whose page is gone ends.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Literal

from transformer_viz.errors import BusyError
from transformer_viz.server_settings import Limits, variable

HEARTBEAT_TIMEOUT = 15.0
"""Seconds after which a job ends that no page has touched. A page touches its job every second or more often."""
GRACE = 10.0
"""Seconds that work has, after it had to end, to report once more and learn of it."""
_NICE = 10
"""Of the worker thread: pages, and the quick runs in them, come first."""

State = Literal["waiting", "running", "done"]


class JobCancelled(BaseException):
    """Ends the work of a job that nobody waits for. Not an `Exception`, so that no library takes it for its own failure."""


class Job:
    """One long piece of work for one page.

    Attributes:
        key: what is computed, by value.
        progress: what the work has reported last; None before.
        is_stopped: whether the work is to end with what there is.
        is_late: whether that is because it took too long.
        is_cancelled: whether nobody wants the result any more.
    """

    def __init__(
        self, key: Hashable, work: "Callable[[Job], Any]", queue: "JobQueue", late_error: Exception | None = None
    ) -> None:
        self.key, self.progress = key, None
        self._late_error = late_error
        self.is_stopped = self.is_late = self.is_cancelled = False
        self._work, self._queue = work, queue
        self._started_at, self._touched_at = 0.0, queue.now()
        self._result: Future[Any] = Future()
        self._has_news = threading.Event()

    @property
    def state(self) -> State:
        """How far it is."""
        return "done" if self._result.done() else "running" if self._result.running() else "waiting"

    @property
    def n_before(self) -> int:
        """How many jobs come before this one, the running one included."""
        return self._queue.n_before(self)

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody wants it, or its page has been gone for a while."""
        return self.is_cancelled or self._queue.now() - self._touched_at > HEARTBEAT_TIMEOUT

    def report(self, progress: Any) -> bool:
        """Called by the work to say how far it is; returns whether to continue.

        Raises:
            JobCancelled: nobody waits for the result.
        """
        if self.is_abandoned or self.state == "done":
            self.is_cancelled = True
            raise JobCancelled
        self.progress = progress
        self.is_late = self._queue.now() - self._started_at > self._queue.limits.run_seconds
        self.is_stopped = self.is_stopped or self.is_late
        self._has_news.set()
        return not self.is_stopped

    @property
    def is_stuck(self) -> bool:
        """Whether it should have ended a while ago, and its work does not report."""
        end = min(self._started_at + self._queue.limits.run_seconds, self._touched_at + HEARTBEAT_TIMEOUT)
        return self._late_error is not None and self.state == "running" and self._queue.now() > end + GRACE

    def touch(self) -> State:
        """Called by the page that waits: it is still there. Returns how far the job is."""
        self._touched_at = self._queue.now()
        self._queue.leave_stuck_job()
        return self.state

    def stop(self) -> None:
        """The work ends at its next report, with what there is; a job that still waits is cancelled."""
        self.is_stopped = True
        if self.state == "waiting":
            self.cancel()

    def cancel(self) -> None:
        """Nobody wants the result. A running job ends at its next report."""
        self.is_cancelled = True
        self._result.cancel()

    def wait_for_news(self, seconds: float) -> bool:
        """Waits until the work has reported something or is done, at most `seconds`; returns whether it is done."""
        self._has_news.wait(seconds)
        return self.state == "done"

    def wait_until_done(self, seconds: float) -> None:
        """Waits at most `seconds`."""
        with suppress(BaseException):
            self._result.exception(seconds)

    def result(self) -> Any:
        """What a done job returned.

        Raises:
            BaseException: what its work raised.
        """
        return self._result.result(0)

    def run(self) -> None:
        """Does the work, in the queue's thread."""
        if self.is_abandoned:
            self.cancel()
        if not self._result.set_running_or_notify_cancel():
            return
        self._started_at = self._queue.now()
        with suppress(InvalidStateError):  # left behind meanwhile
            try:
                result = self._work(self)
            except BaseException as error:
                self._result.set_exception(error)
            else:
                self._result.set_result(result)
        self._has_news.set()

    def leave_behind(self) -> None:
        """It ends with its error, whatever its thread still does."""
        self._result.set_exception(self._late_error)
        self._has_news.set()


class JobQueue:
    """The jobs that wait, and the thread that runs them one after the other.

    Args:
        limits: how many may wait, and how long one may take.
        now: a clock in seconds.
    """

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.now = limits, now
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, key: Hashable, work: Callable[[Job], Any], late_error: Exception | None = None) -> Job:
        """Adds a job at the end.

        Args:
            key: what is computed, by value.
            work: is given the job, to which it reports its progress.
            late_error: what a job ends with that takes too long and does not report: its thread is left behind, and the next
                job runs. None: such a job is waited for.

        Raises:
            BusyError: too many wait.
        """
        with self._changed:
            if (n_waiting := sum(job.state == "waiting" for job in self._wanted())) >= self.limits.runs_waiting:
                raise BusyError(
                    f"{n_waiting} long runs are waiting, and no more are accepted "
                    f"({variable('runs_waiting')}). Try again in a few minutes, or choose a smaller model."
                )
            job = Job(key, work, self, late_error)
            self._jobs.append(job)
            if self._thread is None:
                self._start_thread()
            self._changed.notify()
        return job

    def _start_thread(self) -> None:
        # A daemon, so that Ctrl-C ends the server at once.
        self._thread = threading.Thread(target=self._run_jobs, name="long jobs", daemon=True)
        self._thread.start()

    def leave_stuck_job(self) -> None:
        """Ends a job that does not end by itself; another thread runs the next ones."""
        with self._changed:
            if self._jobs and (job := self._jobs[0]).is_stuck:
                self._jobs.remove(job)
                job.leave_behind()
                self._start_thread()

    def n_before(self, job: Job) -> int:
        """How many jobs come before this one."""
        with self._changed:
            wanted = self._wanted()
            return wanted.index(job) if job in wanted else 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or runs."""
        with self._changed:
            return not self._jobs

    def _wanted(self) -> list[Job]:
        """The running job, and those that wait and are not abandoned."""
        return [job for job in self._jobs if job.state == "running" or not job.is_abandoned]

    def _run_jobs(self) -> None:
        _lower_priority()
        while threading.current_thread() is self._thread:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs)
                job = self._jobs[0]
            job.run()
            with self._changed:
                if job in self._jobs:
                    self._jobs.remove(job)
            del job  # or its result would be kept in memory until the next job


def _lower_priority() -> None:
    """Of the worker thread alone, which only Linux can do; and one processor is left to the pages."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    # Here, since this module is imported before torch is needed.
    from transformer_viz.model import devices

    devices.leave_one_processor()
