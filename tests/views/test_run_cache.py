"""The server's store: bounded by bytes, oldest out first, one making for all who ask at once."""

import threading
from typing import Any

import pytest
from cachetools import LRUCache

import transformer_viz as tv
from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.tracing.trace_size import held_bytes
from transformer_viz.views.cache import run_cache
from transformer_viz.views.cache.run_cache import held, size_of


@pytest.fixture
def store(monkeypatch) -> LRUCache:
    """A small one, for what is decorated in a test."""
    store: LRUCache = LRUCache(100, getsizeof=size_of)
    monkeypatch.setattr(run_cache, "store", store)
    return store


def test_what_was_not_asked_for_longest_is_let_go(store):
    made = []

    @held
    def get(key: str, size: int = 30) -> bytes:
        made.append(key)
        return bytes(size)

    for key in "abcad":
        get(key)
    assert (made, store.currsize, len(store)) == (["a", "b", "c", "d"], 90, 3)
    for key in "cda":
        get(key)
    assert made == ["a", "b", "c", "d"]
    get("b")
    assert made[4:] == ["b"]
    for _ in range(2):
        assert len(get("large", 101)) == 101
    assert made[-2:] == ["large", "large"], "nothing is held that alone is too large"


def test_a_failure_is_not_held(store):
    answers = iter([0, 1])

    @held
    def get() -> bytes:
        return bytes(1 // next(answers))

    with pytest.raises(ZeroDivisionError):
        get()
    assert get() == b"\0"


def test_all_who_ask_at_once_get_one_making(store):
    started, go_on, made = threading.Event(), threading.Event(), []

    @held
    def get(key: str) -> bytes:
        if key == "b":
            return b"yy"
        made.append(1)
        started.set()
        assert go_on.wait(20)
        return b"x"

    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(get("a"))) for _ in range(7)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    assert get("b") == b"yy", "others do not wait"
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert (len(made), got) == (1, [b"x"] * 7)


def test_sizes(tiny):
    trace = tv.decode(tiny, "hello")
    size = held_bytes(trace)
    assert size > trace.nbytes
    moment = TrainingSnapshot(step=1, written=trace, forced=trace, target="answer")
    things = (trace, [trace] * 3, moment, (moment, moment), b"1234567")
    assert [size_of(thing) for thing in things] == [size, 3 * size, 2 * size, 4 * size, 7]
    with pytest.raises(AssertionError):
        size_of(object())


def test_arguments_are_the_key_but_for_those_that_begin_with_a_line(store):
    made: list[tuple[int, Any]] = []

    @held
    def make(a: int, b: int = 2, *, _c: Any = None) -> bytes:
        made.append((a, _c))
        return bytes([a])

    @held
    def other(a: int, b: int = 2) -> bytes:
        return b"other"

    assert [make(1, _c="x"), make(1, _c="y"), make(a=1), make(2), other(1)] == [b"\1", b"\1", b"\1", b"\2", b"other"]
    assert made == [(1, "x"), (2, None)]
