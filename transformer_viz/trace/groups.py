"""A group: more arrays of a run, of whatever computed them, kept in its Trace and its file under a name of their own."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transformer_viz.errors import FileError, TraceError, listed, shortened
from transformer_viz.reading import parsed

MOST_GROUPS, MOST_ARRAYS = 16, 64
"""Groups of a run, and arrays in them all together: each array is a member of the file."""
MOST_NOTES = 2**16
"""Letters of a group's notes as JSON."""
DTYPES = ("float16", "float32", "float64", "int32", "uint8")
MOST_AXES = 6
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Group:
    """What one computation adds to a run.

    Attributes:
        arrays: by short names; float16, float32, float64, int32 or uint8 of one to six axes. Bools become 0 and 1.
        notes: what else is to be known of them; plain data, as JSON has it: tuples become lists.

    Raises:
        TraceError: a name, type, number of axes or note that a file cannot hold.
    """

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_names("array", self.arrays)
        object.__setattr__(self, "arrays", {name: _kept(name, array) for name, array in self.arrays.items()})
        object.__setattr__(self, "notes", _plain(self.notes))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def check_groups(groups: Mapping[str, Group]) -> None:
    """Passes over groups that a file can hold.

    Raises:
        TraceError: a name that is none, or too many.
    """
    check_names("group", groups)
    n_arrays = sum(len(group.arrays) for group in groups.values())
    if len(groups) > MOST_GROUPS or n_arrays > MOST_ARRAYS:
        raise TraceError(
            f"a run has {len(groups)} groups with {n_arrays} arrays; at most {MOST_GROUPS} and {MOST_ARRAYS} are possible"
        )


def is_name(name: object) -> bool:
    """Whether this is a short lower-case word. Names become names of members of a file, and none of them can be a path."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def check_names(what: str, names: Mapping[str, Any]) -> None:
    """Raises a TraceError where a name is none."""
    if wrong := [name for name in names if not is_name(name)]:
        raise TraceError(
            f"{what} name {shortened(repr(wrong[0]), 60)} is not possible; "
            "it is a to z first, then a to z, 0 to 9 and _, at most 32 of them"
        )


def _plain(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What comes back from a file, tried where it stands in one."""
    try:
        text = json.dumps({"groups": {"": dict(notes)}}, allow_nan=False)
        if len(text) <= MOST_NOTES:
            return parsed(text)["groups"][""]
    except (TypeError, ValueError, RecursionError, FileError) as error:
        raise TraceError(f"the notes of a group are no plain data ({shortened(str(error), 200)})") from error
    raise TraceError(f"the notes of a group have {len(text):,} letters as JSON; at most {MOST_NOTES:,} are possible")


def _kept(name: str, array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order, never to be changed."""
    if not isinstance(array, np.ndarray) or not 1 <= array.ndim <= MOST_AXES:
        given = f"{array.ndim} axes" if isinstance(array, np.ndarray) else type(array).__name__
        raise TraceError(f"array {name!r} has {given}; a numpy array of 1 to {MOST_AXES} axes is needed")
    array = array.astype(np.uint8) if array.dtype == np.bool_ else array
    if array.dtype.name not in DTYPES:
        raise TraceError(f"array {name!r} is {array.dtype}; it is one of {listed(DTYPES)}, or bool")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    array.setflags(write=False)
    return array
