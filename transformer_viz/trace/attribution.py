"""How much each key counts for each query row, as a measure found it, and how a run keeps that: its group `attribution`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer_viz.errors import TraceError, listed, quoted
from transformer_viz.terms import Kind
from transformer_viz.trace.groups import Group, check_names

if TYPE_CHECKING:
    from transformer_viz.trace.trace import Trace

GROUP = "attribution"
NATS = "nats"
"""The unit of a difference of log-probabilities."""
KINDS_WITH_CAUSES: tuple[Kind, ...] = ("cross", "decoder")
"""Keys of cross-attention are source tokens, those of the decoder what it has read. Of an encoder's no step is the effect."""
TITLES = {
    "occlusion": "cause",
    "value_weighted": "value-weighted norm",
    "value_weighted_sum": "value-weighted norm of all heads",
    "gradient": "gradient × attention",
    "rollout": "rollout",
    "alti": "ALTI+",
}
"""What the measures are called, by their names; another one is called by its name."""
_PRECISIONS = ("float32", "float64")
_LONGEST = 40


@dataclass(frozen=True, eq=False)
class Attribution:
    """What one measure says of one run.

    Attributes:
        method: the measure's name.
        kind: whose keys are judged: source tokens (`cross`), or what the decoder has read (`decoder`).
        values: float32 or float64 (layer, head, query, key), or (query, key) of a measure that has no heads. One head axis of
            size 1 is all heads of the layer as one. NaN where there is nothing to measure, as for a key that comes later.
        mode: how a key was occluded, of a measure that occludes keys.
        unit: `nats`, or nothing for a number without one.
        layers: numbers of the layers, where the values have them.
        notes: what else is to be known; plain data.

    Raises:
        TraceError: a part that a file cannot hold.
    """

    method: str
    kind: Kind
    values: np.ndarray
    mode: str | None = None
    unit: str = ""
    layers: tuple[int, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS_WITH_CAUSES:
            raise TraceError(f"{GROUP}: kind {quoted(self.kind)} has no causes; it is one of {listed(KINDS_WITH_CAUSES)}")
        check_names("method", {name: None for name in (self.method, self.mode) if name is not None})
        if not isinstance(self.unit, str) or len(self.unit) > _LONGEST:
            raise TraceError(f"{GROUP}: unit {quoted(self.unit)} is no short word")
        if self.values.dtype.name not in _PRECISIONS or self.values.ndim not in (2, 4):
            raise TraceError(
                f"{GROUP}: {self.name} is {self.values.dtype} with {self.values.ndim} axes; "
                f"{' or '.join(_PRECISIONS)} with 2 or 4 is needed"
            )
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in self.layers):
            raise TraceError(f"{GROUP}: {self.name} has layers {quoted(self.layers)}; numbers from 0 are needed")
        if len(self.layers) != (len(self.values) if self.values.ndim == 4 else 0):
            raise TraceError(f"{GROUP}: {self.name} has {len(self.layers)} layer numbers for values of {self.values.shape}")
        self.values.setflags(write=False)

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
        """Whether a number below 0 means the opposite: that a key spoke against what was written."""
        return self.unit == NATS


def kept(trace: "Trace", result: Attribution) -> "Trace":
    """The run with one result more; one of the same name gives way.

    Raises:
        TraceError: it is of a run with other tokens, or the run keeps too many arrays.
    """
    _check_shape(trace, result)
    found = {**read(trace), result.name: result}
    arrays = {name: each.values for name, each in found.items()}
    return trace.with_group(GROUP, Group(arrays, {name: _said(each) for name, each in found.items()}))


def read(trace: "Trace") -> dict[str, Attribution]:
    """The results that a run keeps, by their names.

    Raises:
        TraceError: they are damaged, or of a run with other tokens.
    """
    group = trace.groups.get(GROUP)
    if group is None:
        return {}
    if set(group.arrays) != set(group.notes):
        raise TraceError(f"{GROUP}: arrays {listed(sorted(group.arrays))[:200]} and notes of others; each array has notes")
    return {name: _of_group(trace, name, array, group.notes[name]) for name, array in group.arrays.items()}


def _said(result: Attribution) -> dict[str, Any]:
    said = {name: getattr(result, name) for name in ("method", "kind", "mode", "unit")}
    return {**said, "layers": list(result.layers), "notes": dict(result.notes)}


def _of_group(trace: "Trace", name: str, array: np.ndarray, said: Any) -> Attribution:
    wanted = {"method": str, "kind": str, "mode": str | None, "unit": str, "layers": list, "notes": dict}
    if not isinstance(said, dict) or said.keys() != wanted.keys():
        raise TraceError(f"{GROUP}: the notes of {name} are {quoted(said)}; {listed(wanted)} are needed")
    for part, kind in wanted.items():
        if not isinstance(said[part], kind):
            raise TraceError(f"{GROUP}: {part} of {name} is {quoted(said[part])}, which is of another type than it has")
    given: dict[str, Any] = {**said, "layers": tuple(said["layers"])}
    result = Attribution(values=array, **given)
    if result.name != name:
        raise TraceError(f"{GROUP}: {name} says that it is {result.name}")
    _check_shape(trace, result)
    return result


def _check_shape(trace: "Trace", result: Attribution) -> None:
    want = tuple(map(len, trace.labels(result.kind)))
    if result.values.shape[-2:] != want or 0 in result.values.shape:
        raise TraceError(
            f"{GROUP}: {result.name} is {result.values.shape} for {want[0]} query and {want[1]} key tokens; "
            "it is of another run"
        )
