"""What a run holds of attributions and of the insides of heads, in its file too. See also `test_damaged_json.py`."""

import io
import zipfile
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.trace.conftest import is_same, load_bytes, members_of, zip_of
from transformer_viz.errors import TraceError
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

PLACES: Any = [("cross", 1, 2, 3), ("decoder", 0, 4, 1), ("encoder", 1, 0, 0)]


@pytest.fixture(scope="module")
def looked_into(tiny: tv.Checkpoint, hello: Trace) -> Trace:
    trace = hello
    for place in PLACES:
        trace = trace.with_inside(tv.inside(tiny, hello, *place))
    return trace


def occlusion(trace: Trace, **changes: Any) -> Attribution:
    shape = (trace.n_steps, len(trace.source_tokens))
    values = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(shape)
    values[0, 0] = np.nan
    given: dict[str, Any] = {"method": "occlusion", "kind": "cross", "values": values, "mode": "word", "unit": "nats"}
    return Attribution(**{**given, **changes})


def test_a_run_and_its_file_hold_results(hello: Trace, looked_into: Trace) -> None:
    by_head = occlusion(hello, values=hello.cross.weights * 2, mode=None, unit="", layers=(0, 1, 2))
    trace = looked_into.with_attribution(occlusion(hello)).with_attribution(by_head)
    assert list(trace.attributions) == ["occlusion_word_cross", "occlusion_cross"] and hello.attributions == {}
    assert [inside.place for inside in trace.insides] == PLACES and hello.insides == ()
    loaded = load_bytes(to_bytes(trace))
    assert is_same(loaded, trace) and tv.diff(loaded, trace).equal
    arrays = [loaded.attributions["occlusion_cross"].values, *loaded.insides[0].arrays.values(), loaded.insides[0].reasons]
    assert not any(array.flags.writeable for array in arrays)
    more = [result.values for result in trace.attributions.values()]
    more += [array for inside in trace.insides for array in (*inside.arrays.values(), inside.reasons)]
    assert trace.nbytes - hello.nbytes == sum(array.nbytes for array in more)


def test_one_of_the_same_name_or_place_gives_way_and_there_are_not_too_many(
    tiny: tv.Checkpoint, hello: Trace, looked_into: Trace
) -> None:
    zeros = occlusion(hello, values=np.zeros((hello.n_steps, len(hello.source_tokens))))
    held = hello.with_attribution(occlusion(hello)).with_attribution(zeros).attributions
    assert list(held) == ["occlusion_word_cross"] and not held["occlusion_word_cross"].values.any()
    again = looked_into.with_inside(tv.inside(tiny, hello, *PLACES[0]))
    assert [inside.place for inside in again.insides] == [*PLACES[1:], PLACES[0]]
    for head in range(5):
        again = again.with_inside(tv.inside(tiny, hello, "cross", 2, head, 0))
    with pytest.raises(TraceError, match="at most 8 heads and rows"):
        again.with_inside(tv.inside(tiny, hello, "cross", 2, 0, 1))


def test_what_is_derived_from_a_run_does_not_take_them_along(hello: Trace, looked_into: Trace) -> None:
    trace = looked_into.with_attribution(occlusion(hello))
    for derived in (hide_answer(trace, 1), tv.by_words(trace)):
        assert derived.attributions == {} and derived.insides == ()


def test_those_of_another_run_are_refused(tiny: tv.Checkpoint, hello: Trace, looked_into: Trace) -> None:
    other = tv.decode(tiny, "hello", edits=["cross:off", "cross.2.3:4=1", "cross.1.1:zero"])
    with pytest.raises(TraceError, match=r"weights of cross\.2\.3:4 are not those of the run"):
        other.with_inside(looked_into.insides[0])
    with pytest.raises(
        TraceError, match=r"occlusion_word_cross is \(2, 3\) for 5 query and 7 key tokens; it is of another run"
    ):
        hello.with_attribution(occlusion(hello, values=np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "encoder"}, "kind 'encoder' has no causes; it is one of cross, decoder"),
        ({"method": "../x"}, "method name '../x' is not possible"),
        ({"unit": "x" * 41}, "unit='x+' is not possible; it is text of 0 to 40 characters"),
        ({"values": np.zeros((2, 3), np.int32)}, "is int32 with 2 axes; float32 or float64 with 2 or 4 is needed"),
        ({"values": np.zeros((2, 1, 3, 4)), "layers": (0,)}, r"has 1 layer numbers for values of \(2, 1, 3, 4\)"),
        ({"values": np.zeros((1, 1, 3, 4)), "layers": (-1,)}, r"layers\[0\]=-1 is not possible"),
    ],
)
def test_what_cannot_be_an_attribution(hello: Trace, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        occlusion(hello, **changes)


def stored(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("member", "array", "words"),
    [
        ("insides/0/query.npy", None, r"insides\[0\] lacks 'query'"),
        ("insides/0/query.npy", np.zeros(5, np.int32), r"insides\[0\]: query is int32 \(5,\); \(d_k\), float32 or float64"),
        ("insides/0/query.npy", np.zeros((5, 1)), r"query is float64 \(5, 1\)"),
        ("insides/0/output.npy", np.zeros(9), "output has 9 d_v where others have"),
        ("insides/0/reasons.npy", np.zeros(99, np.uint8), r"reasons are uint8 \(99,\)"),
        ("insides/0/reasons.npy", np.full(7, 77, np.uint8), "reasons holds code 77"),
        ("insides/0/unheard_of.npy", np.zeros(5), "'unheard_of', which does not belong there"),
        ("insides/7/query.npy", np.zeros(5), "which does not belong there"),
        ("insides/0/run/query.npy", np.zeros(5), "which does not belong there"),
        ("attributions/occlusion_word_cross/values.npy", None, "lacks 'values'"),
        ("attributions/occlusion_word_cross/values.npy", np.zeros(3), "is float64 with 1 axes"),
        ("attributions/occlusion_word_cross/notes.npy", np.zeros(3), "which does not belong there"),
    ],
)
def test_arrays_of_results_that_do_not_fit_are_refused(
    hello: Trace, looked_into: Trace, member: str, array: np.ndarray | None, words: str
) -> None:
    parts = members_of(to_bytes(looked_into.with_attribution(occlusion(hello, notes={"n": 1}))))
    parts = {name: part for name, part in parts.items() if name != member}
    with pytest.raises(TraceError, match=words):
        load_bytes(zip_of({**parts, **({} if array is None else {member: stored(array)})}, zipfile.ZIP_STORED))


def test_an_inside_is_whole_or_refused(looked_into: Trace) -> None:
    fields = vars(looked_into.insides[0])
    with pytest.raises(TraceError, match=r"weights has \d d_|key where others have"):
        Inside(**{**fields, "weights": fields["weights"][:-1]})
