"""Traces with half precision, some layers, some kinds: checked when made, written, read, and listed by true numbers."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.attentions import with_parts
from tests.trace.conftest import is_same, load_bytes, members_of
from transformer_viz.errors import OptionError, TraceError
from transformer_viz.trace.store import to_bytes

KEPT: list[dict[str, Any]] = [
    {"precision": "float16"},
    {"layers": (1,)},
    {"kinds": ("decoder", "cross"), "layers": (0, 2), "precision": "float16"},
    {"kinds": ("cross",), "layers": (2,)},
    {"kinds": ("encoder",)},
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_parts_come_back_to_the_bit(tiny, kept):
    trace = tv.decode(tiny, "hello", strategy="beam", **kept)
    assert is_same(load_bytes(to_bytes(trace)), trace)
    assert to_bytes(load_bytes(to_bytes(trace))) == to_bytes(trace)


def test_half_precision_halves_the_arrays(tiny):
    whole, half = (members_of(to_bytes(tv.decode(tiny, "hello", precision=p))) for p in ("float32", "float16"))
    for kind in ("encoder", "decoder", "cross"):
        name = f"attentions/{kind}/weights.npy"
        assert b"'<f2'" in half[name][:128]
        assert len(half[name]) - 128 == (len(whole[name]) - 128) // 2


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


def test_parts_that_do_not_fit_are_refused(tiny):
    beam = tv.decode(tiny, "hello", strategy="beam", beam_size=2)
    assert beam.search is not None
    assert beam.search.cross_rows is not None
    halved = dataclasses.replace(beam.search, cross_rows=beam.search.cross_rows.astype(np.float16))
    fewer = dataclasses.replace(beam.search, cross_rows=beam.search.cross_rows[:, 1:].copy())
    negative = dataclasses.replace(beam.search, cross_rows=-beam.search.cross_rows)
    half = beam.cross.weights.astype(np.float16)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"search": halved}, "rows of cross are float16"),
        ({"search": negative}, "cross_rows holds numbers that are not finite, or negative"),
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


def test_the_bytes_are_those_of_all_arrays(tiny):
    trace = tv.decode(tiny, "hello", strategy="beam", beam_size=2, kinds=("cross",))
    assert trace.search is not None
    assert trace.search.decoder_rows is None
    assert trace.search.cross_rows is not None
    arrays = (trace.cross.weights, trace.search.cross_rows, trace.cross.reasons)
    assert trace.nbytes == sum(array.nbytes for array in arrays)
