"""Addresses of attention: a kind, a layer of it, one head, one row of a head.

Text counts from 1, as people read; the numbers of an address in Python count from 0, as they index arrays:

| text           | what it names                                              |
|----------------|------------------------------------------------------------|
| `cross`        | all layers and heads of a kind                             |
| `cross.2`      | all heads of layer 2                                       |
| `cross.2.4`    | head 4 of layer 2                                          |
| `cross.2.mean` | the mean of the heads of layer 2, where a map is meant; `cross.2.max` is the strongest weight |
| `cross.2.4:5`  | row 5 of that head                                         |
| `L2 H4`, `2.4` | the same head in links and answers, where only cross-attention is meant |
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from transformer_viz.errors import OptionError, TransformerVizError, join_names, short_repr
from transformer_viz.terms import COMBINED, KINDS, Head, Kind
from transformer_viz.text_display import quote_text

Grid = Mapping[Kind, tuple[Sequence[int], int]]
"""The heads that there are: for each kind of attention the numbers of its layers, from 0, and how many heads each has."""

HIGHEST = 512
"""Layers, heads and positions that an address can name."""
_ADDRESS = re.compile(r"(?P<kind>[a-z]+)(?:\.(?P<layer>\d{1,3})(?:\.(?P<head>\d{1,3}))?)?(?::(?P<row>\d{1,3}))?", re.ASCII)
_HEAD = re.compile(r"[lL]?(\d{1,3})(?:[ .]?[hH]|[ .])(\d{1,3})", re.ASCII)


@dataclass(frozen=True)
class AttentionAddress:
    """A kind of attention, or a layer or head of it; None is every layer, or every head. A head needs its layer."""

    kind: Kind
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        for name, number in (("layer", self.layer), ("head", self.head)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Integral) or number < 0):
                raise OptionError(f"{name}={short_repr(number)} is not possible; it is a whole number from 0")

    def __str__(self) -> str:
        numbers = [number for number in (self.layer, self.head) if number is not None]
        return ".".join([self.kind, *(str(number + 1) for number in numbers)])

    @classmethod
    def read(cls, text: "str | AttentionAddress") -> "AttentionAddress":
        """Reads a text such as `cross.2`, or takes the address itself.

        Raises:
            OptionError: the text is no address.
        """
        if isinstance(text, AttentionAddress):
            return text
        address, row = parse(_checked_text(text))
        if row is not None:
            raise OptionError(f"{quote_text(text, 60)} names a row, which is not meant here; leave out :{row + 1}")
        return address

    def holds(self, head: "HeadAddress") -> bool:
        """Tells whether a head is one of those named."""
        return self.kind == head.kind and self.layer in (None, head.layer) and self.head in (None, head.head)


@dataclass(frozen=True, order=True)
class HeadAddress(AttentionAddress):
    """One head. Every function that takes a head takes such an address, or its text.

    Attributes:
        kind: `encoder`, `decoder` or `cross`.
        layer: the number of its layer, from 0.
        head: its place in the layer, from 0.

    Example:
        >>> import transformer_viz as tv
        >>> str(tv.HeadAddress("cross", layer=1, head=2))
        'cross.2.3'
        >>> tv.HeadAddress.read("cross.2.3").layer
        1
    """

    kind: Kind
    layer: int
    head: int

    @classmethod
    def read(cls, text: str | AttentionAddress) -> "HeadAddress":
        """The head that a text such as `cross.2.3` names, or the address itself.

        Raises:
            OptionError: the text names no head.
        """
        address = AttentionAddress.read(text)
        if address.layer is None or address.head is None:
            raise OptionError(f"{quote_text(str(address), 60)} does not name one head; write it as cross.2.3")
        return HeadAddress(address.kind, address.layer, address.head)


def is_address(text: str) -> bool:
    """Tells whether a text has the form of an address."""
    return _ADDRESS.fullmatch(text) is not None


def parse(text: str, what: str = "") -> tuple[AttentionAddress, int | None]:
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
    kind = check_kind(match["kind"], what=start)
    numbers = {name: None if match[name] is None else int(match[name]) for name in ("layer", "head", "row")}
    for number in numbers.values():
        if number is not None and not 1 <= number <= HIGHEST:
            raise OptionError(f"{start}: {number} is not possible; positions, layers and heads count from 1 to {HIGHEST}")
    layer, head, row = (None if number is None else number - 1 for number in numbers.values())
    return AttentionAddress(kind, layer, head), row


def check_kind(
    kind: object,
    there: Iterable[Kind] = KINDS,
    owner: str = "this run",
    what: str = "",
    error: type[TransformerVizError] = OptionError,
) -> Kind:
    """The kind of attention, where there is one of this name.

    Args:
        kind: the name.
        there: the kinds that there are.
        owner: what they belong to, in an error.
        what: words before an error.
        error: which error to raise.

    Raises:
        TransformerVizError: it is no kind, or the owner has none of it.
    """
    start = f"{what}: " if what else ""
    known = next((name for name in KINDS if name == kind), None)
    if known is None:
        raise error(f"{start}kind {short_repr(kind)} is not known; choose one of {join_names(KINDS)}")
    if known not in (kinds := tuple(there)):
        raise error(f"{start}{owner} has no {known} attention; it has {join_names(kinds)}")
    return known


def range_words(numbers: Sequence[int], first: int = 1) -> str:
    """`1 to 3`, or `1, 3` where one is missing, of ascending numbers from 0; they are written from `first` on."""
    is_row = len(numbers) > 1 and tuple(numbers) == tuple(range(len(numbers)))
    return f"{first} to {numbers[-1] + first}" if is_row else join_names(number + first for number in numbers)


def find(given: str | AttentionAddress, grid: Grid, owner: str = "this run", what: str = "") -> AttentionAddress:
    """The kind, the layer or the head that is meant, of those that there are.

    Args:
        given: an address, or its text.
        grid: the heads that there are.
        owner: what they belong to, in an error.
        what: words before an error, such as the option's name.

    Raises:
        OptionError: the text is no address, or there is no such head.
    """
    start = f"{what}: " if what else ""
    try:
        address = AttentionAddress.read(given)
    except OptionError as error:
        raise OptionError(f"{start}{error}") from error
    layers, n_heads = grid[check_kind(address.kind, grid, owner, what)]
    if address.layer not in (None, *layers) or address.head not in (None, *range(n_heads)):
        noun = "layer" if address.head is None else "head"
        raise OptionError(
            f"{start}{owner} has no {noun} {address}; its {address.kind} attention has layers {range_words(layers)}, "
            f"and heads {range_words(range(n_heads))} in each"
        )
    return address


def find_head(given: str | AttentionAddress, grid: Grid, owner: str = "this run", what: str = "") -> HeadAddress:
    """The head that is meant, of those that there are.

    Raises:
        OptionError: the text names no head, or there is no such head.
    """
    return HeadAddress.read(find(given, grid, owner, what))


def find_map(given: str | AttentionAddress, grid: Grid, owner: str = "this run") -> tuple[Kind, int, Head]:
    """The kind, the layer and the head of the map that is meant; without a head the first one.

    Args:
        given: an address, or its text, which may end in `.mean` or `.max` for all heads of a layer as one.
        grid: the heads that there are.
        owner: what they belong to, in an error.

    Raises:
        OptionError: the text is no address, or there is no such head.
    """
    place, combined = read_map(given)
    address = find(place, grid, owner)
    layer = grid[address.kind][0][0] if address.layer is None else address.layer
    return address.kind, layer, combined or address.head or 0


def read_map(given: str | AttentionAddress) -> tuple[AttentionAddress, Literal["mean", "max"] | None]:
    """Reads the address of a map, and how the heads of its layer are combined, if they are.

    Raises:
        OptionError: the text is no address.
    """
    combined = None
    if isinstance(given, str):
        combined = next((name for name in COMBINED if given.count(".") == 2 and given.endswith(f".{name}")), None)
        given = given.removesuffix(f".{combined}")
    return AttentionAddress.read(given), combined


def map_address(kind: Kind, layer: int, head: Head) -> str:
    """`cross.2.3` or `cross.2.mean`, of numbers from 0: the inverse of `find_map`."""
    return f"{kind}.{layer + 1}.{head if isinstance(head, str) else head + 1}"


def _checked_text(given: object) -> str:
    if not isinstance(given, str):
        raise OptionError(f"{short_repr(given)} is no head; write it as text, as in 'cross.2.3', or as a HeadAddress")
    return given


def parse_row(text: str) -> tuple[HeadAddress, int]:
    """The head and the row, from 0, of an address such as `cross.2.3:5`.

    Raises:
        OptionError: it is not of this form.
    """
    place, row = parse(text)
    if place.layer is None or place.head is None or row is None:
        raise OptionError(f"{quote_text(text, 60)} does not name a row of a head; write it as cross.2.3:5")
    return HeadAddress.read(place), row


def row_address(head: HeadAddress, row: int) -> str:
    """`cross.2.3:5`, the inverse of `parse_row`."""
    return f"{head}:{row + 1}"


def parse_head(text: str) -> tuple[int, int] | None:
    """Layer and head of `L2 H4` or `2.4`; None for anything else."""
    match = _HEAD.fullmatch(text.strip())
    if match is None or "0" in {number.lstrip("0") or "0" for number in match.groups()}:
        return None
    return int(match[1]) - 1, int(match[2]) - 1
