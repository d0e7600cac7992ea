"""The job queue without a page: the order of jobs, Stop, cancelling, and what becomes of jobs that nobody waits for."""

import itertools
import threading
from collections.abc import Iterator

import pytest

from tests.until import until
from transformer_viz.errors import BusyError, DeviceError
from transformer_viz.server_settings import Limits
from transformer_viz.views.cache.job_queue import HEARTBEAT_TIMEOUT, Job, JobCancelled, JobQueue

PATIENT = 60
LIMITS = Limits(run_seconds=50, runs_waiting=5)


class Bench:
    """A line with a clock of its own, whose works stop at every step until they are let go on."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.queue = JobQueue(LIMITS, now=lambda: self.clock)
        self.order: list[str] = []
        self.steps = threading.Semaphore(0)
        self.jobs: list[Job] = []

    def submit(self, name: str, n_steps: int = 1) -> Job:
        """A job that writes so many letters."""

        def work(run: Job) -> str:
            self.order.append(name)
            written = ""
            for letter in itertools.islice(itertools.cycle("xyz"), n_steps):
                assert self.steps.acquire(timeout=PATIENT)
                written += letter
                if not run.report(written):
                    break
            return f"{name}:{written}"

        self.jobs.append(self.queue.submit(name, work))
        return self.jobs[-1]

    def at_work(self, run: Job) -> None:
        until(lambda: run.state == "running")

    def done(self, run: Job) -> None:
        until(lambda: run.state == "done")

    def serve_all(self) -> list[str]:
        """In which order they were served."""
        self.steps.release(1000)
        for run in self.jobs:
            self.done(run)
        return self.order


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.serve_all()


def submitted(bench: Bench, *names: str) -> list[Job]:
    """The first is at work before the others come."""
    runs = []
    for name in names:
        runs.append(bench.submit(name))
        bench.at_work(bench.jobs[0])
    return runs


def test_one_is_at_work_and_each_knows_its_place(bench):
    first, second, third, late = submitted(bench, "a", "b", "c", "d")
    assert [run.n_before for run in (first, second, third, late)] == [0, 1, 2, 3]
    assert [run.state for run in (first, second, third, late)] == ["running", "waiting", "waiting", "waiting"]
    second.cancel()
    assert [run.n_before for run in (first, third, late)] == [0, 1, 2]
    assert second.state == "done" and second.is_cancelled
    assert bench.serve_all() == ["a", "c", "d"]


def test_stopped_it_keeps_what_it_has(bench):
    run = bench.submit("a", n_steps=9)
    bench.steps.release(2)
    until(lambda: run.progress == "xy")
    run.stop()
    bench.steps.release()
    bench.done(run)
    assert run.result() == "a:xyz" and not run.is_late


def test_one_that_waits_and_is_stopped_leaves(bench):
    _, waiting = submitted(bench, "a", "b")
    waiting.stop()
    assert waiting.state == "done" and waiting.is_cancelled
    assert bench.serve_all() == ["a"]


def test_it_may_not_take_too_long(bench):
    run = bench.submit("a", n_steps=9)
    bench.at_work(run)
    bench.steps.release(1)
    until(lambda: run.progress == "x")
    bench.clock += LIMITS.run_seconds + 1
    run.touch()
    bench.steps.release(1)
    bench.done(run)
    assert (run.result(), run.is_late) == ("a:xy", True)


def test_cancelled_it_frees_its_place_at_its_next_step(bench):
    first, second = bench.submit("a", n_steps=9), bench.submit("b")
    bench.at_work(first)
    first.cancel()
    bench.steps.release(1)
    bench.at_work(second)
    assert first.state == "done"
    with pytest.raises(JobCancelled):
        first.result()
    assert not issubclass(JobCancelled, Exception), "what loads a model turns every exception of a library into a sentence"


def test_what_no_page_touches_ends(bench):
    first, second, third = bench.submit("a", n_steps=9), bench.submit("b"), bench.submit("c")
    bench.at_work(first)
    bench.clock += HEARTBEAT_TIMEOUT + 1
    third.touch()
    assert third.n_before == 1, "nobody waits for the second"
    bench.steps.release(1)
    bench.at_work(third)
    assert first.is_cancelled and second.is_cancelled


def test_too_many_are_refused_in_a_sentence(bench):
    submitted(bench, "a", "b", "c", "d", "e", "f")
    with pytest.raises(BusyError, match=r"5 long runs are waiting.*TRANSFORMER_VIZ_MAX_RUNS_WAITING"):
        bench.submit("g")
    bench.jobs[1].cancel()
    bench.submit("g")


def test_an_error_is_raised_where_the_result_is_wanted_and_the_next_job_runs(bench):
    def fail(job: Job) -> None:
        raise DeviceError("no memory is left")

    job = bench.queue.submit("bad", fail)
    bench.done(job)
    with pytest.raises(DeviceError, match="no memory"):
        job.result()
    after = bench.submit("b")
    bench.steps.release(1)
    bench.done(after)
    assert after.result() == "b:x"
