"""The result of an attribution: how much each key counts for each query row, by one measure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from transformer_viz.errors import TraceError, join_names, short_repr
from transformer_viz.language import later
from transformer_viz.schema import Range, check_fields
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Layer
from transformer_viz.trace.groups import check_name

NATS = "nats"
"""The unit of a difference of log-probabilities."""
KINDS_WITH_CAUSES: tuple[Kind, ...] = ("cross", "decoder")
"""Kinds whose keys can cause a step: source tokens, and what the decoder has read. An encoder's rows are no steps."""
TITLES = {
    "occlusion": later("cause"),
    "value_weighted": later("value-weighted norm"),
    "value_weighted_sum": later("value-weighted norm of all heads"),
    "gradient": later("gradient × attention"),
    "rollout": later("rollout"),
    "alti": "ALTI+",
}
"""Titles of the measures by their names; a measure that is missing here has its name as title."""
_OF_A_MODE = (later("cause by word"), later("cause by position"), later("cause by deleted"))
"""The titles of a cause by each mode, as `Attribution.title` says them."""
_PRECISIONS = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Attribution:
    """The result of one method for one run.

    Attributes:
        method: the measure's name.
        kind: whose keys are judged: source tokens (`cross`), or what the decoder has read (`decoder`).
        values: float32 or float64 (layer, head, query, key), or (query, key) of a measure that has no heads. One head axis of
            size 1 is all heads of the layer as one. NaN where there is nothing to measure, as for a key that comes later.
        mode: how a key was occluded, of a measure that occludes keys.
        unit: `nats`, or nothing for a number without one.
        layers: numbers of the layers, where the values have them.
        notes: further facts about the result; plain data.

    Raises:
        TraceError: a name, type or shape that a file cannot hold.
    """

    method: str
    kind: Kind
    values: np.ndarray
    mode: str | None = None
    unit: Annotated[str, Range(0, 40)] = ""
    layers: tuple[Layer, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, TraceError)
        if self.kind not in KINDS_WITH_CAUSES:
            raise TraceError(f"kind {short_repr(self.kind)} has no causes; it is one of {join_names(KINDS_WITH_CAUSES)}")
        for name in (self.method, self.mode):
            if name is not None:
                check_name("method", name)
        if self.values.dtype.name not in _PRECISIONS or self.values.ndim not in (2, 4):
            raise TraceError(
                f"{self.name} is {self.values.dtype} with {self.values.ndim} axes; "
                f"{' or '.join(_PRECISIONS)} with 2 or 4 is needed"
            )
        if len(self.layers) != (len(self.values) if self.values.ndim == 4 else 0):
            raise TraceError(f"{self.name} has {len(self.layers)} layer numbers for values of {self.values.shape}")
        self.values.setflags(write=False)

    def __repr__(self) -> str:
        """One line; the values would fill pages."""
        axes = "query × key" if self.values.ndim == 2 else "layer × head × query × key"
        sizes = " × ".join(map(str, self.values.shape))
        return f"<Attribution {self.name}: {sizes} ({axes}){f', {self.unit}' if self.unit else ''}>"

    @property
    def name(self) -> str:
        """`occlusion_word_cross`: a run keeps one result of each name."""
        return "_".join(part for part in (self.method, self.mode, self.kind) if part is not None)

    @property
    def title(self) -> str:
        """`cause by word`."""
        title = TITLES.get(self.method, self.method.replace("_", " "))
        return title if self.mode is None else f"{title} by {self.mode}"

    @property
    def is_signed(self) -> bool:
        """Tells whether a number below 0 means the opposite: that a key spoke against what was written."""
        return self.unit == NATS

    def check(self, queries: tuple[str, ...], keys: tuple[str, ...]) -> None:
        """Raises a TraceError where the values do not fit the tokens of the run."""
        want = (len(queries), len(keys))
        if self.values.shape[-2:] != want or 0 in self.values.shape:
            raise TraceError(
                f"attribution: {self.name} is {self.values.shape} for {want[0]} query and {want[1]} key tokens; "
                "it is of another run"
            )
