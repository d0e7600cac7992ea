"""Two runs laid upon each other, `compare(a, b)`: signed differences A − B, what only one has, and where masks differ.

Layers lie upon each other by their numbers, heads, rows and columns by position, and nothing else: whether two tokens mean
the same is the reader's to say. A cell that only one run has is no difference of A − 0; it is absent (NaN). The Compare page,
its words and the figures read this; `diff`, the verdict over everything that a Trace records, reads the attention from it
too. Numpy alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transformer_viz.analysis.align import common, distances, first_apart, largest, signed_size
from transformer_viz.analysis.heads import Head, head_map, n_layers_heads, reasons_map
from transformer_viz.errors import OptionError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace

IN_A, IN_B, IN_BOTH = 1, 2, 3
"""Bit codes of `AlignedMaps.present` and `AlignedMaps.masked`."""


@dataclass(frozen=True, eq=False)
class AlignedMaps:
    """Maps of A and B upon each other; as many queries and keys as the longer one has, each way.

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
    """The weight that differs most; places count from 0. `size` is `a` − `b`, infinite where one alone is not a number."""

    kind: Kind
    layer: int
    head: int
    query: int
    key: int
    a: float
    b: float

    @property
    def size(self) -> float:
        """Signed."""
        return signed_size(self.b, self.a)


