"""The data frame against a loop over every cell."""

from typing import Any

import numpy as np

from tests.attentions import with_parts

COLUMNS = ["kind", "layer", "head", "query", "query_token", "key", "key_token", "weight", "masked"]


def by_hand(trace) -> list[tuple]:
    rows = []
    for kind in trace.kinds:
        weights = trace.attentions[kind].weights
        for layer in range(weights.shape[0]):
            for head in range(weights.shape[1]):
                for q, query in enumerate(trace.attentions[kind].queries):
                    for k, key in enumerate(trace.attentions[kind].keys):
                        reasons = trace.attentions[kind].reasons
                        masked = bool((reasons if reasons.ndim == 2 else reasons[layer, head])[q, k])
                        rows.append((kind, layer, head, q, query, k, key, float(weights[layer, head, q, k]), masked))
    return rows


def test_every_row_is_the_cell_that_it_names(hello):
    """Guards swapped axes, tokens of the wrong side, and masks of another cell."""
    frame = hello.to_frame()
    assert list(frame.columns) == COLUMNS
    assert list(frame.itertuples(index=False, name=None)) == by_hand(hello)
    assert frame["weight"].dtype == np.float32
    assert frame["masked"].dtype == bool
    assert bool((frame.loc[frame["masked"], "weight"] == 0).all())
    n = len(hello.steps)
    assert len(frame) == 5 * (2 * 7 * 7 + 3 * n * n + 3 * n * 7)


def test_padding_and_masks_by_head_are_rows_too(tiny):
    import dataclasses

    from transformer_viz import decode

    trace: Any = decode(tiny, "hello", pad_to=9)
    reasons = np.broadcast_to(trace.cross.reasons, trace.cross.weights.shape).copy()
    reasons[2, 1, 0, 3] = 4
    trace = dataclasses.replace(trace, attentions=with_parts(trace, "cross", reasons=reasons))
    assert list(trace.to_frame().itertuples(index=False, name=None)) == by_hand(trace)


def test_the_rows_of_one_head_or_one_layer_are_those_of_the_whole_frame(hello):
    """Made without the others: those of a long run would be gigabytes."""
    whole = hello.to_frame()
    for kind in hello.kinds:
        of_layer = whole[(whole.kind == kind) & (whole.layer == 1)].reset_index(drop=True)
        assert hello.to_frame(kind, 1).equals(of_layer)
        assert hello.to_frame(kind, 1, 3).equals(of_layer[of_layer["head"] == 3].reset_index(drop=True))
