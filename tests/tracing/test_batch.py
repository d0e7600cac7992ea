"""Padded batches: they are `decode` with the padding kept, and a sentence in one is what it is alone."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import InputError
from transformer_viz.vocabulary import PAD

SOURCES = ["hello", "ab", "c d"]


def test_every_source_is_padded_to_the_longest(tiny: tv.Checkpoint) -> None:
    batch = tv.decode_batch(tiny, SOURCES)
    assert {len(trace.source_tokens) for trace in batch} == {7}
    assert [trace.source_tokens.count(PAD) for trace in batch] == [0, 3, 2]
    for source, trace in zip(SOURCES, batch, strict=True):
        alone = tv.decode(tiny, source)
        assert trace.output_tokens == alone.output_tokens
        n = len(alone.source_tokens)
        np.testing.assert_allclose(trace.cross.weights[..., :n], alone.cross.weights, atol=1e-6)


def test_without_a_target_it_is_what_the_sound_model_writes(tiny: tv.Checkpoint) -> None:
    """Also where a change would write something else: it is judged on the same words."""
    written = tv.decode_batch(tiny, SOURCES)
    changes: list[dict[str, Any]] = [{}, {"edits": ["cross:off", "decoder:1-1"]}, {"mistake": "no-causal"}]
    for change in changes:
        read = tv.decode_forced(tiny, SOURCES, [None, "ba", None], **change)
        n_steps = max(len(written[0].output_tokens), len(written[2].output_tokens), len("ba") + 1)
        assert {len(trace.steps) for trace in read} == {n_steps}
        for place in (0, 2):
            want = written[place].target_tokens
            assert read[place].target_tokens[: len(want)] == want
            assert set(read[place].target_tokens[len(want) :]) <= {PAD}
        assert read[1].target_tokens[:3] == ("<start>", "b", "a")
        assert all(attention.scores is not None for trace in read for attention in trace.attentions.values())


def test_what_cannot_be_is_said(tiny: tv.Checkpoint) -> None:
    with pytest.raises(InputError, match="3 sources and 1 targets"):
        tv.decode_forced(tiny, SOURCES, ["ba"])
    for run in (tv.decode_batch, tv.decode_forced):
        with pytest.raises(InputError, match="no source text"):
            run(tiny, [])
        with pytest.raises(InputError, match="sources is one text, 'abc'; a list of texts is needed"):
            run(tiny, "abc")


def test_the_softmax_of_a_head_is_what_the_run_did(tiny: tv.Checkpoint) -> None:
    trace = tv.decode_forced(tiny, SOURCES)[1]
    found = tv.analysis.head_softmax(trace, "decoder.3.5")
    np.testing.assert_allclose(found.weights, trace.decoder.weights[2, 4], atol=1e-6)
    with pytest.raises(tv.TransformerVizError, match="scores"):
        tv.analysis.head_softmax(tv.decode(tiny, "ab"), "cross.1.1")
