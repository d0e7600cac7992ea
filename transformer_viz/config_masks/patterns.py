"""Names the pattern of a mask by its cells, and gives each masked cell its reason. Nothing here needs torch."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.terms import Kind, Reason

FULL, CAUSAL, OTHER = "all of the text", "causal", "a pattern of its own"


def pattern_of(kind: Kind, masked: np.ndarray, padded_queries: np.ndarray, padded_keys: np.ndarray) -> str:
    """Names a mask, from the cells of real tokens alone.

    Args:
        kind: of the attention.
        masked: bool (batch, query, key).
        padded_queries: bool (batch, query).
        padded_keys: bool (batch, key).
    """
    seen = [~masked[i][np.ix_(~padded_queries[i], ~padded_keys[i])] for i in range(len(masked))]
    if all(cells.all() for cells in seen):
        return FULL if kind != "cross" else "all of the source"
    if kind == "cross":
        return OTHER
    return next((name for name in _names(seen) if all(_is(name, cells) for cells in seen)), OTHER)


def _names(seen: Sequence[np.ndarray]) -> list[str]:
    """The patterns that are possible, by the row of the longest text that sees least."""
    longest = max(seen, key=len)
    n = len(longest)
    back = [row - int(np.argmax(cells)) for row, cells in enumerate(longest) if cells.any()]
    ahead = [int(n - 1 - np.argmax(cells[::-1])) - row for row, cells in enumerate(longest) if cells.any()]
    first_without = next((row for row in range(n) if not longest[row, 0]), n)
    width, prefix = max(back, default=0), max((ahead[0] if ahead else 0) + 1, 1)
    return [
        CAUSAL,
        f"causal, a window of {width + 1}",
        f"causal, chunks of {first_without}",
        f"a window of {width} to each side",
        f"causal, after a prefix of {prefix} that is seen whole",
        *(name for name in [_blocks(longest)] if name),
    ]


def _is(name: str, seen: np.ndarray) -> bool:
    """Tells whether a pattern is this one, for a text of another length too."""
    return np.array_equal(cells_of(name, len(seen)), seen)


def cells_of(name: str, n: int) -> np.ndarray:
    """The keys that a named pattern lets each of n queries see, bool (query, key)."""
    query, key = np.arange(n)[:, None], np.arange(n)[None, :]
    size = next((int(word) for word in name.split() if word.isdecimal()), 0)
    causal = key <= query
    if "a window of" in name:
        return abs(query - key) <= size if "each side" in name else causal & (key > query - size)
    if "chunks of" in name:
        return causal & (key // size == query // size)
    if "a prefix of" in name:
        return causal | ((key < size) & (query < size))
    if "seen whole at" in name:
        for block in name.partition("seen whole at ")[2].split(" and "):
            first, last = (int(number) - 1 for number in block.split(" to "))
            causal = causal | ((first <= query) & (query <= last) & (first <= key) & (key <= last))
    return causal


def _blocks(seen: np.ndarray) -> str:
    """`causal, blocks seen whole at 3 to 6`, of the queries that see what follows them; nothing where that is no such block."""
    n, blocks, row = len(seen), [], 0
    while row < n:
        last = max((key for key in range(n) if seen[row, key]), default=row)
        if last > row:
            blocks.append(f"{row + 1} to {last + 1}")
        row = max(last, row) + 1
    return f"causal, blocks seen whole at {' and '.join(blocks)}" if blocks else ""


def reasons_of(kind: Kind, pattern: str, masked: np.ndarray, padded_keys: np.ndarray) -> np.ndarray:
    """Why each cell is masked, uint8 (batch, query, key): padding and future by their place, what is left by the pattern."""
    _, n_queries, n_keys = masked.shape
    padding = np.broadcast_to(padded_keys[:, None, :], masked.shape)
    reasons = padding * np.uint8(Reason.PADDING)
    if kind == "decoder":
        future = np.arange(n_keys)[None, :] > np.arange(n_queries)[:, None]
        reasons = reasons | (future * np.uint8(Reason.FUTURE))[None]
    is_near = "window" in pattern or "chunk" in pattern
    left = np.uint8(Reason.WINDOW if is_near else Reason.UNKNOWN)
    return np.where(masked, np.where(reasons > 0, reasons, left), np.uint8(0)).astype(np.uint8)
