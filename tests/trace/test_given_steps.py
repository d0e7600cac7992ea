"""`Trace.from_arrays` with outputs: probabilities and candidates that somebody has, and only those."""

import math
from typing import Any

import numpy as np
import pytest

from transformer_viz import Trace, load_trace
from transformer_viz.commands.decode import summary
from transformer_viz.errors import TraceError
from transformer_viz.trace.store import to_bytes

OUTPUT = ["b", "<i>", "b"]
CANDIDATES = [[("b", 0.5), ("c", 0.25)], [("c", 0.75), ("<i>", 0.125)], [("c", 0.5), ("d", 0.25)]]
PROBABILITIES = [0.5, 0.125, 0.0625]


def build(**fields):
    weights = np.full((2, 5, 3, 7), 1 / 7)
    tokens: dict[str, Any] = {"source_tokens": list("abcdefg"), "target_tokens": ["<s>", "b", "<i>"], "output_tokens": OUTPUT}
    return Trace.from_arrays(cross=weights, **{**tokens, **fields})


def test_outputs_alone_have_no_probabilities():
    trace = build()
    assert trace.output_tokens == tuple(OUTPUT)
    assert trace.steps == ()
    assert trace.text == "b <i> b"
    assert build(text="b<i>b", source="the source").text == "b<i>b"
    assert summary(trace)["steps"] == []


def test_probabilities_and_candidates():
    """The rank is the place among the candidates, and unknown where the token is not among them."""
    steps = build(probabilities=np.array(PROBABILITIES, np.float32), candidates=CANDIDATES).steps
    assert [(s.token, s.probability, s.rank) for s in steps] == [("b", 0.5, 0), ("<i>", 0.125, 1), ("b", 0.0625, None)]
    assert [s.log_probability for s in steps] == [math.log(p) for p in PROBABILITIES]
    assert steps[1].candidates == (("c", 0.75), ("<i>", 0.125))


def test_either_alone():
    assert [s.candidates for s in build(probabilities=PROBABILITIES).steps] == [(), (), ()]
    assert [s.rank for s in build(probabilities=PROBABILITIES).steps] == [None] * 3
    with_all = [*CANDIDATES[:2], [("d", 0.5), ("b", 0.25)]]
    assert [s.probability for s in build(candidates=with_all).steps] == [0.5, 0.125, 0.25]


@pytest.mark.parametrize(
    "fields", [{}, {"probabilities": [0, 0.5, 1]}, {"probabilities": PROBABILITIES, "candidates": CANDIDATES}]
)
def test_files_hold_them(fields, same):
    trace = build(**fields, alignment=[3, None, 6], made_by={"model": "théirs"})
    assert same(load_trace(to_bytes(trace)), trace)
    assert trace.made_by == {"strategy": "from arrays", "model": "théirs"}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"probabilities": [0.5]}, ["probabilities has 1", "3 output tokens"]),
        ({"probabilities": [0.5, 2, 0.5]}, ["probabilities[1]", "'2'"]),
        ({"probabilities": [0.5, math.nan, 0.5]}, ["probabilities[1]", "nan"]),
        ({"probabilities": [0.5, "x", 0.5]}, ["probabilities[1]", "'x'"]),
        ({"candidates": CANDIDATES[:1]}, ["candidates has 1"]),
        ({"candidates": CANDIDATES}, ["step 2", "'b'", "not among its candidates"]),
        ({"candidates": [3, 3, 3]}, ["candidates[0]", "(token, probability)"]),
        ({"candidates": [[("b", 0.1), ("c", 0.2)]] * 3}, ["candidates[0]", "not in order"]),
        ({"candidates": [[("b", 0.8), ("c", 0.7)]] * 3}, ["candidates[0]", "sums to 1.5"]),
        ({"candidates": [[("b", 0.5), ("b", 0.5)]] * 3}, ["candidates[0]", "twice"]),
        ({"candidates": [[(3, 0.5)]] * 3}, ["candidates[0]", "not text"]),
        ({"candidates": [[("b", 0.5)]] * 3, "probabilities": [0.4] * 3}, ["step 0", "0.4", "0.5"]),
    ],
)
def test_what_does_not_fit_is_named(fields, named):
    with pytest.raises(TraceError) as caught:
        build(**fields)
    for part in named:
        assert part in str(caught.value), str(caught.value)
