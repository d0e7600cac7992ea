"""A group: further arrays about a run, which anybody may compute, kept in its Trace and file under a name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from transformer_viz.errors import TraceError, join_names, short_repr
from transformer_viz.schema import Range, check_fields

MOST_GROUPS, MOST_ARRAYS = 16, 64
"""Groups of a run, and arrays in them all together: each array is a member of the file."""
DTYPES = ("float16", "float32", "float64", "int32", "uint8")
MOST_AXES = 6
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Group:
    """The arrays that one computation adds to a run.

    Attributes:
        arrays: by short names; float16, float32, float64, int32 or uint8 of one to six axes. Bools become 0 and 1.
        notes: further facts about them; plain data, as JSON has it.

    Raises:
        TraceError: a name, type or number of axes that a file cannot hold.
    """

    arrays: Annotated[Mapping[str, np.ndarray], Range(0, MOST_ARRAYS)] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, TraceError)
        arrays = {}
        for name, array in self.arrays.items():
            check_name("array", name)
            array = array.astype(np.uint8) if array.dtype == np.bool_ else array
            if array.dtype.name not in DTYPES or not 1 <= array.ndim <= MOST_AXES:
                raise TraceError(
                    f"array {name!r} is {array.dtype} with {array.ndim} axes; it is one of {join_names(DTYPES)}, or bool, "
                    f"with 1 to {MOST_AXES}"
                )
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
            arrays[name].setflags(write=False)
        object.__setattr__(self, "arrays", arrays)


def check_name(what: str, name: str) -> None:
    """Raises a TraceError unless the name is a short lower-case word, which can be part of a file's name."""
    if not _NAME.fullmatch(name):
        raise TraceError(
            f"{what} name {short_repr(name)} is not possible; it is a to z first, then a to z, 0 to 9 and _, at most 32 of them"
        )
