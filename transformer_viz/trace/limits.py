"""The largest sizes of a trace to be read, drawn or made into a table, on the pages and, unless lifted, on the command line.

Runs of this program's checkpoints are far below these limits, but a file may claim anything. Every label and every step's
sentence of a run goes to the browser, and a table names both tokens of every weight.
"""

import math
from collections.abc import Iterable, Iterator

from transformer_viz.errors import TraceTooLargeHere
from transformer_viz.trace.search import Search
from transformer_viz.trace.steps import Candidate
from transformer_viz.trace.trace import Trace

MAX_TRACE_BYTES = 256_000_000
"""The most bytes of a run that is made here."""
LARGEST_FILE, MOST_UNPACKED = 64 * 2**20, 128 * 2**20
"""The most bytes of a file, and the most that it may unpack to; reading takes up to about 4 times as much for a moment."""
MOST_TOKENS, MOST_LETTERS, MOST_HEADS = 512, 16_000, 1024
"""The most tokens of a side, letters in all of them, and heads of a kind."""
MOST_TEXT, MOST_EDITS = 100_000, 1000
"""The most letters of the source, the text or the expected answer, and the most edits."""
MOST_CANDIDATES = 1_000_000
"""Letters in all candidates together."""
MOST_NODES, MOST_RANKS, MOST_IN_TREE = 10_000, 1024, 10_000_000
"""Nodes and ranks of a search, and letters if each node had its longest text: a pruned one also names who was kept."""
MOST_IN_PAGE, MOST_WEIGHTS, MOST_IN_TABLE = 40_000_000, 5_000_000, 200_000_000
"""Weights in a page (12 × 12 heads at 512 tokens) and in a table, and letters of the tokens that a table repeats for each."""


def check(trace: Trace, file_name: str) -> None:
    """Passes over a trace that can be drawn.

    Raises:
        TraceTooLargeHere: it is too large; the message says in what, and how much is possible.
    """
    _refuse(f"{file_name} is a trace, but too large to draw here", _sizes(trace))


def check_file(trace: Trace, name: str, *, is_table: bool) -> None:
    """Passes over a trace that can be made into a file with every weight; `name` is what the message calls it.

    Raises:
        TraceTooLargeHere: it is too large.
    """
    sizes = [("weights", n_weights(trace), MOST_WEIGHTS if is_table else MOST_IN_PAGE)]
    sizes += [("letters of tokens in a table", _in_table(trace), MOST_IN_TABLE)] if is_table else []
    _refuse(f"{name} is too large to make into one file", sizes)


def n_weights(trace: Trace) -> int:
    """The number for all kinds of attention together."""
    return sum(attention.weights.size for attention in trace.attentions.values())


def _refuse(beginning: str, sizes: Iterable[tuple[str, int, int]]) -> None:
    for what, given, most in sizes:
        if given > most:
            words = f"{given:,} {what}; at most {most:,} are possible"
            raise TraceTooLargeHere(f"{beginning}: {words}. tv.load_trace reads it in Python.")


def _sizes(trace: Trace) -> Iterator[tuple[str, int, int]]:
    yield "source tokens", len(trace.source_tokens), MOST_TOKENS
    yield "target tokens", len(trace.target_tokens), MOST_TOKENS
    for tokens in (trace.source_tokens, trace.target_tokens, trace.output_tokens, trace.expected_tokens or ()):
        yield "letters in its tokens", sum(map(len, tokens)), MOST_LETTERS
    for text in (trace.source, trace.text, trace.expected or "", trace.mistake or ""):
        yield "letters in its text", len(text), MOST_TEXT
    yield "edits", len(trace.edits), MOST_EDITS
    yield "letters in its edits", sum(map(len, trace.edits)), MOST_TEXT
    heads = [attention.n_layers * attention.n_heads for attention in trace.attentions.values()]
    yield "heads", max(heads, default=0), MOST_HEADS
    yield "letters in its candidates", _letters(part.candidates for part in (*trace.steps, *trace.fills)), MOST_CANDIDATES
    if trace.search is not None:
        yield from _search_sizes(trace.search)


def _search_sizes(search: Search) -> Iterator[tuple[str, int, int]]:
    yield "steps of its search", len(search.opening) - 1 + len(search.alignment), MOST_TOKENS
    yield "letters in its tokens", sum(map(len, search.opening)), MOST_LETTERS
    yield "heads", max((math.prod(array.shape[1:3]) for array in search.rows.values()), default=0), MOST_HEADS
    yield "nodes of its search", len(search.nodes), MOST_NODES
    yield "ranks of its search", 1 + max(node.rank for node in search.nodes), MOST_RANKS
    yield "finished hypotheses", len(search.best), MOST_NODES
    longest = max(len(node.text) + len(node.token) for node in search.nodes)
    yield "letters in its tree", longest * len(search.nodes), MOST_IN_TREE
    yield "letters in its candidates", _letters(search.candidates), MOST_CANDIDATES


def _in_table(trace: Trace) -> int:
    """Letters of the query's and the key's token in every row of `trace.to_frame()`."""
    letters = 0
    for attention in trace.attentions.values():
        queries, keys = attention.queries, attention.keys
        pairs = len(keys) * sum(map(len, queries)) + len(queries) * sum(map(len, keys))
        letters += attention.n_layers * attention.n_heads * pairs
    return letters


def _letters(rows: Iterable[tuple[Candidate, ...]]) -> int:
    return sum(len(token) for row in rows for token, _ in row)
