"""The server's store: bounded by bytes, oldest out first, one making for all who want the same at once, found by value."""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.checkpoints import load_checkpoint, load_snapshot, snapshots
from transformer_viz.tracing.trace_size import bytes_of
from transformer_viz.training.result import TrainingSnapshot
from transformer_viz.views.cache.store import Store, key_of, size_of
from transformer_viz.views.components.recorded_calls import Call


def test_what_was_not_used_for_longest_goes():
    made, store = [], Store(100)

    def get(key: str, size: int = 30) -> bytes:
        def make() -> bytes:
            made.append(key)
            return bytes(size)

        return store.get_or_make(key, make)

    for key in "abcad":
        get(key)
    assert (made, store.results.currsize, len(store.results)) == (["a", "b", "c", "d"], 90, 3)
    for key in "cda":
        get(key)
    assert made == ["a", "b", "c", "d"]
    get("b")
    assert made[4:] == ["b"]
    for _ in range(2):
        assert len(get("large", 101)) == 101
    assert made[-2:] == ["large", "large"], "nothing is kept that alone is too large"
    store.put("larger", bytes(102))
    assert store.get("larger") is None and store.get("b") == bytes(30)


def test_a_failure_is_not_kept():
    answers, store = iter([0, 1]), Store(100)
    with pytest.raises(ZeroDivisionError):
        store.get_or_make("x", lambda: bytes(1 // next(answers)))
    assert store.get_or_make("x", lambda: bytes(1 // next(answers))) == b"\0"


def test_all_who_want_the_same_at_once_get_one_making():
    started, go_on, made, store = threading.Event(), threading.Event(), [], Store(100)

    def make() -> bytes:
        made.append(1)
        started.set()
        assert go_on.wait(20)
        return b"x"

    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(store.get_or_make("a", make))) for _ in range(7)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    assert store.get_or_make("b", lambda: b"yy") == b"yy", "others do not wait"
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert (len(made), got) == (1, [b"x"] * 7)


def test_sizes(tiny):
    trace = tv.decode(tiny, "hello")
    size = bytes_of(trace)
    assert size > trace.nbytes
    moment = TrainingSnapshot(step=1, written=trace, forced=trace, target="answer")

    @dataclass
    class Result:
        values: np.ndarray
        by_name: dict[str, np.ndarray]

    arrays = Result(np.zeros(500), {"a": np.zeros(7, np.uint8)})
    assert [size_of(thing) for thing in (trace, np.zeros(3), b"1234567")] == [size, 24, 7]
    for thing, least in ((arrays, 4007), ([trace] * 3, 3 * size), ((moment, moment), 4 * size)):
        assert least <= size_of(thing) < least + 10_000


def test_a_call_is_found_by_the_values_of_its_arguments(tiny):
    def first(*_: Any, **__: Any) -> None: ...

    def second(*_: Any, **__: Any) -> None: ...

    trace, again = tv.decode(tiny, "hello"), tv.decode(tiny, "hello")
    changed = (
        tv.decode(tiny, "hella"),
        tv.decode(tiny, "hello", edits=["cross.1.1:zero"]),
        tv.decode(tiny, "hello", kinds=["cross"]),
    )
    reverse = load_checkpoint("reverse")

    def key(function: Any = first, model: Any = reverse, run: Any = trace, **options: Any) -> Any:
        return key_of(Call(function, model, run, **{"how": "mean", **options}))

    assert key() == key(run=again) == key(model=load_checkpoint("reverse"))
    others = [
        key(second),
        key(model=load_checkpoint("reverse-small")),
        *(key(run=run) for run in changed),
        key(how="zero"),
        key(head=1),
    ]
    assert len({key(), *others}) == 1 + len(others)


def test_a_snapshot_is_another_model():
    small = load_checkpoint("reverse-small")
    moment = load_snapshot(small, next(iter(snapshots(small.folder))))
    assert key_of(Call(len, small)) != key_of(Call(len, moment))
