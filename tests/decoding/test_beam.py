"""Beam search through `decode`: the attention of every branch against teacher forcing. `test_reader` has the search itself."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.tracing.test_decode import assert_trace_is_true
from transformer_viz.errors import OptionError
from transformer_viz.trace.search import Search


def search_of(trace) -> Search:
    assert trace.search is not None
    return trace.search


def crossings(search) -> int:
    """At how many steps the live hypotheses do not continue those of the step before in their order."""
    found = 0
    for step in range(1, 1 + max(node.step for node in search.nodes)):
        kept = [node for node in search.nodes if node.step == step and node.state != "pruned"]
        parents = [search.nodes[node.parent].rank for node in kept]
        found += parents != sorted(set(parents))
    return found


@pytest.fixture(scope="module")
def crossing(make_model, make_tiny):
    """A random checkpoint whose beams cross again and again."""
    for seed in range(100):
        checkpoint = make_tiny(make_model(seed))
        trace = tv.decode(checkpoint, "hello", strategy="beam", beam_size=4)
        lengths = {len(trace.hypothesis(i).steps) for i in range(len(search_of(trace).best))}
        if crossings(search_of(trace)) >= 4 and len(lengths) > 1:
            return checkpoint
    raise AssertionError("no seed makes beams cross")


def test_every_branch_owns_its_attention(crossing):
    trace = tv.decode(crossing, "hello", strategy="beam", beam_size=4)
    for number in range(len(search_of(trace).nodes)):
        assert_trace_is_true(crossing, trace.at_node(number))


def test_hypotheses_are_traces_best_first(crossing, tmp_path):
    trace = tv.decode(crossing, "hello", strategy="beam", beam_size=4, n_best=3)
    scores = [search_of(trace).nodes[number].score for number in search_of(trace).best]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3
    assert trace.hypothesis(0).output_tokens == trace.output_tokens
    assert trace.hypothesis(1).output_tokens != trace.output_tokens
    assert trace.hypothesis(2).search is None
    tv.save_trace(trace, tmp_path / "t.npz")
    again = tv.load_trace(tmp_path / "t.npz")
    assert search_of(again).nodes == search_of(trace).nodes
    for i in range(3):
        a, b = trace.hypothesis(i), again.hypothesis(i)
        assert (a.text, a.steps, a.finished) == (b.text, b.steps, b.finished)
        np.testing.assert_array_equal(a.decoder.weights, b.decoder.weights)
        np.testing.assert_array_equal(a.cross.weights, b.cross.weights)
    with pytest.raises(OptionError, match="0 to 2"):
        trace.hypothesis(3)
    with pytest.raises(OptionError, match="no beam search"):
        trace.hypothesis(0).hypothesis(0)


def test_a_padded_batch_searches_as_its_sentences_alone(crossing):
    texts = ["hello", "a", "cad b"]
    for text, trace in zip(texts, tv.decode(crossing, texts, strategy="beam", beam_size=3), strict=True):
        alone = tv.decode(crossing, text, strategy="beam", beam_size=3)
        assert [node.token for node in search_of(trace).nodes] == [node.token for node in search_of(alone).nodes]
        for i in range(3):
            a, b = trace.hypothesis(i).cross.weights, alone.hypothesis(i).cross.weights
            np.testing.assert_allclose(a, b, atol=1e-6)
    kept = tv.decode(crossing, "a", strategy="beam", beam_size=3, pad_to=6)
    assert kept.source_tokens[3:] == ("<pad>",) * 3
    assert (kept.cross.reasons[:, 3:] == 1).all()
    assert not kept.cross.weights[..., 3:].any()


def test_nothing_runs_past_the_limit(crossing):
    for strategy in ("greedy", "beam", "sample"):
        for limit in (1, 2, 5):
            trace = tv.decode(crossing, "hello", strategy=strategy, max_length=limit, ban=["<end>"])
            assert len(trace.steps) == limit
            assert trace.finished == "length"


def test_prefix_and_ban(crossing):
    ways: list[dict[str, Any]] = [{}, {"strategy": "beam"}, {"strategy": "sample", "seed": 5}]
    for options in ways:
        trace = tv.decode(crossing, "hello", prefix=["c", "a"], ban=["e", "l"], **options)
        assert trace.output_tokens[:2] == ("c", "a")
        assert not {"e", "l"} & set(trace.output_tokens)
        assert_trace_is_true(crossing, trace)
