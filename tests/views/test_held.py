"""The server's store: bounded by bytes, oldest out first, one making for all who ask at once."""

import threading
from typing import Any

import pytest

import transformer_viz as tv
from transformer_viz.trace.snapshots import TrainingSnapshot
from transformer_viz.tracing.trace_size import held_bytes
from transformer_viz.views.cache.run_cache import MOST_BYTES, Held, everything, held, size_of


def test_what_was_not_asked_for_longest_is_let_go():
    store, made = Held(100), []

    def get(key: str, size: int = 30) -> bytes:
        return store.get(key, lambda: made.append(key) or bytes(size))

    for key in "abc":
        get(key)
    get("a")
    get("d")
    assert (made, store.n_bytes, len(store)) == (["a", "b", "c", "d"], 90, 3)
    for key in "cda":
        get(key)
    assert made == ["a", "b", "c", "d"]
    get("b")
    assert made[4:] == ["b"]
    assert len(get("large", 101)) == 101
    assert (store.n_bytes, len(store)) == (0, 0), "nothing is held that alone is too large, and it pushed all out"
    get("large", 101)
    assert made[-2:] == ["large", "large"]


def test_a_failure_is_not_held():
    store = Held(100)
    with pytest.raises(ZeroDivisionError):
        store.get("a", lambda: 1 / 0)
    assert store.get("a", lambda: b"x") == b"x"
    assert not store._making


def test_all_who_ask_at_once_get_one_making():
    store, started, go_on, made = Held(100), threading.Event(), threading.Event(), []

    def make() -> bytes:
        made.append(1)
        started.set()
        assert go_on.wait(20)
        return b"x"

    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(store.get("a", make))) for _ in range(7)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    assert store.get("b", lambda: b"yy") == b"yy", "others do not wait"
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert (len(made), got) == (1, [b"x"] * 7)


def test_sizes(tiny):
    trace = tv.decode(tiny, "hello")
    size = held_bytes(trace)
    assert size > trace.nbytes
    moment = TrainingSnapshot(step=1, written=trace, forced=trace, target="answer")
    assert [size_of(thing) for thing in (trace, [trace] * 3, moment, (moment, moment), b"1234567")] == [
        size,
        3 * size,
        2 * size,
        4 * size,
        7,
    ]
    with pytest.raises(AssertionError):
        size_of(object())


def test_arguments_are_the_key_but_for_those_that_begin_with_a_line():
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
    assert everything().most_bytes == MOST_BYTES
