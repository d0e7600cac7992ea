"""Long runs: one at a time on this machine, in a fair order, each watched by the page that asked for it.

Nobody's second run comes before another's first, and of equal ones the first that came is first: start-time fair queueing
(Goyal et al. 1996) with every run as long as any other. What nobody asks for any more gives its place up.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from transformer_viz.errors import BusyError
from transformer_viz.serving import Limits, variable

PATIENCE = 10.0
"""Seconds after which a run that no page asks for is given up. A page asks several times a second, one in a hidden tab every
second."""
GRACE = 10.0
"""Seconds that a run has, after it had to end, to say something and hear of it."""
_LESS_URGENT = 10
"""How nice the thread is: pages, and the runs of small models in them, come first wherever there is one processor for both."""

State = Literal["waiting", "at work", "done"]


class GivenUp(BaseException):
    """Ends the work of a run that nobody waits for."""


class Run:
    """One long run of one page.

    Attributes:
        key: what is asked for, by value.
        visitor: whose it is.
        said: what the work has said last, for the page to show; None before.
        is_stopped: whether it is to end with what there is.
        is_late: whether that is because it took too long.
        late: the error where it took too long and has not heard that it is to end: its thread is left behind, and others come
            after it. None: it is always waited for.
    """

    def __init__(self, key: Any, visitor: str, work: "Callable[[Run], Any]", line: "Line") -> None:
        self.key, self.visitor = key, visitor
        self.said: Any = None
        self.late: Exception | None = None
        self.is_stopped = self.is_late = self.is_given_up = False
        self._work, self._line = work, line
        self.state: State = "waiting"
        self.begun_at = 0.0
        self._asked_at = line.now()
        self.turn = (0, 0)
        """Round and number: the smallest comes first."""
        self._has_said, self._has_ended = threading.Event(), threading.Event()
        self._answer: Any = None
        self._error: BaseException | None = None

    def goes_on(self, said: Any) -> bool:
        """The work says how far it is; whether it is to go on.

        Raises:
            GivenUp: nobody waits for it.
        """
        if self.is_given_up or self.is_forgotten or self.state == "done":
            raise GivenUp
        self.said = said
        self.is_late = self._line.now() - self.begun_at > self._line.limits.run_seconds
        self.is_stopped = self.is_stopped or self.is_late
        self._has_said.set()
        return not self.is_stopped

    @property
    def is_forgotten(self) -> bool:
        """Whether no page has asked for it for a while."""
        return self._line.now() - self._asked_at > PATIENCE

    @property
    def is_stuck(self) -> bool:
        """Whether it should have ended a while ago, for its limit or since nobody waits for it."""
        should_end_at = min(self.begun_at + self._line.limits.run_seconds, self._asked_at + PATIENCE)
        return self.late is not None and self.state == "at work" and self._line.now() > should_end_at + GRACE

    @property
    def n_before(self) -> int:
        """How many runs come before it, the one at work included."""
        return self._line.n_before(self)

    def ask(self) -> State:
        """Its page is still there; how far it is."""
        self._asked_at = self._line.now()
        self._line.leave_stuck_behind()
        return self.state

    def stop(self) -> None:
        """It ends with what there is; one that waits leaves the line."""
        self.is_stopped = True
        if self.state == "waiting":
            self.give_up()

    def give_up(self) -> None:
        """Nobody wants it any more."""
        self.is_given_up = True
        self._line.leave(self)

    def wait(self, seconds: float) -> bool:
        """Until it has said something or is done, at most so long; whether it is done."""
        self._has_said.wait(seconds)
        return self.state == "done"

    def wait_for_end(self, seconds: float) -> None:
        """Until it is done, at most so long."""
        self._has_ended.wait(seconds)

    def take(self) -> Any:
        """What came of it, which is not kept here.

        Raises:
            Exception: what its work raised.
        """
        assert self.state == "done"
        answer, self._answer = self._answer, None
        if self._error is not None:
            raise self._error
        return answer

    def work(self) -> None:
        """Does it, in the thread of the line."""
        try:
            answer = self._work(self)
            self._answer = None if self.is_given_up else answer
        except GivenUp:
            self.is_given_up = True
        except BaseException as error:
            self._error = self._error or error
        self.end()

    def leave_behind(self) -> None:
        """It ends with its error, whatever its thread still does."""
        self._error = self.late
        self.end()

    def end(self) -> None:
        """Nothing more comes of it."""
        self.state = "done"
        self._has_said.set()
        self._has_ended.set()


class Line:
    """Those that wait, and the thread that does their work one after the other.

    Args:
        limits: how many may wait and how long one may take.
        now: seconds of a clock.
    """

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.now = limits, now
        self._has_changed = threading.Condition()
        self._waiting: list[Run] = []
        self._at_work: Run | None = None
        self._round, self._rounds, self._n = 0, dict[str, int](), 0
        """The round that is served, the last one of each visitor, and how many came."""
        self._thread: threading.Thread | None = None

    def join(self, key: Any, visitor: str, work: Callable[[Run], Any]) -> Run:
        """One more, at the end of its round.

        Raises:
            BusyError: too many wait.
        """
        with self._has_changed:
            self._drop_forgotten()
            self._refuse_more(visitor)
            run = Run(key, visitor, work, self)
            self._n += 1
            self._rounds[visitor] = max(self._round, self._rounds.get(visitor, -1) + 1)
            run.turn = (self._rounds[visitor], self._n)
            self._waiting.append(run)
            if self._thread is None:
                self._start()
            self._has_changed.notify_all()
        return run

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="long runs", daemon=True)
        self._thread.start()

    def leave_stuck_behind(self) -> None:
        """A run that should have ended, and does not hear of it, ends for everybody; another thread serves the others."""
        with self._has_changed:
            run = self._at_work
            if run is not None and run.is_stuck:
                self._at_work = None
                run.leave_behind()
                self._start()

    def leave(self, run: Run) -> None:
        """Its place is free. One that is at work ends at its next step."""
        with self._has_changed:
            if run in self._waiting:
                self._drop(run)

    def n_before(self, run: Run) -> int:
        """How many come before it."""
        with self._has_changed:
            self._drop_forgotten()
            earlier = sum(other.turn < run.turn for other in self._waiting)
            return earlier + (self._at_work not in (None, run))

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits and nothing is at work."""
        with self._has_changed:
            return not self._waiting and self._at_work is None

    def _refuse_more(self, visitor: str) -> None:
        there = [*self._waiting, *([self._at_work] if self._at_work else [])]
        most = self.limits.runs_per_visitor
        if sum(run.visitor == visitor for run in there) >= most:
            raise BusyError(
                f"This browser has {most} long runs waiting or at work in other tabs, which is all that it may have "
                f"({variable('runs_per_visitor')}). Close one of them, or wait for it."
            )
        if len(self._waiting) >= self.limits.runs_waiting:
            raise BusyError(
                f"{len(self._waiting)} long runs are waiting for this machine, and no more are taken "
                f"({variable('runs_waiting')}). Try again in a few minutes, or choose a smaller model."
            )

    def _drop_forgotten(self) -> None:
        for run in [run for run in self._waiting if run.is_forgotten]:
            self._drop(run)

    def _drop(self, run: Run) -> None:
        self._waiting.remove(run)
        # Who types another text while waiting stays in the same round.
        if self._rounds.get(run.visitor) == run.turn[0]:
            self._rounds[run.visitor] -= 1
        run.is_given_up = True
        run.end()

    def _serve(self) -> None:
        _be_less_urgent()
        while threading.current_thread() is self._thread:
            run = self._next()
            run.work()
            with self._has_changed:
                if self._at_work is run:
                    self._at_work = None
            del run  # or its answer would be held until the next one comes

    def _next(self) -> Run:
        with self._has_changed:
            self._drop_forgotten()
            while not self._waiting:
                self._has_changed.wait()
                self._drop_forgotten()
            run = min(self._waiting, key=lambda each: each.turn)
            self._waiting.remove(run)
            self._round = run.turn[0]
            self._rounds = {visitor: last for visitor, last in self._rounds.items() if last >= self._round}
            self._at_work, run.state, run.begun_at = run, "at work", self.now()
            return run


def _be_less_urgent() -> None:
    """Of this thread alone, which only Linux can say; and one processor is left to the others."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LESS_URGENT)
    # Here, since the line is imported before torch is needed.
    from transformer_viz.model import devices

    devices.leave_one_processor()
