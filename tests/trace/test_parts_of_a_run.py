"""Traces with half precision, some layers, some kinds: checked when made, written, read, and listed by true numbers."""

import dataclasses
import json
import re
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.attentions import with_parts
from transformer_viz.errors import OptionError, TraceError
from transformer_viz.trace.frame import to_frame
from transformer_viz.trace.store import to_bytes

KEPT: list[dict[str, Any]] = [
    {"precision": "float16"},
    {"layers": (1,)},
    {"kinds": ("decoder", "cross"), "layers": (0, 2), "precision": "float16"},
    {"kinds": ("cross",), "layers": (2,)},
    {"kinds": ("encoder",)},
]


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_parts_come_back_to_the_bit(tiny, load, same, kept, strategy):
    trace = tv.decode(tiny, "hello", strategy=strategy, **kept)
    assert same(load(to_bytes(trace)), trace)
    assert to_bytes(load(to_bytes(trace))) == to_bytes(trace)


def test_only_what_needs_it_is_of_the_second_format(tiny, members):
    """A program that knows the first alone says that it is too old, instead of taking layer 3 for layer 1."""

    def format_of(**options: Any) -> int:
        return json.loads(members(to_bytes(tv.decode(tiny, "hello", **options)))["meta.json"])["format"]

    assert [format_of(), format_of(kinds=("cross",)), format_of(strategy="beam")] == [1, 1, 1]
    assert {format_of(**kept) for kept in KEPT[:4]} == {2}
    assert format_of(kinds=("cross",), strategy="beam") == 2


def test_half_precision_halves_the_arrays(tiny, members):
    whole, half = (members(to_bytes(tv.decode(tiny, "hello", precision=p))) for p in ("float32", "float16"))
    for kind in ("encoder", "decoder", "cross"):
        name = f"{kind}_attentions.npy"
        assert b"'<f2'" in half[name][:128]
        assert len(half[name]) - 128 == (len(whole[name]) - 128) // 2


@pytest.mark.parametrize("number", [1, 2])
def test_a_file_says_the_format_of_its_content(tiny, number, load, members, zipped):
    """The other one is refused, so that there is one way to write a run."""
    trace = tv.decode(tiny, "hello", layers=(1,)) if number == 1 else tv.decode(tiny, "hello")
    parts = members(to_bytes(trace))
    meta = json.loads(parts["meta.json"]) | {"format": number}
    with pytest.raises(TraceError, match=f"format {number}, .* format {3 - number}"):
        load(zipped({**parts, "meta.json": json.dumps(meta).encode()}))


@pytest.mark.parametrize(
    "layers",
    [
        {"cross": [1, 1]},
        {"cross": [2, 0]},
        {"cross": [0]},
        {"cross": [0, 1, 2]},
        {"cross": [-1, 2]},
        {"cross": [None, 2]},
        {"cross": [True, 2]},
        {"cross": [0.5, 2]},
        {"cross": [0, 10**4]},
        {"cross": "02"},
        {"self": [0, 2]},
        {"encoder": [0, 1]},
        [0, 2],
        None,
    ],
    ids=str,
)
def test_impossible_numbers_of_layers_are_refused(tiny, layers, load, members, zipped):
    parts = members(to_bytes(tv.decode(tiny, "hello", kinds=("cross",), layers=(0, 2))))
    meta = json.loads(parts["meta.json"]) | {"layers": layers}
    with pytest.raises(TraceError):
        load(zipped({**parts, "meta.json": json.dumps(meta).encode()}))


def test_a_file_may_name_layers_that_are_those_from_0_on(hello, load, members, zipped, same):
    parts = members(to_bytes(hello))
    meta = json.loads(parts["meta.json"]) | {"format": 2, "layers": {"cross": [0, 1, 2]}}
    assert same(load(zipped({**parts, "meta.json": json.dumps(meta).encode()})), hello)


def test_layers_are_asked_for_by_their_numbers(tiny):
    trace = tv.decode(tiny, "hello", kinds=("decoder", "cross"), layers=(0, 2))
    assert trace.cross.layers == (0, 2)
    assert [trace.cross.layer_index(number) for number in (0, 2)] == [0, 1]
    wrong: tuple[Any, ...] = (1, 3, -1, True, "0", None, 0.0)
    for number in wrong:
        with pytest.raises(OptionError, match="one of 0, 2"):
            trace.cross.layer_index(number)
    with pytest.raises(OptionError, match="from 0 to 2"):
        tv.decode(tiny, "hello").cross.layer_index(3)


def test_the_frame_has_true_numbers(tiny):
    """Row by row against the frame of the whole run."""
    whole = tv.decode(tiny, "hello").to_frame()
    part = tv.decode(tiny, "hello", kinds=("decoder", "cross"), layers=(0, 2)).to_frame()
    want = whole[(whole.kind != "encoder") & whole.layer.isin([0, 2])].reset_index(drop=True)
    assert part.equals(want)
    half = tv.decode(tiny, "hello", precision="float16").to_frame()
    assert half.weight.dtype == np.float32
    assert np.abs(half.weight - whole.weight).max() <= 2**-12


def test_a_piece_of_the_frame(tiny):
    trace = tv.decode(tiny, "hello", layers=(1,), kinds=("decoder", "cross"), edits=["cross.2.3:2-4"])
    frame = trace.to_frame()
    here = frame[(frame.kind == "cross") & (frame["head"] == 2)].reset_index(drop=True)
    assert to_frame(trace, "cross", 1, 2).equals(here)
    assert here.masked.sum() == 1
    assert to_frame(trace, "cross").equals(frame[frame.kind == "cross"].reset_index(drop=True))
    with pytest.raises(OptionError, match="one of 1"):
        to_frame(trace, "cross", 0)


def test_parts_that_do_not_fit_are_refused(tiny):
    beam = tv.decode(tiny, "hello", strategy="beam", beam_size=2)
    assert beam.search is not None
    assert beam.search.cross_rows is not None
    halved = dataclasses.replace(beam.search, cross_rows=beam.search.cross_rows.astype(np.float16))
    fewer = dataclasses.replace(beam.search, cross_rows=beam.search.cross_rows[:, 1:].copy())
    negative = -beam.search.cross_rows
    half = beam.cross.weights.astype(np.float16)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"search": halved}, "rows of cross are float16"),
        ({"search": fewer}, "rows of cross are float32 with 2 layers"),
        ({"search": dataclasses.replace(beam.search, decoder_rows=None)}, "rows of cross in a run with"),
        (
            {"search": None, "attentions": with_parts(beam, "cross", weights=half)},
            "float16, float32",
        ),
        ({"search": None, "attentions": with_parts(beam, "cross", layers=(0, 1))}, "3 ascending numbers"),
        ({"search": None, "attentions": with_parts(beam, "cross", layers=(0, 2, 1))}, "3 ascending numbers"),
    ]
    for change, words in changes:
        with pytest.raises(TraceError, match=re.escape(words)):
            dataclasses.replace(beam, **change)
    with pytest.raises(TraceError, match="negative"):
        dataclasses.replace(beam.search, cross_rows=negative)


def test_the_bytes_are_those_of_all_arrays(tiny):
    trace = tv.decode(tiny, "hello", strategy="beam", beam_size=2, kinds=("cross",))
    assert trace.search is not None
    assert trace.search.decoder_rows is None
    assert trace.search.cross_rows is not None
    arrays = (trace.cross.weights, trace.search.cross_rows, trace.cross.reasons)
    assert trace.nbytes == sum(array.nbytes for array in arrays)
