"""Addresses of attention: a kind, a layer of it, one head, one row of a head.

Written as people read, from 1; in Python everything counts from 0:

| text          | what it names                                     |
|---------------|---------------------------------------------------|
| `cross`       | all layers and heads of a kind                    |
| `cross.2`     | all heads of layer 2                              |
| `cross.2.4`   | head 4 of layer 2                                 |
| `cross.2.4:5` | row 5 of that head                                |
| `L2 H4`, `2.4` | the same head, where only cross-attention is meant |
"""

import re
from dataclasses import dataclass

from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import KINDS, Kind
from transformer_viz.text_display import quote_text

HIGHEST = 512
"""Layers, heads and positions that an address can name."""
_ADDRESS = re.compile(r"(?P<kind>[a-z]+)(?:\.(?P<layer>\d{1,3})(?:\.(?P<head>\d{1,3}))?)?(?::(?P<row>\d{1,3}))?", re.ASCII)
_HEAD = re.compile(r"[lL]?(\d{1,3})(?:[ .]?[hH]|[ .])(\d{1,3})", re.ASCII)


@dataclass(frozen=True)
class Place:
    """A kind of attention, or a layer or head of it; None is every layer, or every head. A head needs its layer."""

    kind: Kind
    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        numbers = [number for number in (self.layer, self.head) if number is not None]
        return ".".join([self.kind, *(str(number + 1) for number in numbers)])

    def holds(self, head: "HeadPlace") -> bool:
        """Whether a head is one of those named."""
        return self.kind == head.kind and self.layer in (None, head.layer) and self.head in (None, head.head)


@dataclass(frozen=True, order=True)
class HeadPlace(Place):
    """One head."""

    kind: Kind
    layer: int
    head: int


def is_address(text: str) -> bool:
    """Whether a text has the form of an address."""
    return _ADDRESS.fullmatch(text) is not None


def parse(text: str, what: str = "") -> tuple[Place, int | None]:
    """The place that an address names, and the row, if it names one.

    Args:
        text: the address.
        what: words before the address in an error.

    Raises:
        OptionError: it is not of this form, has an unknown kind, or an impossible number.
    """
    start = what or quote_text(text, 60)
    if (match := _ADDRESS.fullmatch(text.strip())) is None:
        raise OptionError(f"{start} is not an address of attention; write it as cross, cross.2, cross.2.4 or cross.2.4:5")
    kind = next((kind for kind in KINDS if kind == match["kind"]), None)
    if kind is None:
        raise OptionError(f"{start}: {match['kind']!r} is no kind of attention; choose one of {join_names(KINDS)}")
    numbers = {name: None if match[name] is None else int(match[name]) for name in ("layer", "head", "row")}
    for number in numbers.values():
        if number is not None and not 1 <= number <= HIGHEST:
            raise OptionError(f"{start}: {number} is not possible; positions, layers and heads count from 1 to {HIGHEST}")
    layer, head, row = (None if number is None else number - 1 for number in numbers.values())
    return Place(kind, layer, head), row


def parse_row(text: str) -> tuple[Kind, int, int, int]:
    """Kind, layer, head and row of an address such as `cross.2.3:5`.

    Raises:
        OptionError: it is not of this form.
    """
    place, row = parse(text)
    if place.layer is None or place.head is None or row is None:
        raise OptionError(f"{quote_text(text, 60)} does not name a row of a head; write it as cross.2.3:5")
    return place.kind, place.layer, place.head, row


def row_address(place: tuple[Kind, int, int, int]) -> str:
    """`cross.2.3:5`, the inverse of `parse_row`."""
    kind, layer, head, row = place
    return f"{HeadPlace(kind, layer, head)}:{row + 1}"


def parse_head(text: str) -> tuple[int, int] | None:
    """Layer and head of `L2 H4` or `2.4`; None for anything else."""
    match = _HEAD.fullmatch(text.strip())
    if match is None or "0" in {number.lstrip("0") or "0" for number in match.groups()}:
        return None
    return int(match[1]) - 1, int(match[2]) - 1
