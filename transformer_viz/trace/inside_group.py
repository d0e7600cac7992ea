"""The insides of heads that a run keeps, in its group `inside` and so in its file.

Each is a row of numbers and the reasons of its mask, since a run may have only so many arrays; notes say what stands where.
Nothing of a file is believed: what is damaged, or not of this run, is refused.
"""

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from transformer_viz.errors import OptionError, TraceError, listed, quoted
from transformer_viz.model.config import NormPlacement
from transformer_viz.model.surroundings import NormKind
from transformer_viz.terms import Kind
from transformer_viz.trace.description import step_meta, step_of
from transformer_viz.trace.groups import Group
from transformer_viz.trace.inside import SHAPES, Inside, check_place, labels_of, place_words, run_of
from transformer_viz.trace.trace import Trace

GROUP = "inside"
MOST = 8
"""Heads and rows that a run keeps."""
_SAYS = ("kind", "layer", "head", "row", "scale", "softcap", "norm", "norm_kind", "norm_epsilon")
_NUMBERS = ("scale", "softcap", "norm_epsilon")
_WORDS = {"norm": get_args(NormPlacement), "norm_kind": get_args(NormKind)}
_PRECISIONS = ("float32", "float64")


def kept(trace: Trace, inside: Inside) -> Trace:
    """The run with one more; one of the same head and row gives way.

    Raises:
        TraceError: these numbers are of another run, or the run keeps too many.
    """
    _check_place(trace, *inside.place)
    _check_weights(inside, trace)
    all_of_them = [*(each for each in read(trace) if each.place != inside.place), inside]
    if len(all_of_them) > MOST:
        raise TraceError(f"a run keeps the inside of at most {MOST} heads and rows; make another file for more")
    return trace.with_group(GROUP, _written(all_of_them))


def read(trace: Trace) -> tuple[Inside, ...]:
    """Those that a run keeps, in their order.

    Raises:
        TraceError: they are damaged, or of another run.
    """
    group = trace.groups.get(GROUP)
    if group is None:
        return ()
    try:
        heads = group.notes["heads"]
        if not isinstance(heads, list) or not 1 <= len(heads) <= MOST:
            raise TraceError(f"inside: a list of 1 to {MOST} heads is needed")
        found = tuple(_one(trace, notes, group, number) for number, notes in enumerate(heads))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TraceError(f"inside: it is damaged ({type(error).__name__}: {str(error)[:120]})") from error
    if len({inside.place for inside in found}) < len(found) or len(group.arrays) != 2 * len(found):
        raise TraceError("inside: a head and row stands in it twice, or it has arrays of none")
    return found


def _written(insides: Sequence[Inside]) -> Group:
    arrays: dict[str, np.ndarray] = {}
    for number, inside in enumerate(insides):
        arrays[f"numbers_{number}"] = np.concatenate([array.ravel() for array in inside.arrays.values()])
        arrays[f"reasons_{number}"] = inside.reasons
    return Group(arrays, {"heads": list(map(_notes, insides))})


def _notes(inside: Inside) -> dict[str, Any]:
    return {
        **{name: getattr(inside, name) for name in _SAYS},
        "parts": [[name, list(array.shape)] for name, array in inside.arrays.items()],
        "lens": None if inside.lens is None else list(map(step_meta, inside.lens)),
    }


def _one(trace: Trace, notes: Any, group: Group, number: int) -> Inside:
    said = {name: notes[name] for name in _SAYS}
    kind = _check_place(trace, *(said[name] for name in ("kind", "layer", "head", "row")))
    for name in _NUMBERS:
        said[name] = None if said[name] is None else _number(name, said[name])
    for name, words in _WORDS.items():
        if said[name] is not None and said[name] not in words:
            raise TraceError(f"inside: {name} is {quoted(said[name])}; it is one of {listed(words)}")
    lens = notes["lens"]
    inside = Inside(
        **said,
        **_taken_apart(notes["parts"], group.arrays[f"numbers_{number}"]),
        reasons=group.arrays[f"reasons_{number}"],
        lens=None if lens is None else tuple(step_of(step, may_be_nan=trace.mistake is not None) for step in lens),
        **labels_of(trace, kind, said["row"]),
        run=run_of(trace),
    )
    _check_weights(inside, trace)
    return inside


def _taken_apart(parts: Any, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays by their names, out of the row that they were put into."""
    if numbers.ndim != 1 or numbers.dtype.name not in _PRECISIONS:
        raise TraceError(f"inside: numbers are {numbers.dtype} {numbers.shape}; a row of {listed(_PRECISIONS)} is needed")
    arrays: dict[str, np.ndarray] = {}
    at = 0
    for name, shape in parts:
        if name not in SHAPES or name in arrays or not all(type(size) is int and 0 < size <= numbers.size for size in shape):
            raise TraceError(f"inside: {quoted(name)} of shape {quoted(shape)} does not belong there, or stands there twice")
        size = math.prod(shape)
        arrays[name] = numbers[at : at + size].reshape(shape)
        at += size
    if at != numbers.size:
        raise TraceError(f"inside: it has {numbers.size:,} numbers, and its parts take {at:,}")
    return arrays


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise TraceError(f"inside: {name} is {quoted(value)}; a number above 0 is needed")
    return float(value)


def _check_place(trace: Trace, kind: Any, layer: Any, head: Any, row: Any) -> Kind:
    try:
        return check_place(trace, kind, layer, head, row)
    except OptionError as error:
        raise TraceError(f"inside: {error}") from error


def _check_weights(inside: Inside, trace: Trace) -> None:
    if not inside.is_of(trace):
        raise TraceError(f"inside: the weights of {place_words(inside.place)} are not those of the run")
