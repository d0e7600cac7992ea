"""Pairs the words of two runs: as many equal words as possible in their order, and between them the words that differ.

The same words are a longest common subsequence; case does not count, since many tokenizers read none. Numpy is not needed.
"""

from collections.abc import Sequence
from functools import lru_cache

from transformer_viz.analysis.word_starts import is_special

Pair = tuple[int | None, int | None]
"""A place in A and one in B; None where that run has no such word."""


def by_position(n_a: int, n_b: int) -> tuple[Pair, ...]:
    """The first on the first, and so on to the end of the longer one."""
    return tuple((place if place < n_a else None, place if place < n_b else None) for place in range(max(n_a, n_b)))


def by_text(a: Sequence[str], b: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs every place of both lists, in order: first as many pairs of equal words as possible, then as many other pairs of
    two words or two special tokens. `by_text(b, a)` has the same pairs the other way round."""
    first, second = (tuple(token if is_special(token) else token.casefold() for token in side) for side in (a, b))
    if first > second:  # of several that are as good, the same one both ways
        return tuple((there, here) for here, there in _by_text(second, first))
    return _by_text(first, second)


def pairs_that_differ(pairs: Sequence[Pair], a: Sequence[str], b: Sequence[str]) -> list[int]:
    """Finds the pairs that are not of the same text; a word that one alone has is apart."""
    return [place for place, (i, k) in enumerate(pairs) if i is None or k is None or a[i] != b[k]]


@lru_cache(maxsize=64)
def _by_text(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[Pair, ...]:
    """Pairs the common beginning and end at once, since some best solution has these pairs."""
    least = min(len(a), len(b))
    begin = next((place for place in range(least) if a[place] != b[place]), least)
    end = next((place for place in range(least - begin) if a[-1 - place] != b[-1 - place]), least - begin)
    n_a, n_b = len(a) - end, len(b) - end
    between = _best(a[begin:n_a], b[begin:n_b])
    return (
        *((place, place) for place in range(begin)),
        *((None if i is None else begin + i, None if k is None else begin + k) for i, k in between),
        *((n_a + place, n_b + place) for place in range(end)),
    )


def _best(a: tuple[str, ...], b: tuple[str, ...]) -> list[Pair]:
    """The value of the best pairs of the rest of A and the rest of B, for every two places; by dynamic programming."""
    equal = len(a) + len(b) + 1  # one pair of equal words is worth more than all others together
    kinds = [[is_special(token) for token in side] for side in (a, b)]

    def worth(i: int, k: int) -> int:
        return equal if a[i] == b[k] else int(kinds[0][i] == kinds[1][k])

    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for k in reversed(range(len(b))):
            best[i][k] = max(worth(i, k) + best[i + 1][k + 1], best[i + 1][k], best[i][k + 1])
    pairs: list[Pair] = []
    i = k = 0
    while i < len(a) and k < len(b):
        if best[i][k] == worth(i, k) + best[i + 1][k + 1] and worth(i, k):
            pairs.append((i, k))
            i, k = i + 1, k + 1
        elif best[i][k] == best[i + 1][k]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, k))
            k += 1
    return [*pairs, *((place, None) for place in range(i, len(a))), *((None, place) for place in range(k, len(b)))]
