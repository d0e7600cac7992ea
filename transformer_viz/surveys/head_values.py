"""Computes every statistic of all heads for a batch of texts at once, in pieces that fit into a processor's cache."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from transformer_viz.analysis.head_names import roles
from transformer_viz.analysis.head_rows import NONE, HeadRows, Positions, last_of
from transformer_viz.analysis.measures import OF_MANY
from transformer_viz.analysis.query_rows import has_weight
from transformer_viz.analysis.word_starts import is_special as _is_special
from transformer_viz.batches import Batch
from transformer_viz.decoding.memory import CACHED, n_at_once
from transformer_viz.decoding.token_batch import SIDES, Side
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.result import MOST_COMPARED
from transformer_viz.terms import Kind

_SIDES: tuple[Side, Side] = ("source", "target")
is_special = lru_cache(maxsize=2**14)(_is_special)


class Heads:
    """One kind of attention over the texts of a block.

    Args:
        layers: their numbers.
        n_heads: of each.
        n_texts: of the block.
    """

    def __init__(self, layers: Sequence[int], n_heads: int, n_texts: int) -> None:
        heads = (len(layers), n_heads)
        self._values = np.full((len(OF_MANY), 2, n_texts, *heads), np.nan)
        self._roles = np.full((n_texts, *heads), NONE, np.int8)
        n_compared = heads[0] * heads[1] if heads[0] * heads[1] <= MOST_COMPARED else 0
        self._agreed = np.zeros((n_texts, n_compared, n_compared))
        self._compared = np.zeros((n_texts, n_compared, n_compared), bool)

    def add(self, batch: Batch, kind: Kind, labels: "Labels") -> None:
        """Texts of a batch, and what their tokens are called."""
        places, tops = [text.index for text in batch.texts], []
        for layers, heads in _judged(batch, kind, labels):
            uniform = heads.uniform()
            for number, measure in enumerate(OF_MANY.values()):
                if (values := measure.of(heads)) is not None:
                    baseline = measure.of(uniform)
                    assert baseline is not None
                    self._values[number, 0, places, layers] = values
                    self._values[number, 1, places, layers] = baseline
            self._roles[places, layers] = roles(heads, uniform).number
            tops.append(np.where(heads.rows & heads.has_choice, heads.top, NONE))
        if self._agreed.size:
            self._compare(places, np.concatenate(tops, 1))

    def _compare(self, places: Sequence[int], tops: np.ndarray) -> None:
        """Counts rows in which two heads have the same largest key, from these keys, int (text, layer, head, query); NONE in
        rows that are not judged."""
        tops = tops.reshape(len(tops), -1, tops.shape[-1])
        n_heads, n_rows = tops.shape[1:]
        is_judged = (tops != NONE).astype(np.float32)
        both = is_judged @ is_judged.swapaxes(-1, -2)
        at_once = n_at_once(CACHED, n_heads * n_rows * len(tops))
        for first in range(0, n_heads, at_once):
            some = slice(first, first + at_once)
            alike = tops[:, some, None] == tops[:, None]
            alike &= (tops != NONE)[:, None]
            self._agreed[places, some] = alike.sum(-1) / np.maximum(both[:, some], 1)
        self._compared[places] = both > 0

    def arrays(self, read: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers by name; `read` is bool (text,), and of the other texts there is nothing.

        Returns:
            - `values`: float64 (statistic, 2, text, layer, head), each statistic in the order of `OF_MANY`, and that of
              attention that looks at every allowed key alike; NaN where a text has none.
            - `roles`: int8 (text, layer, head), the place in `ROLES`.
            - `agreed`: float64 (head, head), the share of rows with a choice of keys in which both have the same largest one,
              summed over texts; of no heads where there are more than are compared.
            - `compared`: int64 (head, head), texts that have such rows.
        """
        self._values[:, :, ~read] = np.nan
        self._roles[~read] = NONE
        # Of pairs of heads the sum alone is kept: for each text it would be more than all other numbers together.
        agreed, compared = self._agreed[read].sum(0), self._compared[read].sum(0)
        return {"values": self._values, "roles": self._roles, "agreed": agreed, "compared": compared}


