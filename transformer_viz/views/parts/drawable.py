"""Whether a sound trace is small enough for a page: every label and every step's sentence goes to the browser.

What a checkpoint of this program writes is far below these limits; a file from elsewhere may say anything.
"""

import math
from collections.abc import Iterable, Iterator

from transformer_viz.errors import TraceError
from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Candidate, Trace

MOST_TOKENS, MOST_LETTERS, MOST_HEADS = 512, 16_000, 1024
"""Tokens of a side, letters in them all, and heads of a kind."""
MOST_CANDIDATES = 1_000_000
"""Letters in all candidates together."""
MOST_NODES, MOST_RANKS, MOST_IN_TREE = 10_000, 1024, 10_000_000
"""Nodes and ranks of a search, and letters if each node had its longest text: a pruned one also names who was kept."""


def check(trace: Trace, file_name: str) -> None:
    """Passes over a trace that can be drawn.

    Raises:
        TraceError: it is too large; the message says in what, and how much is possible.
    """
    for what, given, most in _sizes(trace):
        if given > most:
            raise TraceError(
                f"{file_name} is a trace, but too large to draw here: {given:,} {what}; at most {most:,} are possible. "
                "tv.load_trace reads it in Python."
            )


def _sizes(trace: Trace) -> Iterator[tuple[str, int, int]]:
    yield "source tokens", len(trace.source_tokens), MOST_TOKENS
    yield "target tokens", len(trace.target_tokens), MOST_TOKENS
    for tokens in (trace.source_tokens, trace.target_tokens, trace.output_tokens, trace.expected_tokens or ()):
        yield "letters in its tokens", sum(map(len, tokens)), MOST_LETTERS
    heads = [math.prod(weights.shape[:2]) for weights in map(trace.attentions, trace.kinds) if weights is not None]
    yield "heads", max(heads, default=0), MOST_HEADS
    yield "letters in its candidates", _letters(step.candidates for step in trace.steps), MOST_CANDIDATES
    if trace.search is not None:
        yield from _search_sizes(trace.search)


def _search_sizes(search: Search) -> Iterator[tuple[str, int, int]]:
    yield "steps of its search", len(search.alignment), MOST_TOKENS
    yield "heads", max((math.prod(array.shape[1:3]) for array in search.rows.values()), default=0), MOST_HEADS
    yield "nodes of its search", len(search.nodes), MOST_NODES
    yield "ranks of its search", 1 + max(node.rank for node in search.nodes), MOST_RANKS
    yield "finished hypotheses", len(search.best), MOST_NODES
    longest = max(len(node.text) + len(node.token) for node in search.nodes)
    yield "letters in its tree", longest * len(search.nodes), MOST_IN_TREE
    yield "letters in its candidates", _letters(search.candidates), MOST_CANDIDATES


def _letters(rows: Iterable[tuple[Candidate, ...]]) -> int:
    return sum(len(token) for row in rows for token, _ in row)
