"""What a run keeps of its attributions, in a file too; and that a file is not believed."""

import json
import zipfile
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import TraceError
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.groups import Group


def of(trace, name="occlusion", **changes):
    shape = (trace.n_steps, len(trace.source_tokens))
    values = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(shape)
    values[0, 0] = np.nan
    given: dict[str, Any] = {"method": name, "kind": "cross", "values": values, "mode": "word", "unit": "nats"}
    return Attribution(**{**given, **changes})


def by_head(trace):
    return of(trace, "value_weighted", values=trace.cross.weights * 2, mode=None, unit="", layers=(0, 1, 2))


def test_a_run_and_its_file_keep_results(hello, tmp_path):
    kept = hello.with_attribution(of(hello)).with_attribution(by_head(hello))
    assert hello.attributions == {} and list(kept.attributions) == ["occlusion_word_cross", "value_weighted_cross"]
    kept.save(tmp_path / "run.npz")
    loaded = tv.load_trace(tmp_path / "run.npz").attributions
    for name, result in kept.attributions.items():
        again = loaded[name]
        assert np.array_equal(again.values, result.values, equal_nan=True) and again.values.dtype == result.values.dtype
        assert vars(again) | {"values": None} == vars(result) | {"values": None}
    assert tv.diff(kept, tv.load_trace(tmp_path / "run.npz")).equal


def test_one_of_the_same_name_gives_way(hello):
    first, second = of(hello), of(hello, values=np.zeros((hello.n_steps, len(hello.source_tokens))))
    kept = hello.with_attribution(first).with_attribution(second).attributions
    assert list(kept) == ["occlusion_word_cross"] and not kept["occlusion_word_cross"].values.any()


def test_what_is_derived_from_a_run_does_not_take_them_along(hello):
    from transformer_viz.trace.covered import covered

    kept = hello.with_attribution(of(hello))
    assert covered(kept, 1).attributions == {} and tv.by_words(kept).attributions == {}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"kind": "encoder"}, r"kind 'encoder' has no causes; it is one of cross, decoder"),
        ({"method": "../x"}, r"method name '../x' is not possible"),
        ({"unit": "x" * 41}, r"unit 'x+' is no short word"),
        ({"values": np.zeros((2, 3), np.int32)}, r"is int32 with 2 axes; float32 or float64 with 2 or 4 is needed"),
        ({"values": np.zeros((2, 1, 3, 4)), "layers": (0,)}, r"has 1 layer numbers for values of \(2, 1, 3, 4\)"),
        ({"values": np.zeros((1, 1, 3, 4)), "layers": (-1,)}, r"numbers from 0 are needed"),
    ],
)
def test_what_cannot_be_a_result(hello, changes, match):
    with pytest.raises(TraceError, match=match):
        of(hello, **changes)


def test_a_result_of_another_run_is_not_kept(hello):
    with pytest.raises(
        TraceError, match=r"occlusion_word_cross is \(2, 3\) for 5 query and 7 key tokens; it is of another run"
    ):
        hello.with_attribution(of(hello, values=np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"kind": "encoder"}, "has no causes"),
        ({"kind": 3}, r"kind of occlusion_word_cross is 3, which is of another type"),
        ({"kind": "decoder"}, "says that it is occlusion_word_decoder"),
        ({"method": "<script>"}, "method name '<script>' is not possible"),
        ({"layers": [1]}, "has 1 layer numbers"),
        ({"layers": None}, "layers of occlusion_word_cross is None"),
        ({"layers": ["a"]}, "numbers from 0 are needed"),
        ({"notes": []}, r"notes of occlusion_word_cross is \[\]"),
        ({"more": 1}, "are needed"),
    ],
)
def test_a_file_is_not_believed(hello, tmp_path, said, match):
    path = tmp_path / "run.npz"
    hello.with_attribution(of(hello)).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    [name] = [name for name in members if name.endswith(".json")]
    meta = json.loads(members[name])
    meta["groups"]["attribution"]["occlusion_word_cross"] |= said
    members[name] = json.dumps(meta).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in members.items():
            archive.writestr(each, data)
    with pytest.raises(TraceError, match=match):
        tv.load_trace(path)


def test_arrays_without_notes_are_refused(hello):
    group = hello.with_attribution(of(hello)).groups["attribution"]
    with pytest.raises(TraceError, match="each array has notes"):
        hello.with_group("attribution", Group(group.arrays, {}))
    with pytest.raises(TraceError, match=r"notes of occlusion_word_cross are \['x'\]"):
        hello.with_group("attribution", Group(group.arrays, {"occlusion_word_cross": ["x"]}))
