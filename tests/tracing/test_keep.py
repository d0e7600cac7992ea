"""What a run keeps: kinds, layers and precision are the same numbers as of the whole run, and change nothing else."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
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
def test_a_part_is_the_whole_run_with_less_in_it(tiny, run):
    """Bitwise; half precision is the rounding of the same numbers. Also of every hypothesis of a search."""
    whole = tv.decode(tiny, "hello", **run)
    for kept in KEPT:
        part = tv.decode(tiny, "hello", **run, **kept)
        check(part, whole, kept)
        if whole.search is not None and part.search is not None:
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


def test_what_is_kept_is_said(tiny):
    """In the record of its making, and nothing where everything is."""
    assert not {"kinds", "layers", "precision"} & tv.decode(tiny, "hello").made_by.keys()
    trace = tv.decode(tiny, "hello", kinds=["cross"], layers=[2, 0], precision="float16")
    said = {name: trace.made_by[name] for name in ("kinds", "layers", "precision")}
    assert said == {"kinds": ["cross"], "layers": [0, 2], "precision": "float16"}
    assert "float16" in repr(trace)


def choice(trace: Trace) -> tuple[dict[Kind, tuple[int, ...]], str]:
    return {kind: attention.layers for kind, attention in trace.attentions.items()}, trace.precision


@pytest.mark.parametrize("kept", [{}, *KEPT], ids=str)
def test_the_same_choice_is_made_again_for_an_untrained_run_and_another_text(tiny, kept):
    trace = tv.decode(tiny, "hello", **kept)
    fresh = tv.decode_untrained(tiny, trace)
    assert choice(fresh) == choice(tv.decode(tiny, "ab", **keywords_of(trace, tiny.network.sizes))) == choice(trace)
    grades = tv.analysis.alignment(trace, fresh)
    assert {(grade.kind, grade.layer) for grade in grades} == {(k, n) for k in trace.kinds for n in trace.attentions[k].layers}
