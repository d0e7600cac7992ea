"""`compare(a, b)`: the signed differences A − B of two runs' attention, the cells that only one has, and where masks differ.

Layers are matched by their numbers; heads, rows and columns by position, whatever their tokens are. In two runs by words, rows
and columns are matched by the words' text (`word_pairs`), since two tokenizers may cut a text differently. A cell that only one
run has is absent (NaN), not a difference A − 0. The page Compare and the figures use this, and so does `diff`, which compares
everything that a Trace records. Numpy only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer_viz.addresses import AttentionAddress, HeadAddress, check_kind, find_map, map_address, read_map
from transformer_viz.analysis.word_pooling import is_by_words
from transformer_viz.comparison.align import distances, first_difference, largest, signed_size
from transformer_viz.comparison.word_pairs import Pair, by_position, by_text
from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import KINDS, Head, Kind
from transformer_viz.trace.trace import Trace

IN_A, IN_B, IN_BOTH = 1, 2, 3
"""Bit codes of `AlignedMaps.present` and `AlignedMaps.masked`."""


@dataclass(frozen=True, eq=False)
class AlignedMaps:
    """The matched maps of A and B, with a query and a key for each pair (`Comparison.pairs`); by position as many as the longer
    run has.

    Attributes:
        difference: float32 (…, query, key), A − B; NaN where not both have the cell, or where a number is none.
        present: uint8 (query, key), which run has the cell: 1 A alone, 2 B alone, 3 both, 0 neither.
        masked: uint8 (…, query, key), which run masks it: 1 A alone, 2 B alone, 3 both, 0 neither; 0 too where not
            both have it.
    """

    difference: np.ndarray
    present: np.ndarray
    masked: np.ndarray

    @property
    def broken(self) -> np.ndarray:
        """bool, cells that both have and whose difference is not a number."""
        return np.isnan(self.difference) & (self.present == IN_BOTH)


@dataclass(frozen=True)
class LargestDifference:
    """The weight that differs most; places count from 0, and are A's, with those of B in `in_b` where these are others.

    `size` is `a` − `b`, infinite where one alone is not a number.
    """

    kind: Kind
    layer: int
    head: int
    query: int
    key: int
    a: float
    b: float
    in_b: tuple[int, int] | None = None

    @property
    def place(self) -> HeadAddress:
        """The head."""
        return HeadAddress(self.kind, self.layer, self.head)

    @property
    def size(self) -> float:
        """Signed."""
        return signed_size(self.b, self.a)


@dataclass(frozen=True)
class MaskDifference:
    """Cells that one run masks and the other leaves open, of those that both have.

    `first` is (query, key) of the first one in A, with its layer and head where masks differ from head to head; `reasons` are
    the codes of `terms.Reason` that A and B have there.
    """

    kind: Kind
    in_a_alone: int
    in_b_alone: int
    first: tuple[int, int]
    reasons: tuple[int, int]
    layer: int | None = None
    head: int | None = None


def compare(a: Trace, b: Trace) -> "Comparison":
    """Compares the attention of two runs cell by cell.

    Args:
        a: the run from which is subtracted.
        b: the run that is subtracted; `compare(b, a)` has the same differences with the other sign.

    Returns:
        The comparison: `parted`, the first step at which the outputs differ; `difference("cross.1.1")`, a head's A − B, float32
        (query, key), NaN where not both have the cell; `farthest("cross")`, and more that take a kind or a head.

    Raises:
        OptionError: an argument is not a Trace.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> a, b = (tv.decode(model, text) for text in ("hello", "hells"))
        >>> found = tv.compare(a, b)
        >>> found.parted  # the first step at which the outputs differ, from 0
        0
        >>> found.difference("cross.1.1").shape  # (query, key)
        (6, 7)
    """
    check_traces(a=a, b=b)
    return Comparison(a, b)


def check_traces(**runs: object) -> None:
    """Raises an OptionError that names an argument that is not a Trace."""
    for name, run in runs.items():
        if not isinstance(run, Trace):
            raise OptionError(f"{name} is {type(run).__name__}, not a Trace; a file is read with load_trace")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs, compared. Every method raises an OptionError for a kind that not both have; it names the common ones."""

    a: Trace
    b: Trace

    def __repr__(self) -> str:
        """One line."""
        apart = "the outputs are equal" if self.parted is None else f"the outputs differ from step {self.parted + 1} on"
        return f"<Comparison {', '.join(self.kinds) or 'nothing in common'}: {apart}>"

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention of which both have a layer."""
        return tuple(kind for kind in KINDS if self._layers(kind))

    @property
    def parted(self) -> int | None:
        """The first step at which the outputs part; None where they are equal, or where one is not recorded."""
        a, b = self.a.output_tokens, self.b.output_tokens
        return first_difference(a, b) if a and b else None

    @cached_property
    def is_by_text(self) -> bool:
        """Tells whether rows and columns are matched by the text of their words, as they are where both runs are by words."""
        return is_by_words(self.a) and is_by_words(self.b)

    def paired(self, a: Sequence[str], b: Sequence[str]) -> tuple[Pair, ...]:
        """The matched tokens of A and B, of one side."""
        return by_text(a, b) if self.is_by_text else by_position(len(a), len(b))

    def pairs(self, kind: Kind) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """The matched rows of A and B, and the matched columns; a decoder's row stands for the word that it writes."""
        self._check(kind)
        a, b = self.a.attentions[kind], self.b.attentions[kind]
        written = (self.a.output_tokens, self.b.output_tokens)
        rows = written if kind != "encoder" and all(written) else (a.queries, b.queries)
        return self.paired(*rows), self.paired(a.keys, b.keys)

    def layers(self, kind: Kind) -> tuple[int, ...]:
        """The numbers of the layers that both have."""
        self._check(kind)
        return self._layers(kind)

    def n_heads(self, kind: Kind) -> int:
        """The number of heads that both have."""
        self._check(kind)
        return min(run.attentions[kind].n_heads for run in (self.a, self.b))

    def both(self, kind: Kind, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The layers and heads that both runs have, of an array of A and one of B, (layer, head, query, key)."""
        layers, n_heads = self.layers(kind), self.n_heads(kind)

        def chosen(run: Trace, array: np.ndarray) -> np.ndarray:
            return array[[run.attentions[kind].layer_index(layer) for layer in layers], :n_heads]

        return chosen(self.a, a), chosen(self.b, b)

    def weights(self, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
        """The weights of A and of B, (layer, head, query, key), in the layers and heads that both have."""
        self._check(kind)
        return self.both(kind, self.a.attentions[kind].weights, self.b.attentions[kind].weights)

    def reasons(self, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the masks of A and of B, (query, key); or as the weights, where those of one differ from head to head."""
        self._check(kind)
        a, b = (run.attentions[kind].reasons for run in (self.a, self.b))
        if a.ndim == b.ndim == 2:
            return a, b
        maps = (run.attentions[kind].weights.shape[:2] for run in (self.a, self.b))
        a, b = (np.broadcast_to(codes, (*n_maps, *codes.shape[-2:])) for codes, n_maps in zip((a, b), maps, strict=True))
        return self.both(kind, a, b)

    def all_heads(self, kind: Kind) -> AlignedMaps:
        """The aligned maps of all layers (of `layers`) and heads that both have: `difference` is (layer, head, query, key)."""
        masked = [codes > 0 for codes in self.reasons(kind)]
        return align_arrays(*self.weights(kind), *masked, self.pairs(kind))

    def heads(
        self, head: str | AttentionAddress, other: str | AttentionAddress | None = None
    ) -> tuple[tuple[Kind, int, Head], tuple[Kind, int, Head]]:
        """The kind, the layer and the head of A, and those of B; numbers count from 0.

        Raises:
            OptionError: a run has no such head, or the two are of different kinds.
        """
        self._check(read_map(head)[0].kind)
        in_a = find_map(head, self.a.grid, "A")
        in_b = find_map(map_address(*in_a) if other is None else other, self.b.grid, "B")
        if in_a[0] != in_b[0]:
            raise OptionError(f"{head} and {other} are of different kinds of attention, which have no cells in common")
        return in_a, in_b

    def one_head(self, head: str | AttentionAddress, other: str | AttentionAddress | None = None) -> AlignedMaps:
        """One head of A beside one of B, (query, key).

        Args:
            head: of A, such as `cross.2.3` or `cross.2.mean`.
            other: of B; by default the same.
        """
        in_a, in_b = self.heads(head, other)
        kind, places = in_a[0], ((self.a, in_a[1:]), (self.b, in_b[1:]))
        maps = [run.attentions[kind].head(*place) for run, place in places]
        masked = [run.attentions[kind].head_mask(*place) for run, place in places]
        return align_arrays(*maps, *masked, self.pairs(kind))

    def difference(self, head: str | AttentionAddress, other: str | AttentionAddress | None = None) -> np.ndarray:
        """A − B of one head, float32 (query, key); NaN where not both have the cell. The arguments are those of `one_head`."""
        return self.one_head(head, other).difference

    def farthest(self, kind: Kind) -> LargestDifference | None:
        """The cell that differs most, of the layers and heads that both have; None where nothing differs."""
        return self._farthest.get(kind)

    def by_head(self, kind: Kind) -> np.ndarray:
        """The largest difference of a cell in each head, (layer of `layers`, head)."""
        layers = zip(*self._common(kind, *self.weights(kind)), strict=True)
        return np.stack([distances(a, b).max((-2, -1), initial=0) for a, b in layers])

    @property
    def largest(self) -> LargestDifference | None:
        """The cell that differs most in all kinds of attention; None where no weight differs."""
        return max(self._farthest.values(), key=lambda difference: abs(difference.size), default=None)

    @cached_property
    def _farthest(self) -> dict[Kind, LargestDifference]:
        farthest = {}
        for kind in self.kinds:
            a, b = self._common(kind, *self.weights(kind))
            if not a.size:
                continue
            size = distances(a, b)
            layer, head, *cell = place = largest(size)
            if size[place] > 0:
                in_a, in_b = self._cells(kind, *cell)
                at = kind, self.layers(kind)[layer], head
                farthest[kind] = LargestDifference(*at, *in_a, float(a[place]), float(b[place]), None if in_a == in_b else in_b)
        return farthest

    def mask_difference(self, kind: Kind) -> MaskDifference | None:
        """Finds where the masks differ, or None where they do not."""
        a, b = self._common(kind, *self.reasons(kind))
        differ = np.argwhere((a > 0) != (b > 0))
        if not len(differ):
            return None
        *by_head, query, key = place = tuple(map(int, differ[0]))
        (query, key), _ = self._cells(kind, query, key)
        layer, head = (self.layers(kind)[by_head[0]], by_head[1]) if by_head else (None, None)
        in_a = int(((a > 0) & (b == 0)).sum())
        return MaskDifference(kind, in_a, len(differ) - in_a, (query, key), (int(a[place]), int(b[place])), layer, head)

    def _common(self, kind: Kind, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(…, query, key) of A and of B -> the queries and keys that both have."""
        return _cells_of_both(a, b, self.pairs(kind))

    def _cells(self, kind: Kind, query: int, key: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Finds a cell of what `_common` gives in A, and in B."""
        (a_rows, b_rows), (a_columns, b_columns) = map(_in_both, self.pairs(kind))
        return (a_rows[query], a_columns[key]), (b_rows[query], b_columns[key])

    def _layers(self, kind: Kind) -> tuple[int, ...]:
        a, b = self.a.attentions.get(kind), self.b.attentions.get(kind)
        return () if a is None or b is None else tuple(layer for layer in a.layers if layer in b.layers)

    def _check(self, kind: Kind) -> None:
        if check_kind(kind) not in self.kinds:
            lacks = " and ".join(name for name, run in (("A", self.a), ("B", self.b)) if kind not in run.kinds)
            if not lacks:
                numbers = [join_names(run.attentions[kind].layers) for run in (self.a, self.b)]
                raise OptionError(f"A has the {kind} layers {numbers[0]} and B has {numbers[1]}: no layer is in both")
            raise OptionError(f"{lacks} has no {kind} attention; both have {join_names(self.kinds)}")


def align_arrays(
    a: np.ndarray, b: np.ndarray, a_masked: np.ndarray, b_masked: np.ndarray, pairs: tuple[Sequence[Pair], Sequence[Pair]]
) -> AlignedMaps:
    """Two arrays (…, query, key) and their masks upon each other, by pairs of rows and of columns; leading axes are equal."""
    present = np.zeros(tuple(map(len, pairs)), dtype=np.uint8)
    for code, side in ((IN_A, 0), (IN_B, 1)):
        here = np.ix_(*([place for place, pair in enumerate(line) if pair[side] is not None] for line in pairs))
        present[here] |= np.uint8(code)
    difference = np.full((*a.shape[:-2], *present.shape), np.nan, dtype=np.float32)
    masked = np.zeros(difference.shape, dtype=np.uint8)
    here = (..., *np.ix_(*([place for place, pair in enumerate(line) if None not in pair] for line in pairs)))
    first, second = _cells_of_both(a, b, pairs)
    masks = _cells_of_both(a_masked, b_masked, pairs)
    difference[here] = np.subtract(first, second, dtype=np.float32)
    masked[here] = masks[0] * np.uint8(IN_A) | masks[1] * np.uint8(IN_B)
    return AlignedMaps(difference, present, masked)


def _cells_of_both(a: np.ndarray, b: np.ndarray, pairs: tuple[Sequence[Pair], Sequence[Pair]]) -> tuple[np.ndarray, np.ndarray]:
    """(…, query, key) of A and of B, cell upon cell: the rows and columns that both have."""
    (a_rows, b_rows), (a_columns, b_columns) = map(_in_both, pairs)
    return a[(..., *np.ix_(a_rows, a_columns))], b[(..., *np.ix_(b_rows, b_columns))]


def _in_both(pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """The places in A and in B of the pairs that have both."""
    both = [(i, k) for i, k in pairs if i is not None and k is not None]
    return [i for i, _ in both], [k for _, k in both]
