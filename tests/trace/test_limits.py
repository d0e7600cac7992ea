"""What is sound but too large for a page is refused with its number, before anything is drawn of it."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.errors import TraceError
from transformer_viz.trace import limits
from transformer_viz.trace.search import Search
from transformer_viz.trace.store import load_trace, to_bytes


def by_arrays(n: int = 3, layers: int = 1, heads: int = 1, word: str = "a", **fields: Any) -> Trace:
    weights = np.full((layers, heads, 1, n), 1 / n)
    return Trace.from_arrays(cross=weights, source_tokens=[word] * n, target_tokens=["x"], output_tokens=["x"], **fields)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (by_arrays(513), "513 source tokens; at most 512"),
        (by_arrays(500, word="a" * 33), "16,500 letters in its tokens; at most 16,000"),
        (by_arrays(layers=33, heads=32), "1,056 heads; at most 1,024"),
        (
            by_arrays(candidates=[[("x", 0.5), ("y" * 1_000_000, 0.25)]]),
            "1,000,001 letters in its candidates; at most 1,000,000",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_too_large(trace: Trace, words: str) -> None:
    with pytest.raises(TraceError, match=r"^big\.npz is a trace, but too large to draw here: " + words):
        limits.check(trace, "big.npz")


def test_at_the_limit() -> None:
    limits.check(by_arrays(512, word="a" * 31), "")
    limits.check(by_arrays(layers=32, heads=32), "")


def searched(tiny, **node: Any) -> Trace:
    """A beam search whose last node says something else."""
    trace = decode(tiny, "hello", strategy="beam", beam_size=3)
    search = trace.search
    assert isinstance(search, Search)
    nodes = (*search.nodes[:-1], dataclasses.replace(search.nodes[-1], **node))
    return dataclasses.replace(trace, search=dataclasses.replace(search, nodes=nodes))


def test_a_rank_of_a_billion(tiny) -> None:
    """The tree would have as many rows: gigabytes of ticks. The file itself is sound."""
    trace = load_trace(to_bytes(searched(tiny, rank=10**9 - 1)))
    with pytest.raises(TraceError, match="1,000,000,000 ranks of its search; at most 1,024"):
        limits.check(trace, "")


def test_a_text_that_every_pruned_node_would_repeat(tiny) -> None:
    with pytest.raises(TraceError, match="letters in its tree; at most 10,000,000"):
        limits.check(searched(tiny, text="y" * 1_000_000), "")


def test_the_widest_search_of_the_longest_text_is_far_below() -> None:
    checkpoint = load_checkpoint("reverse", device="cpu")
    trace = decode(checkpoint, "a" * 32, strategy="beam", beam_size=64)
    limits.check(trace, "")
    assert trace.search is not None
    assert 2 * len(trace.search.nodes) < limits.MOST_NODES
