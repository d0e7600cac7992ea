"""Attention that is written in any way, in any layout, is seen as it was applied: equal to a plain computation in float64."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from tests.attention_ways import PAD, WAYS, Own, independent
from transformer_viz import trace_module
from transformer_viz.terms import Reason

SOURCE, TARGET = [5, 9, 3, 7, 6, PAD], [2, 8, 4, 6, 3, 7]
"""Equally long, so that shapes tell nothing."""
STACKS = {"both": (SOURCE, TARGET), "encoder": (SOURCE, None), "decoder": (None, TARGET)}


def built(way: str, stacks: str = "both", layout: str = "nested", **options: Any) -> Own:
    torch.manual_seed(len(way))
    model = Own(WAYS[way], stacks, layout, **options).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.requires_grad_(False)


@pytest.mark.parametrize("way", WAYS)
def test_every_weight_and_mask_is_that_of_a_plain_computation(way):
    for stacks, layout, batch_first in itertools.product(STACKS, ("nested", "flat", "shared"), (True, False)):
        case = (stacks, layout, batch_first)
        model, (source, target) = built(way, stacks, layout, batch_first=batch_first), STACKS[stacks]
        trace = trace_module(model, source, target, pad_id=PAD, logits=True)
        want, logits = independent(model, source, target)
        assert set(trace.kinds) == set(want), case
        padding = [int(Reason.PADDING) * (number == PAD) for number in SOURCE]
        masks = {kind: [padding] * 6 for kind in ("encoder", "cross")}
        masks["decoder"] = (np.triu(np.ones((6, 6), int), 1) * int(Reason.FUTURE)).tolist()
        for kind in trace.kinds:
            seen, weights = trace.attentions[kind], want[kind]
            np.testing.assert_allclose(seen.weights, weights.numpy(), atol=1e-6, err_msg=str((*case, kind)))
            assert seen.reasons.tolist() == masks[kind], (*case, kind)
            assert seen.layers == tuple(range(len(weights)))
        for step, row in zip(trace.steps, logits.softmax(-1), strict=target is not None):
            assert step.probability == pytest.approx(float(row[int(step.token)]), abs=1e-9)
