"""Pages that are made at the same moment: how many, in which order, and what holds up nobody."""

import threading
from collections.abc import Callable

import pytest

from tests.until import until
from transformer_viz.views.server import turns

PATIENCE = 60


@pytest.fixture
def start(monkeypatch) -> Callable[..., threading.Thread]:
    """`start(work)` in a thread. Turns are never too long, unless a test says so."""
    monkeypatch.setattr(turns, "LONG", 1000.0)

    def start(work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    return start


def test_as_many_as_there_are_turns_and_no_more(start):
    lock, together = threading.Lock(), threading.Barrier(turns.AT_ONCE)
    inside: list[int] = [0]
    most: list[int] = []

    def page() -> None:
        with turns.turn():
            with lock:
                inside[0] += 1
                most.append(inside[0])
            together.wait(PATIENCE)
            with lock:
                inside[0] -= 1

    threads = [start(page) for _ in range(6 * turns.AT_ONCE)]
    for thread in threads:
        thread.join(PATIENCE)
    assert len(most) == len(threads)
    assert max(most) == turns.AT_ONCE
    assert not turns._begun and not turns._waiting


def test_who_only_waits_lets_others_in_and_takes_a_turn_again(start, monkeypatch):
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    came, leave, back = threading.Event(), threading.Event(), threading.Event()

    def other() -> None:
        with turns.turn():
            came.set()
            assert leave.wait(PATIENCE)

    def waits() -> None:
        with turns.turn():
            with turns.passed_on():
                start(other)
                assert came.wait(PATIENCE)
            back.set()

    thread = start(waits)
    assert came.wait(PATIENCE)
    until(lambda: len(turns._waiting) == 1)
    assert not back.is_set(), "it goes on only when there is a turn"
    leave.set()
    thread.join(PATIENCE)
    assert back.is_set()
    until(lambda: not turns._begun and not turns._waiting)


def test_without_a_turn_none_is_passed_on():
    with turns.passed_on():
        assert not turns._begun
    assert not turns._begun and not turns._waiting


def test_first_come_first_served(start, monkeypatch):
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    go_on = threading.Event()
    order: list[int] = []

    def page(number: int) -> None:
        with turns.turn():
            order.append(number)
            go_on.wait(PATIENCE)

    threads = []
    for number in range(8):
        threads.append(start(lambda number=number: page(number)))
        until(lambda number=number: len(turns._waiting) + len(turns._begun) == number + 1 and len(order) == 1)
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert order == list(range(8))


@pytest.fixture
def busy(start, monkeypatch):
    """The one turn is taken, until the test is over."""
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    go_on, has_begun = threading.Event(), threading.Event()

    def page() -> None:
        with turns.turn():
            has_begun.set()
            go_on.wait(PATIENCE)

    thread = start(page)
    assert has_begun.wait(PATIENCE)
    yield
    go_on.set()
    thread.join(PATIENCE)
    assert not turns._begun


def comes_next(start) -> threading.Event:
    came = threading.Event()

    def page() -> None:
        with turns.turn():
            came.set()

    start(page)
    until(lambda: came.is_set() or len(turns._waiting) == 1)
    return came


def test_a_page_that_takes_long_holds_up_no_other(start, busy, monkeypatch):
    monkeypatch.setattr(turns, "LONG", 0.01)
    assert comes_next(start).wait(PATIENCE)


def test_a_page_that_fails_has_had_its_turn(start, monkeypatch):
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn():
            raise ZeroDivisionError
