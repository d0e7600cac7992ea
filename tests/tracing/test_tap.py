"""A tap of one's own: it sees and changes what `decode` computes, and what is no tap is refused."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import OptionError

OFF = [f"cross.{layer}.{head}:zero" for layer in (1, 2, 3) for head in range(1, 6)]


@pytest.mark.parametrize("options", [{}, {"target": "abc"}, {"strategy": "sample", "seed": 3}])
def test_a_tap_that_makes_zeros_of_heads_is_the_edit(tiny: tv.Checkpoint, options: dict[str, Any]) -> None:
    off = tv.ReplaceTap("heads", lambda site, value: value * 0 if site.kind == "cross" else value)
    by_tap, by_edit = tv.decode(tiny, "hello", tap=off, **options), tv.decode(tiny, "hello", edits=OFF, **options)
    assert by_tap.output_tokens == by_edit.output_tokens
    np.testing.assert_allclose(by_tap.decoder.weights, by_edit.decoder.weights, atol=1e-6)


def test_a_trace_has_what_a_tap_returns_in_a_search_too(tiny: tv.Checkpoint) -> None:
    first = tv.ReplaceTap("weights", lambda site, value: (value * 0).index_fill(-1, value.new_zeros(1).long(), 1))
    for strategy in ("greedy", "beam"):
        trace = tv.decode(tiny, "hello", strategy=strategy, tap=first, max_length=4)
        assert all((trace.attentions[kind].weights[..., 0] == 1).all() for kind in trace.kinds)


def test_a_tap_that_records_sees_every_attention_and_changes_nothing(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    tap = tv.RecordTap("weights", "added")
    assert tv.diff(tv.decode(tiny, "hello", tap=tap), hello).equal
    assert len(tap.kept) == sum(attention.n_layers for attention in hello.attentions.values())
    np.testing.assert_allclose(tap.kept[tv.Site("cross", 0)]["weights"][0, :, 0], hello.cross.weights[0, :, -1], atol=1e-6)


@pytest.mark.parametrize("wrong", [print, "heads", tv.RecordTap("head"), 3])  # ty: ignore[invalid-argument-type]
def test_what_is_no_tap_is_refused(tiny: tv.Checkpoint, wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"^tap"):
        tv.decode(tiny, "hello", tap=wrong)