class Labels:
    """The labels of a batch's tokens as far as statistics need them: for each text those that encoder and decoder read."""

    def __init__(self, model: LoadedModel, batch: Batch) -> None:
        tokenizer, self._tokens = model.tokenizer, batch.tokens
        self.source, self.target = (
            [batch.tokens.labels(tokenizer, side, i) for i in range(len(batch.texts))] for side in _SIDES
        )
        letters = (tokenizer.symbol_indices(labels) for labels in self.source)
        self.letters = _filled([[NONE if letter is None else letter for letter in each] for each in letters], NONE)
        self.last = np.array([last_of(labels, np.ones(len(labels), bool)) for labels in self.source])
        self.is_special = [_filled([[*map(is_special, one)] for one in side], False) for side in (self.source, self.target)]

    def n_content(self, i: int) -> int:
        """Counts the tokens of text i that are no special ones."""
        n, is_prompt = len(self._tokens.given(i)), not self.source[i]
        return n - int(self.is_special[is_prompt][i, :n].sum())


def _judged(batch: Batch, kind: Kind, labels: Labels) -> Iterator[tuple[slice, HeadRows]]:
    """The texts of a batch as measures are given them, cropped to the longest, and in as many layers as fit."""
    n_texts, tokens = len(batch.texts), batch.tokens
    n_rows = tokens.lengths("target")
    n_queries, n_keys = (tokens.lengths(side) for side in SIDES[kind])
    size = max(n_queries), max(n_keys)
    weights = tokens.aligned(batch.weights[kind], kind)
    own = _below(n_queries, size[0])[:, None, None, :, None] & _below(n_keys, size[1])[:, None, None, None]
    masked = np.broadcast_to(batch.masked[kind], (n_texts, *batch.masked[kind].shape[1:]))
    allowed = own & ~tokens.aligned(masked, kind)
    if (allowed == allowed[:, :1, :1]).all():
        allowed = allowed[:, :1, :1]
    width = size[0] if kind == "encoder" else size[1] if kind == "cross" else max(map(len, labels.source))
    known = [text.alignment[:n] for text, n in zip(batch.texts, n_rows, strict=True) if kind == "cross"]
    true = [[NONE if key is None else key for key in alignment] for alignment in known]
    # NONE after the end of shorter texts.
    positions = Positions(
        letters=labels.letters[:, :width],
        last=labels.last,
        true=_filled(true, NONE, size[0]) if true else np.empty((n_texts, 0), int),
        special=labels.is_special[kind == "decoder"][:, : size[1]],
        n_queries=np.array(n_queries),
        n_steps=np.array(n_rows),
    )
    at_once = n_at_once(CACHED, weights[:, 0].size)
    for first in range(0, weights.shape[1], at_once):
        some = slice(first, first + at_once)
        open_ = allowed[:, some] if allowed.shape[1] > 1 else allowed
        exact = weights[:, some].astype(np.float64)
        rows = open_.any(-1) & has_weight(exact)
        if (rows == rows[:, :1, :1]).all():
            rows = rows[:, :1, :1]
        exact *= rows[..., None]
        yield some, HeadRows(kind, exact, open_, rows, positions)


def _filled(rows: Sequence[Sequence[int]], fill: int, width: int = 0) -> np.ndarray:
    """(row, place), with something behind the shorter ones, as wide as the longest or so many places."""
    lengths = [len(row) for row in rows]
    width = width or max(lengths)
    filled = np.full((len(rows), width), fill)
    filled[_below(lengths, width)] = [value for row in rows for value in row]
    return filled


def _below(numbers: Sequence[int], size: int) -> np.ndarray:
    """bool (text, place)."""
    return np.arange(size) < np.array(numbers)[:, None]
