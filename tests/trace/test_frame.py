"""The data frame against a loop over every cell."""

from collections.abc import Callable

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.addresses import AttentionAddress, HeadAddress
from transformer_viz.errors import OptionError
from transformer_viz.trace.trace import Trace

COLUMNS = ["kind", "layer", "head", "query", "query_token", "key", "key_token", "weight", "masked"]


def by_hand(trace: Trace) -> list[tuple]:
    rows = []
    for kind, found in trace.attentions.items():
        for layer, head, q, k in np.ndindex(found.weights.shape):
            reasons = found.reasons if found.reasons.ndim == 2 else found.reasons[layer, head]
            names = (kind, found.layers[layer], head, q, found.queries[q], k, found.keys[k])
            rows.append((*names, float(found.weights[layer, head, q, k]), bool(reasons[q, k])))
    return rows


RUNS: dict[str, Callable[[tv.Checkpoint], Trace]] = {
    "whole": lambda tiny: tv.decode(tiny, "he", max_length=4),
    "padded": lambda tiny: tv.decode(tiny, "he", max_length=4, pad_to=6),
    "masks by head": lambda tiny: tv.decode(tiny, "he", max_length=4, edits=["cross.2.3:2-4"]),
    "some layers in half precision": lambda tiny: tv.decode(tiny, "he", kinds=("cross",), layers=(0, 2), precision="float16"),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_row_is_the_cell_that_it_names(tiny, name):
    """Guards swapped axes, tokens of the wrong side, masks of another cell, and numbers of other layers."""
    trace = RUNS[name](tiny)
    frame = trace.to_frame()
    assert list(frame.columns) == COLUMNS
    assert list(frame.itertuples(index=False, name=None)) == by_hand(trace)
    assert (frame["weight"].dtype, frame["masked"].dtype) == (np.float32, bool)
    assert bool((frame.loc[frame["masked"], "weight"] == 0).all())


def test_the_rows_of_one_head_or_one_layer_are_those_of_the_whole_frame(tiny):
    """Made without the others: those of a long run would be gigabytes."""
    for trace in (RUNS["masks by head"](tiny), RUNS["some layers in half precision"](tiny)):
        whole = trace.to_frame()
        for kind in trace.kinds:
            layer = trace.attentions[kind].layers[1]
            of_layer = whole[(whole.kind == kind) & (whole.layer == layer)].reset_index(drop=True)
            assert trace.to_frame(AttentionAddress(kind, layer)).equals(of_layer)
            assert trace.to_frame(HeadAddress(kind, layer, 3)).equals(of_layer[of_layer["head"] == 3].reset_index(drop=True))
            assert trace.to_frame(kind).equals(whole[whole.kind == kind].reset_index(drop=True))
    with pytest.raises(OptionError, match="layers 1, 3"):
        trace.to_frame("cross.2")
    with pytest.raises(OptionError, match="this run has no encoder attention"):
        trace.to_frame("encoder")
