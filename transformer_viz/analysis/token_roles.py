"""What measures need to know of the tokens: which are letters of the text, special, last, or the right key of a row."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.analysis.true_key import true_keys
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
