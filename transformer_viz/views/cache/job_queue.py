"""Long jobs, one at a time on this machine, first come first served.

A session has one job at a time, so the session that has waited longest is next. A job whose page is gone ends.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

from transformer_viz.errors import BusyError
from transformer_viz.server_settings import Limits, variable

HEARTBEAT_TIMEOUT = 15.0
"""Seconds after which a job ends that no page has touched. A page touches its job every second or more often."""
GRACE = 10.0
"""Seconds that work has, after it had to end, to report once more and learn of it."""
_NICE = 10
"""The niceness of the worker thread: pages, and the quick runs in them, come first."""

State = Literal["waiting", "running", "done"]


class JobCancelled(BaseException):
    """Ends the work of a job that nobody waits for. Not an `Exception`, so that no library takes it for its own failure."""


class Job:
    """One long piece of work for one page.

    Args:
        key: what is computed, by value.
        work: is given the job, to which it reports its progress.
        queue: that it waits in.
        late_error: what it ends with if it takes too long and does not report: its thread is left behind, and the next job
            runs. None: it is waited for.

    Attributes:
        progress: what the work has reported last; None before.
        is_stopped: whether the work is to end with what there is.
        is_late: whether that is because it took too long.
        is_cancelled: whether nobody wants the result any more.
        ended: its result or error, once it is done.
    """

    def __init__(
        self, key: Hashable, work: "Callable[[Job], Any]", queue: "JobQueue", late_error: Exception | None = None
    ) -> None:
        self.key, self.work, self.late_error, self._queue = key, work, late_error, queue
        self.progress: Any = None
        self.is_stopped = self.is_late = self.is_cancelled = False
        self.started_at, self.touched_at = 0.0, queue.now()
        self.ended: Future[Any] = Future()

    @property
    def state(self) -> State:
        """The state of the job now: waiting, running or done."""
        return "done" if self.ended.done() else "running" if self.ended.running() else "waiting"

    @property
    def n_before(self) -> int:
        """Counts the jobs that come before this one, the running one included."""
        wanted = self._queue.wanted()
        return wanted.index(self) if self in wanted else 0

    @property
    def is_abandoned(self) -> bool:
        """Tells whether nobody wants it, or its page has been gone for a while."""
        return self.is_cancelled or self._queue.now() - self.touched_at > HEARTBEAT_TIMEOUT

    def report(self, progress: Any) -> bool:
        """Called by the work to say how far it is; returns whether to continue.

        Raises:
            JobCancelled: nobody waits for the result.
        """
        if self.is_abandoned or self.state == "done":
            self.is_cancelled = True
            raise JobCancelled
        self.progress = progress
        self.is_late = self._queue.now() - self.started_at > self._queue.limits.run_seconds
        self.is_stopped = self.is_stopped or self.is_late
        return not self.is_stopped

    def touch(self) -> State:
        """Called by the page that waits: it is still there. Returns how far the job is."""
        self.touched_at = self._queue.now()
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
        self.ended.cancel()

    def wait(self, seconds: float) -> bool:
        """Waits until it is done, at most `seconds`; returns whether it is."""
        return bool(futures.wait([self.ended], seconds).done)

    def result(self) -> Any:
        """Returns the result of a job that is done; raises what its work raised."""
        return self.ended.result(0)


class JobQueue:
    """The jobs that wait, and the thread that runs them one after the other.

    Args:
        limits: how many may wait, and how long one may take.
        now: a clock in seconds.
    """

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.now = limits, now
        self.jobs: list[Job] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, key: Hashable, work: Callable[[Job], Any], late_error: Exception | None = None) -> Job:
        """Adds a job of these at the end.

        Raises:
            BusyError: too many wait.
        """
        with self._changed:
            if (n_waiting := sum(job.state == "waiting" for job in self.wanted())) >= self.limits.runs_waiting:
                raise BusyError(
                    f"{n_waiting} long runs are waiting, and no more are accepted "
                    f"({variable('runs_waiting')}). Try again in a few minutes, or choose a smaller model."
                )
            job = Job(key, work, self, late_error)
            self.jobs.append(job)
            if self._thread is None:
                self._start_thread()
            self._changed.notify()
        return job

    def wanted(self) -> list[Job]:
        """The running job, and those that wait and are not abandoned."""
        with self._changed:
            return [job for job in self.jobs if job.state == "running" or not job.is_abandoned]

    def leave_stuck_job(self) -> None:
        """Ends a job that should have ended a while ago and does not report; another thread runs the next ones."""
        with self._changed:
            job = self.jobs[0] if self.jobs else None
            if job is None or job.late_error is None or job.state != "running":
                return
            if self.now() > min(job.started_at + self.limits.run_seconds, job.touched_at + HEARTBEAT_TIMEOUT) + GRACE:
                self.jobs.remove(job)
                job.ended.set_exception(job.late_error)
                self._start_thread()

    def _start_thread(self) -> None:
        # A daemon, so that Ctrl-C ends the server at once.
        self._thread = threading.Thread(target=self._run_jobs, name="long jobs", daemon=True)
        self._thread.start()

    def _run_jobs(self) -> None:
        _lower_priority()
        while threading.current_thread() is self._thread:
            with self._changed:
                self._changed.wait_for(lambda: self.jobs)
                job = self.jobs[0]
                if job.is_abandoned:
                    job.cancel()
            if job.ended.set_running_or_notify_cancel():
                job.started_at = self.now()
                with suppress(futures.InvalidStateError):  # left behind meanwhile
                    try:
                        job.ended.set_result(job.work(job))
                    except BaseException as error:
                        job.ended.set_exception(error)
            with self._changed:
                if job in self.jobs:
                    self.jobs.remove(job)
            del job  # or its result would be kept in memory until the next job


def _lower_priority() -> None:
    """Lowers the priority of the worker thread alone, which only Linux can do; and leaves one processor to the pages."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    # Here, since this module is imported before torch is needed.
    from transformer_viz.model import devices

    devices.leave_one_processor()
