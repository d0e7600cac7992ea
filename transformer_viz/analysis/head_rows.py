"""The rows of all heads of one kind of attention as arrays, of one run or of many, and what is known of their tokens."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transformer_viz.analysis.query_rows import entropies, has_weight, mean_over, real_queries, true_keys
from transformer_viz.analysis.word_starts import is_special
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END

NONE = -1
"""The index that means that there is no such key or letter."""


@dataclass(frozen=True)
class Positions:
    """Masks and indices of one text's tokens, or, with an axis before all others, of many; NONE behind those of a shorter text.

    Attributes:
        letters: int (…, source); the number of each source token among those of the text itself, from 0.
        last: int (…,); the place of `<end>` in the source, or where there is none of its last token.
        true: int (…, query); the key that is right for each row of cross-attention.
        special: bool (…, key); tokens of no text.
        n_queries: int (…,); the rows of this kind that each text has.
        n_steps: int (…,); of how many of its rows it is known what was written.
    """

    letters: np.ndarray
    last: np.ndarray
    true: np.ndarray
    special: np.ndarray
    n_queries: np.ndarray
    n_steps: np.ndarray

    @classmethod
    def of(cls, trace: Trace, kind: Kind) -> "Positions":
        """The positions of one run."""
        keys = true_keys(trace) if kind == "cross" else ()
        return cls(
            letters=np.array([NONE if letter is None else letter for letter in trace.source_letters], dtype=int),
            last=np.array(last_of(trace.source_tokens, real_queries(trace, "encoder"))),
            true=np.array([NONE if key is None else key for key in keys], dtype=int),
            special=np.array([is_special(token) for token in trace.attentions[kind].keys], dtype=bool),
            n_queries=np.array(len(trace.attentions[kind].queries)),
            n_steps=np.array(len(trace.steps)),
        )

    @property
    def n_letters(self) -> np.ndarray:
        """int (…,); how many letters each text has."""
        return (self.letters != NONE).sum(-1)

    def of_letters(self, numbers: np.ndarray) -> np.ndarray:
        """The source places of letters by their numbers, int (…, any); NONE where a text has no such letter."""
        n = self.letters.shape[-1]
        is_one = (numbers >= 0) & (numbers < n)
        numbers = np.broadcast_to(np.where(is_one, numbers, n), (*self.letters.shape[:-1], numbers.shape[-1]))
        return np.take_along_axis(self._places, numbers, -1)

    @cached_property
    def _places(self) -> np.ndarray:
        """int (…, letter); one letter more than there are, which is nowhere."""
        n = self.letters.shape[-1]
        places = np.full((*self.letters.shape[:-1], n + 1), NONE)
        numbers = np.where(self.letters == NONE, n, self.letters)
        np.put_along_axis(places, numbers, np.broadcast_to(np.arange(n), numbers.shape), -1)
        places[..., n] = NONE
        return places


def last_of(tokens: tuple[str, ...] | list[str], is_real: np.ndarray) -> int:
    """The place of the end, or of the last token that is no padding; NONE where there is nothing."""
    if END in tokens:
        return tokens.index(END)
    real = is_real.nonzero()[0]
    return int(real[-1]) if len(real) else NONE


@dataclass(frozen=True, eq=False)
class HeadRows:
    """The input of a measure: the rows of all heads of one kind, of one run or, with one more axis in front, of many.

    Attributes:
        kind: of attention.
        weights: float64 (…, layer, head, query, key); zeros in rows that are left out. Of uniform attention an axis is 1 where
            all layers or heads are alike.
        allowed: bool (…, layer or 1, head or 1, query, key).
        rows: bool (…, layer or 1, head or 1, query); those that are judged.
        positions: what is known of the tokens.
        is_uniform: whether the weights are those of uniform attention over each row's allowed keys, the baseline.
    """

    kind: Kind
    weights: np.ndarray
    allowed: np.ndarray
    rows: np.ndarray
    positions: Positions
    is_uniform: bool = False

    @classmethod
    def of(cls, trace: Trace, kind: Kind, layers: slice = slice(None)) -> "HeadRows":
        """One run, of all layers or some; its weights as they are."""
        attention = trace.attentions[kind]
        masked, exact = attention.mask, attention.weights[layers].astype(np.float64)
        allowed = ~(masked[None, None] if masked.ndim == 2 else masked[layers])
        rows = real_queries(trace, kind) & allowed.any(-1) & has_weight(exact)
        exact[~rows] = 0
        return cls(kind, exact, allowed, rows, Positions.of(trace, kind))

    def uniform(self) -> "HeadRows":
        """The same rows with uniform attention over their allowed keys."""
        return replace(self, weights=self.allowed / np.maximum(self.n_allowed[..., None], 1), is_uniform=True)

    def mean(self, values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        """The mean of (…, layer, head, query) over the judged rows, or those of them that `of` marks; NaN where none is."""
        return mean_over(values, self.rows if of is None else self.rows & of)

    def weight_on(self, keys: np.ndarray) -> np.ndarray:
        """The weight that each row has on a key of its own, int (…, query) -> (…, layer, head, query); 0 where that is NONE."""
        return self.weights_on(keys[..., None])[..., 0]

    def weights_on(self, keys: np.ndarray) -> np.ndarray:
        """The weight that each row has on each of several keys, int (…, query, any) -> (…, layer, head, query, any)."""
        n_queries, n_keys = self.weights.shape[-2:]
        before = self.weights.shape[:-2]
        # Places in memory, which is several times as fast as an index for each axis.
        rows = np.arange(np.prod(before) * n_queries).reshape(*before, n_queries, 1) * n_keys
        at = keys[..., None, None, :, :]
        return np.where(at >= 0, self.weights.take(rows + np.maximum(at, 0)), 0.0)

    @property
    def true_keys(self) -> np.ndarray | None:
        """int (…, query), NONE in rows that have no true key; None where this kind has none, or no row of any run."""
        keys = self.positions.true
        return keys if self.kind == "cross" and (keys != NONE).any() else None

    @cached_property
    def has_choice(self) -> np.ndarray:
        """bool (…, layer or 1, head or 1, query); rows with two allowed keys or more."""
        return self.n_allowed > 1

    @cached_property
    def n_allowed(self) -> np.ndarray:
        """int (…, layer or 1, head or 1, query)."""
        return self.allowed.sum(-1)

    @cached_property
    def entropy(self) -> np.ndarray:
        """The entropy of each row in nats, (…, layer, head, query)."""
        return entropies(self.weights)

    @cached_property
    def entropy_share(self) -> np.ndarray:
        """The entropy as a share of the largest possible; of rows with a choice."""
        return self.entropy / np.log(np.maximum(self.n_allowed, 2))

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest weight of each row, (…, layer, head, query)."""
        return self.weights.max(-1)

    @cached_property
    def top(self) -> np.ndarray:
        """The key with the largest weight, int (…, layer, head, query); of equal ones the lowest."""
        return self.weights.argmax(-1)
