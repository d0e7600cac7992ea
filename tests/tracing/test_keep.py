"""What a run keeps: kinds, layers and precision are the same numbers as of the whole run, and change nothing else."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.recording_options import keywords_of

RUNS: list[dict[str, Any]] = [
    {},
    {"target": "olleh", "record": ("weights", "scores")},
    {"strategy": "beam", "beam_size": 3},
    {"edits": ["cross.2.4:3-5"]},
    {"mistake": "no-causal"},
    {"pad_to": 11},
]
KEPT: list[dict[str, Any]] = [
    {"kinds": ("cross",)},
    {"kinds": ("decoder", "encoder")},
    {"layers": (1,)},
    {"layers": (0, 1)},
    {"kinds": ("decoder", "cross"), "layers": [2, 0]},
    {"precision": "float16"},
    {"kinds": ("decoder",), "layers": (2,), "precision": "float16"},
]


def weights_of(trace: Trace, kind: Kind) -> np.ndarray:
    return trace.attentions[kind].weights


def expected(whole: np.ndarray, layers: tuple[int, ...] | None, precision: str) -> np.ndarray:
    return (whole if layers is None else whole[list(layers)]).astype(precision)


def check(part: Trace, whole: Trace, kept: dict[str, Any]) -> None:
    layers = tuple(sorted(kept["layers"])) if "layers" in kept else None
    precision, kinds = kept.get("precision", "float32"), kept.get("kinds", KINDS)
    assert part.kinds == tuple(kind for kind in KINDS if kind in kinds)
    assert part.precision == precision
    for kind in part.kinds:
        np.testing.assert_array_equal(weights_of(part, kind), expected(weights_of(whole, kind), layers, precision), strict=True)
        assert part.attentions[kind].layers == (layers or whole.attentions[kind].layers)
        if (scores := whole.attentions[kind].scores) is not None:
            np.testing.assert_array_equal(part.attentions[kind].scores, expected(scores, layers, "float32"), strict=True)
        reasons = whole.attentions[kind].reasons
        mine = part.attentions[kind].reasons
        by_head = np.broadcast_to(reasons, weights_of(whole, kind).shape)
        np.testing.assert_array_equal(
            np.broadcast_to(mine, weights_of(part, kind).shape), expected(by_head, layers, "uint8"), strict=True
        )
    same = ("source_tokens", "target_tokens", "output_tokens", "steps", "text", "finished", "alignment", "edits", "mistake")
    assert all(getattr(part, name) == getattr(whole, name) for name in same)


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_a_part_is_the_whole_run_with_less_in_it(tiny, run, kept):
    """Bitwise; half precision is the rounding of the same numbers."""
    check(tv.decode(tiny, "hello", **run, **kept), tv.decode(tiny, "hello", **run), kept)


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_every_hypothesis_of_a_search_keeps_the_same(tiny, kept):
    options: dict[str, Any] = {"strategy": "beam", "beam_size": 3}
    whole, part = tv.decode(tiny, "hello", **options), tv.decode(tiny, "hello", **options, **kept)
    assert part.search is not None
    assert whole.search is not None
    assert part.search.nodes == whole.search.nodes
    assert set(part.search.rows) == set(part.kinds) - {"encoder"}
    for i in range(len(whole.search.best)):
        check(part.hypothesis(i), whole.hypothesis(i), kept)


def test_a_batch_keeps_the_same_of_every_sentence(tiny):
    texts, kept = ["hello", "ab", "c d"], KEPT[3]
    for part, whole in zip(tv.decode(tiny, texts, **kept), tv.decode(tiny, texts), strict=True):
        check(part, whole, kept)
        for kind in part.kinds:
            assert weights_of(part, kind).base is None, "a view would keep the whole batch in memory"


def test_rows_of_half_precision_sum_to_1_within_its_rounding(tiny):
    """A weight is off by at most 2⁻¹² of itself, or by 2⁻²⁵; masked cells are exactly 0."""
    trace = tv.decode(tiny, "hello", pad_to=11, precision="float16")
    for kind in KINDS:
        weights = weights_of(trace, kind)
        sums = weights.astype(np.float64).sum(-1)
        assert np.abs(sums - 1).max() <= 2**-11 + weights.shape[-1] * 2**-24
        assert not weights[np.broadcast_to(trace.attentions[kind].mask, weights.shape)].any()


def test_what_is_kept_is_said(tiny):
    """In the record of its making, and nothing where everything is."""
    assert not {"kinds", "layers", "precision"} & tv.decode(tiny, "hello").made_by.keys()
    trace = tv.decode(tiny, "hello", kinds=["cross"], layers=[2, 0], precision="float16")
    assert {name: trace.made_by[name] for name in ("kinds", "layers", "precision")} == {
        "kinds": ["cross"],
        "layers": [0, 2],
        "precision": "float16",
    }
    assert trace.cross.layers == (0, 2)
    assert "float16" in repr(trace)


def layers_of(trace: Trace) -> dict[Kind, tuple[int, ...]]:
    return {kind: attention.layers for kind, attention in trace.attentions.items()}


@pytest.mark.parametrize("kept", [{}, *KEPT], ids=str)
def test_the_untrained_run_keeps_the_same(tiny, kept):
    trace = tv.decode(tiny, "hello", **kept)
    fresh = tv.untrained(tiny, trace)
    assert (layers_of(fresh), fresh.precision) == (layers_of(trace), trace.precision)
    grades = tv.analysis.alignment(trace, fresh)
    assert {(grade.kind, grade.layer) for grade in grades} == {(k, n) for k in trace.kinds for n in trace.attentions[k].layers}


def test_as_in_makes_the_same_choice_again(tiny):
    for kept in KEPT:
        trace = tv.decode(tiny, "hello", **kept)
        again = tv.decode(tiny, "ab", **keywords_of(trace, tiny.model.sizes))
        assert (layers_of(again), again.precision) == (layers_of(trace), trace.precision)


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ({"kinds": ("cross", "self")}, ["kinds", "'self'", "encoder, decoder, cross"]),
        ({"kinds": ()}, ["kinds", "at least one"]),
        ({"layers": ()}, ["layers", "at least one"]),
        ({"layers": (2,)}, ["layers", "2", "encoder", "0 to 1", "kinds="]),
        ({"layers": (3,), "kinds": ("cross",)}, ["layers", "3", "cross", "0 to 2"]),
        ({"layers": 1.5}, ["layers", "1.5"]),
        ({"precision": "float64"}, ["precision", "'float64'", "float32, float16"]),
    ],
    ids=str,
)
def test_impossible_choices_are_named(tiny, kept, words):
    with pytest.raises(OptionError) as caught:
        tv.decode(tiny, "hello", **kept)
    assert all(word in str(caught.value) for word in words), str(caught.value)
