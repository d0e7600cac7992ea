"""`Inside`: every number of one head for one query row, from the vector that enters to the residual stream after it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np

from transformer_viz.addresses import HeadAddress, row_address
from transformer_viz.errors import OptionError, TraceError, join_names
from transformer_viz.model.attention_block import NormKind
from transformer_viz.model.config import NormPlacement
from transformer_viz.schema import Count, Range
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Attention, Layer, check_codes
from transformer_viz.trace.steps import Step, Text

_Positive = Annotated[float, Range(0, above=True)]
_Stream = Annotated[np.ndarray | None, "d_model"]
_AGREES = 2e-3
"""The tolerance between weights and those of the run, which may be kept in half precision."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Inside:
    """The numbers of one head and one query row, as they were computed; None where the model does not give a number.

    Layers, heads and rows count from 0. A stream is (d_model,).

    Attributes:
        kind: of attention.
        layer: its number.
        head: its number.
        row: position of the query.
        row_token: what stands there.
        key_tokens: what stands at each key.
        row_id: of `row_token`, where labels do not tell tokens apart.
        key_ids: of `key_tokens`, where labels do not tell tokens apart.
        written: what was written after the row; None of an encoder.
        query: (d_k,); with rotary positions after the rotation.
        keys: (key, d_k); with rotary positions after the rotation. Keys that several heads share are each head's.
        values: (key, d_v).
        scale: what query · key is multiplied by: 1/√d_k, and 1 where nothing is divided.
        softcap: c of c · tanh(score / c), where scores are capped.
        scores: (key,), scaled, capped and with the bias, before the mask.
        bias: (key,), what positions add to the scores, where they do.
        reasons: uint8 (key,), codes of `terms.Reason`; 0 = the query may look at it.
        weights: (key,), after the softmax and whatever edit is in force.
        output: (d_v,), of the head: its values, weighted and added up, unless an edit says otherwise.
        out: (d_v, d_model), W_O of this head.
        projected: stream, the head's share of what attention adds: output @ out.
        out_bias: stream, of the output projection; None also where it has none.
        added: stream, what the output projection makes of all heads, its bias included.
        entered: stream, what the row's query is made of.
        residual_before: stream, as the sublayer finds it.
        residual_after: stream, as the sublayer leaves it.
        norm: where the norm stands: pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x)).
        norm_kind: `layer`, or `rms`, which takes no mean away.
        norm_epsilon: added to the variance.
        norm_weight: stream, γ; None also where the norm has none.
        norm_bias: stream, β; None also where the norm has none.
        lens: what the row's state after the embeddings (first) and after every layer would write, through the final norm, where
            the model has one, and the output: a step each, of the token that was written. None of an encoder.
        run: whose numbers they are: checkpoint, source, text, edits, mistake.

    Raises:
        TraceError: the parts do not fit together.
    """

    kind: Kind
    layer: Layer
    head: Count
    row: Count
    row_token: Text
    key_tokens: tuple[Text, ...]
    row_id: Count | None = None
    key_ids: tuple[Count, ...] | None = None
    written: Text | None = None
    query: Annotated[np.ndarray, "d_k"]
    keys: Annotated[np.ndarray, "key d_k"]
    values: Annotated[np.ndarray, "key d_v"]
    scale: _Positive | None = None
    softcap: _Positive | None = None
    scores: Annotated[np.ndarray | None, "key"] = None
    bias: Annotated[np.ndarray | None, "key"] = None
    reasons: np.ndarray
    weights: Annotated[np.ndarray, "key"]
    output: Annotated[np.ndarray, "d_v"]
    out: Annotated[np.ndarray | None, "d_v d_model"] = None
    projected: _Stream = None
    out_bias: _Stream = None
    added: _Stream = None
    entered: _Stream = None
    residual_before: _Stream = None
    residual_after: _Stream = None
    norm: NormPlacement | None = None
    norm_kind: NormKind | None = None
    norm_epsilon: _Positive | None = None
    norm_weight: _Stream = None
    norm_bias: _Stream = None
    lens: tuple[Step, ...] | None = None
    run: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = {"key": len(self.key_tokens)}
        for name, array in self.arrays.items():
            axes = SHAPES[name].split()
            if array.ndim != len(axes) or array.dtype.name not in ("float32", "float64"):
                needed = f"({SHAPES[name].replace(' ', ', ')}), float32 or float64,"
                raise TraceError(f"{name} is {array.dtype} {array.shape}; {needed} is needed")
            for axis, size in zip(axes, array.shape, strict=True):
                if size < 1 or sizes.setdefault(axis, size) != size:
                    raise TraceError(f"{name} has {size} {axis} where others have {sizes[axis]}")
        if self.reasons.shape != self.weights.shape or self.reasons.dtype != np.uint8:
            raise TraceError(f"reasons are {self.reasons.dtype} {self.reasons.shape}; uint8, one a key, is needed")
        check_codes("reasons", self.reasons)
        for array in (*self.arrays.values(), self.reasons):
            array.setflags(write=False)

    def is_of(self, attention: Attention) -> bool:
        """Tells whether the weights are those of the attention of a run, which has this head and row."""
        own = attention.head(self.layer, self.head)[self.row]
        return own.shape == self.weights.shape and np.allclose(own, self.weights, atol=_AGREES, equal_nan=True)

    @property
    def place(self) -> HeadAddress:
        """The head."""
        return HeadAddress(self.kind, self.layer, self.head)

    @property
    def address(self) -> str:
        """The head and the row, such as `cross.2.3:5`."""
        return row_address(self.place, self.row)

    @property
    def masked(self) -> np.ndarray:
        """bool (key,), True = masked."""
        return self.reasons > 0

    @property
    def norm_input(self) -> np.ndarray | None:
        """stream, what the norm is applied to."""
        match self.norm:
            case "pre":
                return self.residual_before
            case "residual-post":
                return self.added
            case "post" if self.residual_before is not None and self.added is not None:
                return self.residual_before + self.added
        return None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that there are, by name; the reasons of the mask are not among them."""
        return {name: array for name in SHAPES if (array := getattr(self, name)) is not None}

    def require(self, name: str) -> np.ndarray:
        """One of the arrays.

        Raises:
            OptionError: this reader cannot tell it; the message names it.
        """
        if name not in SHAPES and name != "norm_input":
            raise OptionError(f"{name!r} is not known; choose one of {join_names([*SHAPES, 'norm_input'])}")
        if (array := getattr(self, name)) is None:
            by = self.run.get("checkpoint", "this model")
            raise OptionError(f"{name} is something that {by} does not have, or that its reader cannot tell for sure.")
        return array

    def __repr__(self) -> str:
        """One line."""
        return f"<Inside {self.address}: {len(self.keys)} keys, d_k {len(self.query)}, d_v {len(self.output)}>"


_HINTS = {name: get_args(hint) for name, hint in get_type_hints(Inside, include_extras=True).items()}
SHAPES: Mapping[str, str] = {name: axes[1] for name, axes in _HINTS.items() if len(axes) == 2 and isinstance(axes[1], str)}
"""Every array of numbers and its axes."""
