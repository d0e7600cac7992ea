"""Two runs laid upon each other, `compare(a, b)`: signed differences A − B, what only one has, and where masks differ.

Rows and columns lie upon each other by position, and nothing else: whether two tokens mean the same is the reader's to
say. A cell that only one run has is no difference of A − 0; it is absent (NaN). `diff` is the verdict for programs;
this is what pictures are made of. Numpy alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer_viz.analysis.aligned import common
from transformer_viz.analysis.difference import first_difference
from transformer_viz.analysis.heads import COMBINED, Head, head_map, n_layers_heads, reasons_map
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
        if np.isnan(self.a) or np.isnan(self.b):
            return float(np.inf if np.isnan(self.a) else -np.inf)
        return self.a - self.b


@dataclass(frozen=True)
class MaskDifference:
    """Cells that one run masks and the other leaves open, of those that both have; `first` is (query, key)."""

    kind: Kind
    in_a_alone: int
    in_b_alone: int
    first: tuple[int, int]
    layer: int | None = None
    head: int | None = None


def compare(a: Trace, b: Trace) -> "Comparison":
    """Lays two runs upon each other; `compare(a, b)` has the differences of `compare(b, a)` with the other sign.

    Raises:
        OptionError: something else than two Traces.
    """
    for name, run in (("a", a), ("b", b)):
        if not isinstance(run, Trace):
            raise OptionError(f"{name} is {type(run).__name__}, not a Trace; a file is read with load_trace")
    return Comparison(a, b)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs. What is asked of a kind that not both have raises an OptionError that names the common ones."""

    a: Trace
    b: Trace

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention of which both have a layer."""
        return tuple(kind for kind in KINDS if self._layers(kind))

    @cached_property
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

    def all_heads(self, kind: Kind) -> AlignedMaps:
        """All layers (of `layers`) and heads that both have: `difference` is (layer, head, query, key)."""
        layers, n_heads = self.layers(kind), self.n_heads(kind)
        a, b = (_weights_of(run, kind, layers, n_heads) for run in (self.a, self.b))
        return lay(a, b, *(_masked_of(run, kind, layers, n_heads) for run in (self.a, self.b)))

    def one_head(
        self, kind: Kind, layer: int, head: Head, b_layer: int | None = None, b_head: Head | None = None
    ) -> AlignedMaps:
        """One map of A upon one of B, (query, key); that of B is the same layer and head where nothing else is said."""
        self._check(kind)
        places = ((self.a, (layer, head)), (self.b, of_b(layer, head, b_layer, b_head)))
        maps = [head_map(run, kind, *place) for run, place in places]
        masked = [reasons_map(run, kind, *place) > 0 for run, place in places]
        return lay(maps[0], maps[1], masked[0], masked[1])

    def difference(
        self, kind: Kind, layer: int, head: Head, b_layer: int | None = None, b_head: Head | None = None
    ) -> np.ndarray:
        """A − B of one head, float32 (query, key); NaN where not both have the cell."""
        return self.one_head(kind, layer, head, b_layer, b_head).difference

    def farthest(self, kind: Kind) -> LargestDifference | None:
        """The cell that differs most, of the layers and heads that both have; None where nothing differs."""
        return self._largest_differences.get(kind)

    @cached_property
    def largest(self) -> LargestDifference | None:
        """Of all kinds, the cell that differs most; None where no weight differs."""
        return max(self._largest_differences.values(), key=lambda found: abs(found.size), default=None)

    def mask_difference(self, kind: Kind) -> MaskDifference | None:
        """Where the masks differ, or None where they do not."""
        self._check(kind)
        reasons = [run.mask_reasons[kind] for run in (self.a, self.b)]
        by_head = any(array.ndim == 4 for array in reasons)
        layers, n_heads = (self.layers(kind), self.n_heads(kind)) if by_head else (self.layers(kind)[:1], 1)
        masked = common(*(_masked_of(run, kind, layers, n_heads) for run in (self.a, self.b)))
        differ = np.argwhere(masked[0] != masked[1])
        if not len(differ):
            return None
        in_a = int((masked[0] & ~masked[1]).sum())
        layer, head, query, key = (int(place) for place in differ[0])
        place = {"layer": layers[layer], "head": head} if (len(layers), n_heads) != (1, 1) else {}
        return MaskDifference(kind, in_a, len(differ) - in_a, (query, key), **place)

    @cached_property
    def _largest_differences(self) -> dict[Kind, LargestDifference]:
        return {kind: found for kind in self.kinds for found in self._differences_of(kind)}

    def _differences_of(self, kind: Kind) -> Iterator[LargestDifference]:
        layers, n_heads = self.layers(kind), self.n_heads(kind)
        a, b = common(*(_weights_of(run, kind, layers, n_heads) for run in (self.a, self.b)))
        size = np.abs(a - b)
        size = np.where(np.isnan(a) & np.isnan(b), 0, np.nan_to_num(size, nan=np.inf))
        place = tuple(int(i) for i in np.unravel_index(int(size.argmax()), size.shape))
        if size[place] > 0:
            layer, head, query, key = place
            yield LargestDifference(kind, layers[layer], head, query, key, float(a[place]), float(b[place]))

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
    difference[here] = first - second
    masked[here] = masks[0] * np.uint8(IN_A) | masks[1] * np.uint8(IN_B)
    return AlignedMaps(difference, present, masked)


def of_b(layer: int, head: Head, b_layer: int | None, b_head: Head | None) -> tuple[int, Head]:
    """B's layer and head; None is the same as A's."""
    return layer if b_layer is None else b_layer, head if b_head is None else b_head


def has_head(trace: Trace, kind: Kind, layer: int, head: Head) -> bool:
    """Whether a run has this layer and head; every run has the combined ones."""
    _, n_heads = n_layers_heads(trace, kind)
    is_head = head in COMBINED or (isinstance(head, int) and head < n_heads)
    return is_head and layer in trace.layer_numbers(kind)


def _weights_of(run: Trace, kind: Kind, layers: tuple[int, ...], n_heads: int) -> np.ndarray:
    """float32 (layer, head, query, key) of the layers with these numbers."""
    found = run.attentions(kind)
    assert found is not None
    chosen = found[[run.layer_place(kind, layer) for layer in layers], :n_heads]
    return chosen.astype(np.float32, copy=False)


def _masked_of(run: Trace, kind: Kind, layers: tuple[int, ...], n_heads: int) -> np.ndarray:
    """bool (layer, head, query, key)."""
    masked = run.masks[kind]
    if masked.ndim == 4:
        return masked[[run.layer_place(kind, layer) for layer in layers], :n_heads]
    return np.broadcast_to(masked, (len(layers), n_heads, *masked.shape))
