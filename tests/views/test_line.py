"""Long runs without a page: in which order they are served, who may leave, and what becomes of those that nobody waits for."""

import itertools
import threading
from collections.abc import Iterator

import pytest

from tests.until import until
from transformer_viz.errors import BusyError, DeviceError, ModelError
from transformer_viz.serving import Limits
from transformer_viz.views.cache.line import GRACE, PATIENCE, GivenUp, Line, Run

PATIENT = 60
LIMITS = Limits(run_seconds=50, runs_waiting=5, runs_per_visitor=3)


class Bench:
    """A line with a clock of its own, whose works stop at every step until they are let go on."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.line = Line(LIMITS, now=lambda: self.clock)
        self.order: list[str] = []
        self.steps = threading.Semaphore(0)
        self.runs: list[Run] = []

    def join(self, name: str, n_steps: int = 1) -> Run:
        """`a2` is the second run of visitor `a`; it writes so many letters."""

        def work(run: Run) -> str:
            self.order.append(name)
            written = ""
            for letter in itertools.islice(itertools.cycle("xyz"), n_steps):
                assert self.steps.acquire(timeout=PATIENT)
                written += letter
                if not run.goes_on(written):
                    break
            return f"{name}:{written}"

        self.runs.append(self.line.join(name, name[0], work))
        return self.runs[-1]

    def at_work(self, run: Run) -> None:
        until(lambda: run.state == "at work")

    def done(self, run: Run) -> None:
        until(lambda: run.state == "done")

    def serve_all(self) -> list[str]:
        """In which order they were served."""
        self.steps.release(1000)
        for run in self.runs:
            self.done(run)
        return self.order


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.serve_all()


def joined(bench: Bench, *names: str) -> list[Run]:
    """The first is at work before the others come."""
    runs = []
    for name in names:
        runs.append(bench.join(name))
        bench.at_work(bench.runs[0])
    return runs


@pytest.mark.parametrize(
    ("came", "served"),
    [
        (("a1", "b1", "c1"), ["a1", "b1", "c1"]),
        (("a1", "a2", "a3", "b1"), ["a1", "b1", "a2", "a3"]),
        (("a1", "a2", "b1", "b2", "c1"), ["a1", "b1", "c1", "a2", "b2"]),
        (("a1", "b1", "b2", "b3", "a2", "c1"), ["a1", "b1", "c1", "b2", "a2", "b3"]),
    ],
)
def test_nobodys_second_comes_before_anothers_first(bench: Bench, came: tuple[str, ...], served: list[str]) -> None:
    joined(bench, *came)
    assert bench.serve_all() == served


def test_one_is_at_work_and_each_knows_its_place(bench: Bench) -> None:
    first, second, third, late = joined(bench, "a1", "a2", "a3", "b1")
    assert [run.n_before for run in (first, late, second, third)] == [0, 1, 2, 3]
    assert [run.state for run in (first, second, third, late)] == ["at work", "waiting", "waiting", "waiting"]
    late.give_up()
    assert [run.n_before for run in (first, second, third)] == [0, 1, 2]
    assert late.state == "done" and late.is_given_up


def test_who_types_another_text_while_waiting_stays_in_the_same_round(bench: Bench) -> None:
    _, other = joined(bench, "a1", "b1")
    other.give_up()
    joined(bench, "c1", "b2")
    bench.join("c2")
    assert bench.serve_all() == ["a1", "c1", "b2", "c2"]


def test_stopped_it_keeps_what_it_has(bench: Bench) -> None:
    run = bench.join("a1", n_steps=9)
    bench.steps.release(2)
    until(lambda: run.said == "xy")
    run.stop()
    bench.steps.release()
    bench.done(run)
    assert run.take() == "a1:xyz" and not run.is_late
    assert run.take() is None, "an answer is not kept"


def test_one_that_waits_and_is_stopped_leaves(bench: Bench) -> None:
    _, waiting = joined(bench, "a1", "b1")
    waiting.stop()
    assert waiting.state == "done" and waiting.is_given_up
    assert bench.serve_all() == ["a1"]


def test_it_may_not_take_too_long(bench: Bench) -> None:
    run = bench.join("a1", n_steps=9)
    bench.at_work(run)
    bench.steps.release(1)
    until(lambda: run.said == "x")
    bench.clock += LIMITS.run_seconds + 1
    run.ask()
    bench.steps.release(1)
    bench.done(run)
    assert (run.take(), run.is_late) == ("a1:xy", True)


def test_given_up_it_frees_its_place_at_its_next_step(bench: Bench) -> None:
    first, second = bench.join("a1", n_steps=9), bench.join("b1")
    bench.at_work(first)
    first.give_up()
    bench.steps.release(1)
    bench.at_work(second)
    assert first.state == "done" and first.take() is None


def test_what_no_page_asks_for_is_given_up(bench: Bench) -> None:
    first, second, third = bench.join("a1", n_steps=9), bench.join("b1"), bench.join("c1")
    bench.at_work(first)
    bench.clock += PATIENCE + 1
    third.ask()
    assert third.n_before == 1, "the second has left the line"
    assert second.is_given_up
    bench.steps.release(1)
    bench.at_work(third)
    assert first.is_given_up


def test_too_many_are_refused_in_a_sentence(bench: Bench) -> None:
    joined(bench, "a1", "a2", "a3")
    with pytest.raises(BusyError, match=r"This browser has 3 long runs .*TRANSFORMER_VIZ_MAX_RUNS_PER_VISITOR"):
        bench.join("a4")
    joined(bench, "b1", "c1", "d1")
    with pytest.raises(BusyError, match=r"5 long runs are waiting .*TRANSFORMER_VIZ_MAX_RUNS_WAITING"):
        bench.join("e1")
    bench.runs[1].give_up()
    bench.join("e1")


def test_what_goes_wrong_is_raised_where_it_is_asked_for_and_the_next_is_served(bench: Bench) -> None:
    def fail(run: Run) -> None:
        raise DeviceError("no memory is left")

    run = bench.line.join("bad", "a", fail)
    bench.done(run)
    with pytest.raises(DeviceError, match="no memory"):
        run.take()
    assert bench.serve_all() == []
    after = bench.join("b1")
    bench.done(after)
    assert after.take() == "b1:x"


def test_nobodys_answer_is_anothers(bench: Bench) -> None:
    bench.steps.release(1000)
    runs: dict[str, Run] = {}
    lock = threading.Lock()

    def visit(name: str) -> None:
        for number in range(4):
            run = bench.line.join(name, name, lambda run, word=f"{name}{number}": word if run.goes_on(word) else "")
            until(lambda run=run: run.state == "done")
            with lock:
                runs[run.take()] = run

    threads = [threading.Thread(target=visit, args=(name,)) for name in "abcdefghij"[: LIMITS.runs_waiting]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert len(runs) == 4 * LIMITS.runs_waiting
    assert all(word.startswith(run.visitor) and run.said == word for word, run in runs.items())


def test_work_that_is_given_up_cannot_take_it_for_an_ordinary_failure() -> None:
    """What loads a model turns every exception of a library into a sentence."""
    assert not issubclass(GivenUp, Exception)
    caught: list[type[BaseException]] = []
    line = Line(LIMITS)
    begun, go_on = threading.Event(), threading.Event()

    def work(run: Run) -> None:
        begun.set()
        assert go_on.wait(PATIENT)
        try:
            run.goes_on("x")
        except Exception as error:
            caught.append(type(error))

    run = line.join("a", "a", work)
    assert begun.wait(PATIENT)
    run.give_up()
    go_on.set()
    until(lambda: run.state == "done")
    assert not caught and run.is_given_up


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_one_that_does_not_hear_that_it_should_end_is_left_behind(bench: Bench, is_asked_for: bool) -> None:
    """Late, or forgotten by its page: another thread serves the next, and the first goes no further once it says something."""
    let_go, ended = threading.Event(), list[str]()

    def never_ends(run: Run) -> None:
        assert let_go.wait(PATIENT)
        try:
            run.goes_on("at last")
        except GivenUp:
            ended.append("given up")
            raise

    stuck = bench.line.join("a1", "a", never_ends)
    stuck.late = ModelError("not in time")
    bench.at_work(stuck)
    second = bench.join("b1")
    bench.clock += 1 + (LIMITS.run_seconds if is_asked_for else PATIENCE) + GRACE / 2
    if is_asked_for:
        stuck.ask()
    assert (stuck.state, second.ask()) == ("at work", "waiting")
    bench.clock += GRACE / 2
    second.ask()
    assert stuck.state == "done"
    with pytest.raises(ModelError, match="not in time"):
        stuck.take()
    bench.steps.release()
    bench.done(second)
    assert second.take() == "b1:x"
    let_go.set()
    until(lambda: ended == ["given up"])
    third = bench.join("c1")
    bench.steps.release()
    bench.done(third)
    assert third.take() == "c1:x"