@dataclass(frozen=True)
class MaskDifference:
    """Cells that one run masks and the other leaves open, of those that both have.

    `first` is (query, key) of the first one, with its layer and head where masks differ from head to head; `reasons` are
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
    """Lays two runs upon each other; `compare(a, b)` has the differences of `compare(b, a)` with the other sign.

    Raises:
        OptionError: something else than two Traces.
    """
    check_traces(a=a, b=b)
    return Comparison(a, b)


def check_traces(**runs: object) -> None:
    """Raises an OptionError that names the argument which is no Trace."""
    for name, run in runs.items():
        if not isinstance(run, Trace):
            raise OptionError(f"{name} is {type(run).__name__}, not a Trace; a file is read with load_trace")


def first_difference(before: Trace, after: Trace) -> int | None:
    """The first step at which the outputs part, or None where they are equal."""
    return first_apart(before.output_tokens, after.output_tokens)


def largest_difference(before: Trace, after: Trace) -> LargestDifference | None:
    """`compare(after, before).largest`, its larger weight as `a`; a name of before `compare` that goes with the next release.

    Raises:
        OptionError: of a kind that both have, no layer is in both.
    """
    comparison = compare(after, before)
    for kind in set(before.kinds) & set(after.kinds):
        comparison.layers(kind)  # says why, where no layer is in both
    found = comparison.largest
    return found if found is None or found.size > 0 else replace(found, a=found.b, b=found.a)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs. What is asked of a kind that not both have raises an OptionError that names the common ones."""

    a: Trace
    b: Trace

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention of which both have a layer."""
        return tuple(kind for kind in KINDS if self._layers(kind))

    @property
    def parted(self) -> int | None:
        """The first step at which the outputs part; None where they are equal, or where one is not recorded."""
        return first_difference(self.a, self.b) if self.a.output_tokens and self.b.output_tokens else None

    def layers(self, kind: Kind) -> tuple[int, ...]:
        """The numbers of the layers that both have."""
        self._check(kind)
        return self._layers(kind)

    def n_heads(self, kind: Kind) -> int:
        """How many heads both have."""
        self._check(kind)
        return min(n_layers_heads(run, kind)[1] for run in (self.a, self.b))

    def both(self, kind: Kind, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of an array of A and one of B, (layer, head, query, key), the layers and heads that both runs have."""
        layers, n_heads = self.layers(kind), self.n_heads(kind)

        def chosen(run: Trace, array: np.ndarray) -> np.ndarray:
            places = [run.layer_place(kind, layer) for layer in layers]
            # No copy where all layers are there.
            return (array if len(places) == len(array) else array[places])[:, :n_heads]

        return chosen(self.a, a), chosen(self.b, b)

    def weights(self, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
        """Of A and of B, (layer, head, query, key), of the layers and heads that both have."""
        self._check(kind)
        a, b = self.a.attentions(kind), self.b.attentions(kind)
        assert a is not None and b is not None
        return self.both(kind, a, b)

    def reasons(self, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the masks of A and of B, (query, key); or as the weights, where those of one differ from head to head."""
        self._check(kind)
        a, b = (run.mask_reasons[kind] for run in (self.a, self.b))
        if a.ndim == b.ndim == 2:
            return a, b
        maps = (n_layers_heads(run, kind) for run in (self.a, self.b))
        a, b = (np.broadcast_to(codes, (*n_maps, *codes.shape[-2:])) for codes, n_maps in zip((a, b), maps, strict=True))
        return self.both(kind, a, b)

    def all_heads(self, kind: Kind) -> AlignedMaps:
        """All layers (of `layers`) and heads that both have: `difference` is (layer, head, query, key)."""
        masked = [codes > 0 for codes in self.reasons(kind)]
        return lay(*self.weights(kind), *masked)

    def one_head(
        self, kind: Kind, layer: int, head: Head, b_layer: int | None = None, b_head: Head | None = None
    ) -> AlignedMaps:
        """One map of A upon one of B, (query, key); that of B is the same layer and head where nothing else is said."""
        self._check(kind)
        places = ((self.a, (layer, head)), (self.b, of_b(layer, head, b_layer, b_head)))
        maps = [head_map(run, kind, *place) for run, place in places]
        masked = [reasons_map(run, kind, *place) > 0 for run, place in places]
        return lay(*maps, *masked)

    def difference(
        self, kind: Kind, layer: int, head: Head, b_layer: int | None = None, b_head: Head | None = None
    ) -> np.ndarray:
        """A − B of one head, float32 (query, key); NaN where not both have the cell."""
        return self.one_head(kind, layer, head, b_layer, b_head).difference

    def farthest(self, kind: Kind) -> LargestDifference | None:
        """The cell that differs most, of the layers and heads that both have; None where nothing differs."""
        return self._farthest.get(kind)

    def by_head(self, kind: Kind) -> np.ndarray:
        """How much the cell of each head differs that differs most, (layer of `layers`, head)."""
        pairs = zip(*common(*self.weights(kind)), strict=True)
        return np.stack([distances(a, b).max((-2, -1)) for a, b in pairs])

    @property
    def largest(self) -> LargestDifference | None:
        """Of all kinds, the cell that differs most; None where no weight differs."""
        return max(self._farthest.values(), key=lambda found: abs(found.size), default=None)

    @cached_property
    def _farthest(self) -> dict[Kind, LargestDifference]:
        found = {}
        for kind in self.kinds:
            a, b = common(*self.weights(kind))
            size = distances(a, b)
            layer, head, query, key = place = largest(size)
            if size[place] > 0:
                number = self.layers(kind)[layer]
                found[kind] = LargestDifference(kind, number, head, query, key, float(a[place]), float(b[place]))
        return found

    def mask_difference(self, kind: Kind) -> MaskDifference | None:
        """Where the masks differ, or None where they do not."""
        a, b = common(*self.reasons(kind))
        differ = np.argwhere((a > 0) != (b > 0))
        if not len(differ):
            return None
        *by_head, query, key = place = tuple(map(int, differ[0]))
        layer, head = (self.layers(kind)[by_head[0]], by_head[1]) if by_head else (None, None)
        in_a = int(((a > 0) & (b == 0)).sum())
        return MaskDifference(kind, in_a, len(differ) - in_a, (query, key), (int(a[place]), int(b[place])), layer, head)

    def _layers(self, kind: Kind) -> tuple[int, ...]:
        there = self.b.layer_numbers(kind)
        return tuple(layer for layer in self.a.layer_numbers(kind) if layer in there)

    def _check(self, kind: Kind) -> None:
        if kind not in KINDS:
            raise OptionError(f"kind {kind!r} is not known; choose one of {listed(KINDS)}")
        if kind not in self.kinds:
            lacks = " and ".join(name for name, run in (("A", self.a), ("B", self.b)) if kind not in run.kinds)
            if not lacks:
                numbers = [listed(run.layer_numbers(kind)) for run in (self.a, self.b)]
                raise OptionError(f"A has the {kind} layers {numbers[0]} and B has {numbers[1]}: no layer is in both")
            raise OptionError(f"{lacks} has no {kind} attention; both have {listed(self.kinds)}")


def lay(a: np.ndarray, b: np.ndarray, a_masked: np.ndarray, b_masked: np.ndarray) -> AlignedMaps:
    """Two arrays (…, query, key) and their masks upon each other, by position; leading axes are equal."""
    n_queries, n_keys = max(a.shape[-2], b.shape[-2]), max(a.shape[-1], b.shape[-1])
    present = np.zeros((n_queries, n_keys), dtype=np.uint8)
    for code, array in ((IN_A, a), (IN_B, b)):
        present[: array.shape[-2], : array.shape[-1]] |= np.uint8(code)
    first, second = common(a, b)
    masks = common(a_masked, b_masked)
    difference = np.full((*a.shape[:-2], n_queries, n_keys), np.nan, dtype=np.float32)
    masked = np.zeros(difference.shape, dtype=np.uint8)
    here = (..., slice(first.shape[-2]), slice(first.shape[-1]))
    difference[here] = np.subtract(first, second, dtype=np.float32)
    masked[here] = masks[0] * np.uint8(IN_A) | masks[1] * np.uint8(IN_B)
    return AlignedMaps(difference, present, masked)


def of_b(layer: int, head: Head, b_layer: int | None, b_head: Head | None) -> tuple[int, Head]:
    """B's layer and head; None is the same as A's."""
    return layer if b_layer is None else b_layer, head if b_head is None else b_head
