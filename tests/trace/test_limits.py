"""What is sound but too large for a page is refused with its number, before anything is drawn of it."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.trace import planted
from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.errors import TraceTooLargeHere
from transformer_viz.trace import limits
from transformer_viz.trace.steps import Fill
from transformer_viz.trace.store import load_trace, to_bytes


def by_arrays(n: int = 3, layers: int = 1, heads: int = 1, word: str = "a", **fields: Any) -> Trace:
    weights = np.full((layers, heads, 1, n), 1 / n)
    return Trace.from_arrays(cross=weights, source_tokens=[word] * n, target_tokens=["x"], output_tokens=["x"], **fields)


def searched(**node: Any) -> Trace:
    """A beam search whose last node says something else."""
    trace = planted.search((0,))
    assert trace.search is not None
    nodes = (*trace.search.nodes[:-1], dataclasses.replace(trace.search.nodes[-1], **node))
    return dataclasses.replace(trace, search=dataclasses.replace(trace.search, nodes=nodes))


def opened_by(token: str) -> Trace:
    trace = planted.search((0,))
    assert trace.search is not None
    return dataclasses.replace(trace, search=dataclasses.replace(trace.search, opening=(token,)))


FILL = Fill(place=0, candidates=(("a" * 1_000_001, 0.5),))


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (by_arrays(513), "513 source tokens; at most 512"),
        (by_arrays(500, word="a" * 33), "16,500 letters in its tokens; at most 16,000"),
        # The opening's labels are drawn with every hypothesis.
        (opened_by("a" * 20_000), ".* letters in its tokens"),
        (by_arrays(layers=33, heads=32), "1,056 heads; at most 1,024"),
        (by_arrays(candidates=[[("x", 0.5), ("y" * 1_000_000, 0.25)]]), "1,000,001 letters in its candidates; at most"),
        (dataclasses.replace(planted.filled(), fills=(FILL,)), ".* letters in its candidates"),
        # The tree would have as many rows: gigabytes of ticks.
        (searched(rank=10**9 - 1), "1,000,000,000 ranks of its search; at most 1,024"),
        (searched(text="y" * 1_000_000), ".* letters in its tree; at most 10,000,000"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_too_large(trace: Trace, words: str) -> None:
    """The file itself is sound."""
    with pytest.raises(TraceTooLargeHere, match=r"^big\.npz is a trace, but too large to draw here: " + words):
        limits.check(load_trace(to_bytes(trace)), "big.npz")


def test_at_the_limit() -> None:
    limits.check(by_arrays(512, word="a" * 31), "")
    limits.check(by_arrays(layers=32, heads=32), "")


def test_the_widest_search_of_the_longest_text_is_far_below() -> None:
    checkpoint = load_checkpoint("reverse", device="cpu")
    trace = decode(checkpoint, "a" * 32, strategy="beam", beam_size=64)
    limits.check(trace, "")
    assert trace.search is not None
    assert 2 * len(trace.search.nodes) < limits.MOST_NODES
