"""The insides that a run keeps in its file: whole again, and refused in words where they are damaged or not of the run."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_viz as tv
from transformer_viz.errors import TraceError
from transformer_viz.trace.groups import Group
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace

PLACES: Any = [("cross", 1, 2, 3), ("decoder", 0, 4, 1), ("encoder", 1, 0, 0)]


@pytest.fixture(scope="module")
def kept(tiny: tv.Checkpoint, hello: Trace) -> Trace:
    trace = hello
    for place in PLACES:
        trace = tv.inside(tiny, hello, *place).kept_in(trace)
    return trace


def test_they_come_back_from_a_file(kept: Trace, tmp_path: Any) -> None:
    kept.save(tmp_path / "run.npz")
    back = Inside.of(tv.load_trace(tmp_path / "run.npz"))
    assert [inside.place for inside in back] == PLACES
    for own, other in zip(Inside.of(kept), back, strict=True):
        assert own.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(own.arrays[name], other.arrays[name]) for name in own.arrays)
        assert own.lens == other.lens and own.run == other.run and own.scale == other.scale
        assert not any(array.flags.writeable for array in other.arrays.values())


def test_one_of_the_same_place_gives_way_and_there_are_not_too_many(tiny: tv.Checkpoint, hello: Trace, kept: Trace) -> None:
    again = tv.inside(tiny, hello, *PLACES[0]).kept_in(kept)
    assert [inside.place for inside in Inside.of(again)] == [*PLACES[1:], PLACES[0]]
    for head in range(5):
        again = tv.inside(tiny, hello, "cross", 2, head, 0).kept_in(again)
    with pytest.raises(TraceError, match="at most 8 heads and rows"):
        tv.inside(tiny, hello, "cross", 2, 0, 1).kept_in(again)


def test_those_of_another_run_are_refused(tiny: tv.Checkpoint, kept: Trace) -> None:
    other = tv.decode(tiny, "hello", edits=["cross:off", "cross.2.3:4=1", "cross.1.1:zero"])
    with pytest.raises(TraceError, match=r"weights of cross\.2\.3:4 are not those of the run"):
        Inside.of(other.with_group("inside", kept.groups["inside"]))
    with pytest.raises(TraceError, match="not those of the run"):
        Inside.of(kept)[0].kept_in(other)


def test_a_run_without_any_has_none(hello: Trace) -> None:
    assert Inside.of(hello) == ()


def damaged(kept: Trace, change: Any) -> Trace:
    """With its notes and arrays changed by `change(notes, arrays)`."""
    group = kept.groups["inside"]
    notes, arrays = json.loads(json.dumps(group.notes)), dict(group.arrays)
    change(notes, arrays)
    return kept.with_group("inside", Group(arrays, notes))


def put(*path: Any, value: Any) -> Any:
    """Changes one place of the notes."""

    def change(notes: Any, arrays: Any) -> None:
        at = notes
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


DAMAGES: dict[str, Any] = {
    "no heads": lambda notes, arrays: notes.clear(),
    "none": put("heads", value=[]),
    "too many": put("heads", value=[{}] * 9),
    "a word": put("heads", value="cross"),
    "no array": lambda notes, arrays: arrays.pop("numbers_1"),
    "an array more": lambda notes, arrays: arrays.update(numbers_9=np.zeros(2)),
    "whole numbers": lambda notes, arrays: arrays.update(numbers_0=arrays["numbers_0"].astype(np.int32)),
    "fewer numbers": lambda notes, arrays: arrays.update(numbers_0=arrays["numbers_0"][:-1]),
    "more numbers": lambda notes, arrays: arrays.update(numbers_0=np.append(arrays["numbers_0"], 0)),
    "reasons of another length": lambda notes, arrays: arrays.update(reasons_0=np.zeros(99, np.uint8)),
    "twice the same": lambda notes, arrays: notes["heads"].__setitem__(1, notes["heads"][0]),
    "another kind": put("heads", 0, "kind", value="crass"),
    "a layer that is not there": put("heads", 0, "layer", value=99),
    "half a row": put("heads", 0, "row", value=0.5),
    "a negative head": put("heads", 0, "head", value=-1),
    "true for a number": put("heads", 0, "head", value=True),
    "a scale of words": put("heads", 0, "scale", value="wide"),
    "a scale below 0": put("heads", 0, "scale", value=-1.0),
    "another norm": put("heads", 0, "norm", value="<b>pre</b>"),
    "an unknown part": put("heads", 0, "parts", 0, 0, value="../query"),
    "a part twice": put("heads", 0, "parts", 0, 0, value="keys"),
    "a shape of nothing": put("heads", 0, "parts", 0, 1, value=[]),
    "a huge shape": put("heads", 0, "parts", 0, 1, value=[10**9, 10**9]),
    "a negative shape": put("heads", 0, "parts", 0, 1, value=[-3]),
    "a lens of words": put("heads", 0, "lens", value="no"),
    "a probability of 2": put("heads", 0, "lens", 0, "probability", value=2),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_refused_in_words(kept: Trace, change: Any) -> None:
    with pytest.raises(TraceError) as caught:
        Inside.of(damaged(kept, change))
    assert str(caught.value).startswith("inside: ") or "should be" in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=150)
@given(data=st.data())
def test_any_note_in_any_place_is_refused_or_whole(kept: Trace, data: st.DataObject) -> None:
    def change(notes: Any, arrays: Any) -> None:
        at, key = notes, "heads"
        while isinstance(at[key], list | dict) and at[key] and data.draw(st.integers(0, 4)):
            at = at[key]
            key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        at[key] = data.draw(JSON)

    changed = damaged(kept, change)
    try:
        found = Inside.of(changed)
    except TraceError:
        return
    assert all(isinstance(inside, Inside) and inside.is_of(changed) for inside in found)
