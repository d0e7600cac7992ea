"""The attention of one kind in one run: weights, masks, scores, and the labels of rows and columns."""

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Self, get_args

import numpy as np

from transformer_viz.addresses import check_kind, range_words
from transformer_viz.errors import OptionError, TraceError, join_names, short_repr
from transformer_viz.schema import Range, whole_number
from transformer_viz.terms import REASON_WORDS, Head, Kind

if TYPE_CHECKING:
    import pandas as pd

Precision = Literal["float32", "float16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""Types of weights. Half precision rounds a weight by at most 2⁻¹² of it, or by 2⁻²⁵ where it is below 2⁻¹⁴."""
Layer = Annotated[int, Range(0, 9999)]
_CODES = bytes(REASON_WORDS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention:
    """Attention of one kind. The labels are those of the Trace that it is part of, which sets them.

    Layers are always named by their number in the model; only arrays are indexed by the place of a layer among those that
    were recorded (`layer_index`).

    Attributes:
        weights: float32 or float16 (layer, head, query, key).
        reasons: uint8 codes of `terms.Reason`, 0 = allowed: (query, key), or (layer, head, query, key) where a window or an
            edit made layers or heads differ.
        scores: float32 (layer, head, query, key) before the mask, NaN where a key did not exist yet; None where they were
            not recorded.
        layers: numbers, from 0 and ascending, of the layers along the first axis; by default those from 0 on.
        covered_from: the first row that is hidden until somebody has answered (`hidden_answer`), or None. Such rows have no
            weights and count as masked; pictures draw nothing of them.
        covered_to: the row behind the last of them; None where all later ones are.
        queries: tokens of the rows.
        keys: tokens of the columns.
        query_ids: ids of the rows' tokens, or None.
        key_ids: ids of the columns' tokens, or None.
    """

    weights: np.ndarray
    reasons: np.ndarray
    scores: np.ndarray | None = None
    layers: tuple[Layer, ...] = ()
    covered_from: int | None = None
    covered_to: int | None = None
    queries: tuple[str, ...] = field(default=(), init=False)
    keys: tuple[str, ...] = field(default=(), init=False)
    query_ids: tuple[int, ...] | None = field(default=None, init=False)
    key_ids: tuple[int, ...] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.layers:
            object.__setattr__(self, "layers", tuple(range(len(self.weights))))
        for array in self.arrays:
            array.setflags(write=False)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Weights, reasons, and scores where they were recorded."""
        return (self.weights, self.reasons) if self.scores is None else (self.weights, self.reasons, self.scores)

    @property
    def n_layers(self) -> int:
        """The number of layers that were recorded."""
        return self.weights.shape[0]

    @property
    def n_heads(self) -> int:
        """The number of heads in each layer."""
        return self.weights.shape[1]

    @cached_property
    def mask(self) -> np.ndarray:
        """bool in the shape of `reasons`, True = masked."""
        mask = self.reasons > 0
        mask.setflags(write=False)
        return mask

    @property
    def covered(self) -> range:
        """The rows of which nothing may be told before an answer."""
        n_rows = self.weights.shape[2]
        if self.covered_from is None:
            return range(0)
        return range(self.covered_from, n_rows if self.covered_to is None else self.covered_to)

    @property
    def is_covered(self) -> np.ndarray:
        """bool (query,): `covered` as a mask of rows."""
        return np.isin(np.arange(self.weights.shape[2]), self.covered)

    def layer_index(self, layer: int) -> int:
        """The place of a layer along the first axis of the arrays.

        Raises:
            OptionError: this layer was not recorded; the message says which were.
        """
        if type(layer) is not int or layer not in self.layers:
            raise OptionError(f"layer={short_repr(layer)} is not possible; it is one of {range_words(self.layers, first=0)}")
        return self.layers.index(layer)

    def head(self, layer: int, head: Head) -> np.ndarray:
        """Weights of one head, float32 (query, key); `mean` and `max` are over the heads of the layer.

        Raises:
            OptionError: no such layer or head; the message names the possible ones.
        """
        return combine_heads(self.weights[self.layer_index(layer)], head)

    def row(self, layer: int, head: Head, query: int) -> np.ndarray:
        """One row of `head`, float32 (key,), without computing the others."""
        return combine_heads(self.weights[self.layer_index(layer)][:, query], head)

    def head_reasons(self, layer: int, head: Head) -> np.ndarray:
        """Reasons of one head, uint8 (query, key); of `mean` and `max`, masked only where every head of the layer is."""
        if self.reasons.ndim == 2:
            return self.reasons
        heads = self.reasons[self.layer_index(layer)]
        if isinstance(head, int):
            return heads[head]
        return np.where((heads > 0).all(0), heads.max(0), 0).astype(np.uint8)

    def head_mask(self, layer: int, head: Head) -> np.ndarray:
        """Mask of one head, bool (query, key), True = masked."""
        return self.head_reasons(layer, head) > 0

    def head_scores(self, layer: int, head: int) -> np.ndarray:
        """Scores of one head before the mask, (query, key).

        Raises:
            OptionError: no scores were recorded, or no such head.
        """
        if self.scores is None:
            raise OptionError('this run has no scores of this kind; decode with record=("weights", "scores")')
        return self.scores[self.layer_index(layer), whole_number("head", head, 0, self.n_heads - 1)]

    def to_frame(self, layer: int | None = None, head: int | None = None) -> "pd.DataFrame":
        """Every weight as a row: layer, head, query, query_token, key, key_token, weight, masked; with ids those too.

        Args:
            layer: this layer alone, by its number.
            head: this head alone.
        """
        import pandas as pd

        first = 0 if layer is None else self.layer_index(layer)
        chosen = (slice(first, None if layer is None else first + 1), slice(head, None if head is None else head + 1))
        weights = self.weights[chosen]
        layers, heads, queries, keys = (axis.ravel() for axis in np.indices(weights.shape))
        columns = {
            "layer": np.array(self.layers)[layers + first],
            "head": heads + (head or 0),
            "query": queries,
            "query_token": np.array(self.queries, dtype=object)[queries],
            "query_id": None if self.query_ids is None else np.array(self.query_ids)[queries],
            "key": keys,
            "key_token": np.array(self.keys, dtype=object)[keys],
            "key_id": None if self.key_ids is None else np.array(self.key_ids)[keys],
            # Not every table format knows half precision; nothing is lost.
            "weight": weights.ravel().astype(np.float32, copy=False),
            "masked": np.broadcast_to(self.mask, self.weights.shape)[chosen].ravel(),
        }
        return pd.DataFrame({name: column for name, column in columns.items() if column is not None})

    def labelled(
        self,
        queries: tuple[str, ...],
        keys: tuple[str, ...],
        query_ids: tuple[int, ...] | None,
        key_ids: tuple[int, ...] | None,
    ) -> Self:
        """The same numbers with these labels."""
        labelled = copy.copy(self)
        for name, labels in (("queries", queries), ("keys", keys), ("query_ids", query_ids), ("key_ids", key_ids)):
            object.__setattr__(labelled, name, labels)
        return labelled

    def check(self, kind: Kind, *, may_be_nan: bool) -> None:
        """Raises a TraceError that says what of the arrays does not fit the labels, or cannot be. Shapes come first."""
        weights, reasons, scores = self.weights, self.reasons, self.scores
        want = (len(self.queries), len(self.keys))
        if weights.ndim != 4 or weights.shape[2:] != want or 0 in weights.shape:
            raise TraceError(
                f"{kind}: attention of shape {weights.shape} for {want[0]} query and {want[1]} key tokens; "
                f"(layer, head, {want[0]}, {want[1]}) is needed"
            )
        if weights.dtype not in PRECISIONS:
            raise TraceError(f"{kind}: attention is {weights.dtype}; {' or '.join(PRECISIONS)} is needed")
        numbers = [-1, *self.layers]
        if len(self.layers) != len(weights) or numbers != sorted(set(numbers)):
            raise TraceError(
                f"{kind}: layers are numbered {join_names(self.layers[:100])}; {len(weights)} ascending numbers are needed"
            )
        if reasons.dtype != np.uint8 or reasons.shape not in (want, weights.shape):
            raise TraceError(f"{kind}: the mask is {reasons.dtype} {reasons.shape}; uint8 {want} is needed")
        if scores is not None and (scores.dtype != np.float32 or scores.shape != weights.shape):
            raise TraceError(f"{kind}: the scores are {scores.dtype} {scores.shape}; float32 {weights.shape} is needed")
        check_codes(f"{kind}: the mask", reasons)
        lowest, highest = _extremes(weights)
        if not may_be_nan and not (math.isfinite(lowest) and math.isfinite(highest)):
            raise TraceError(f"{kind}: attention holds numbers that are not finite")
        if lowest < 0 or (math.isnan(lowest) and (weights < 0).any()):
            raise TraceError(f"{kind}: attention holds negative numbers")


def _extremes(weights: np.ndarray) -> tuple[np.floating, np.floating]:
    """The lowest and the highest number; NaN where one is NaN, which is both for numpy."""
    bits = weights.view(f"i{weights.itemsize}")
    if bits.min() >= 0:
        # Bits of numbers from 0 on are in their order, NaN the last; as whole numbers halves are compared ten times as fast.
        return bits.min().view(weights.dtype), bits.max().view(weights.dtype)
    # `argmin` would copy an array that nobody may write on.
    return weights.min(), weights.max()


class Attentions(dict[Kind, Attention]):
    """The attention of a run by its kind, in the order of `KINDS`; a kind that the run does not have is an OptionError."""

    def __missing__(self, kind: object) -> Attention:
        return self[check_kind(kind, self)]


def combine_heads(heads: np.ndarray, head: Head) -> np.ndarray:
    """(head, …) -> float32 (…): one of them, or all as one.

    Raises:
        OptionError: no such head.
    """
    if head == "mean":
        return heads.mean(0, dtype=np.float32)
    if head == "max":
        return heads.max(0).astype(np.float32, copy=False)
    if isinstance(head, str):
        raise OptionError(f"head={short_repr(head)} is not possible; all heads of a layer as one are 'mean' or 'max'")
    return heads[whole_number("head", head, 0, len(heads) - 1)].astype(np.float32, copy=False)


def check_codes(name: str, reasons: np.ndarray) -> None:
    """Raises a TraceError where a mask holds a code that is none of `terms.Reason`."""
    if unknown := reasons.tobytes().translate(None, _CODES):
        raise TraceError(f"{name} holds code {unknown[0]}; codes are {join_names(map(int, REASON_WORDS))}")
