"""Edits: changes to a run's attention, and the short text in which they are written.

An edit is data: a run applies it through the tap, a Trace keeps its text, and the URL contains it.
In Python everything counts from 0; in the text, as everywhere a person reads, from 1:

| text                      | what it does                                                          |
|---------------------------|-----------------------------------------------------------------------|
| `cross:off`               | nothing is masked                                                     |
| `cross:3-5`               | the cell of query 3 and key 5 is flipped: masked becomes allowed and the other way round |
| `cross:3-*`, `cross:*-5`  | a whole row or column is flipped                                      |
| `cross.2.4:zero`          | the head's output is zeros                                            |
| `cross.2.4:3=5`           | the row of query 3 puts all its weight on key 5                       |
| `cross.2.4:3=5@0.75+1@0.25` | … or divides it                                                     |
| `cross.2.4:3=uniform`     | … or spreads it uniformly over all keys                               |

`cross` is all layers and heads, `cross.2` all heads of layer 2. Several edits are separated by commas.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from transformer_viz.addresses import HIGHEST, AttentionAddress, is_address
from transformer_viz.addresses import parse as parse_address
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind
from transformer_viz.text_display import quote_text

MOST_EDITS = 200
_CELL = re.compile(r"(\d{1,3}|\*)-(\d{1,3}|\*)", re.ASCII)
_ROW = re.compile(r"(\d{1,3}|\*)=(.+)", re.ASCII)
_SHARE = re.compile(r"(\d{1,3})(?:@(\d{1,3}(?:\.\d{1,6})?))?", re.ASCII)
_FORMS = "cross:off, cross:3-5, cross:3-*, cross:*-5, cross.2.4:zero, cross.2.4:3=5, cross.2.4:3=uniform"


@dataclass(frozen=True)
class MaskOff:
    """An edit after which nothing is masked at a place."""

    place: AttentionAddress

    def __str__(self) -> str:
        return f"{self.place}:off"


@dataclass(frozen=True)
class Flip:
    """Masked becomes allowed and the other way round; None is every query, or every key."""

    place: AttentionAddress
    query: int | None
    key: int | None

    def __str__(self) -> str:
        return f"{self.place}:{_number(self.query)}-{_number(self.key)}"


@dataclass(frozen=True)
class HeadOff:
    """The head's output is zeros; its weights stay what they are."""

    place: AttentionAddress

    def __str__(self) -> str:
        return f"{self.place}:zero"


@dataclass(frozen=True)
class Force:
    """A row of weights is replaced. `shares` are (key, weight) pairs; empty spreads the weight uniformly. None is every query.

    Cells to which a forced row gives weight count as allowed, whatever the mask says, since a masked cell never has weight.
    """

    place: AttentionAddress
    query: int | None
    shares: tuple[tuple[int, float], ...]

    def __str__(self) -> str:
        if not self.shares:
            return f"{self.place}:{_number(self.query)}=uniform"
        alone = len(self.shares) == 1 and self.shares[0][1] == 1
        parts = [str(key + 1) if alone else f"{key + 1}@{_decimal(weight)}" for key, weight in self.shares]
        return f"{self.place}:{_number(self.query)}={'+'.join(parts)}"


Edit = MaskOff | Flip | HeadOff | Force


def parse(text: str) -> tuple[Edit, ...]:
    """Edits from their text.

    Raises:
        OptionError: a part has none of the forms; the message has the part and all forms.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > MOST_EDITS:
        raise OptionError(f"{len(parts)} edits are too many; at most {MOST_EDITS} are possible. A row or column is one edit.")
    return tuple(_one(part) for part in parts)


def written(edits: Iterable[Edit]) -> str:
    """The text that `parse` reads."""
    return ",".join(map(str, edits))


def read(edits: Iterable[Edit | str]) -> tuple[Edit, ...]:
    """Edits given as objects or as text, in any mixture."""
    if isinstance(edits, str):
        return parse(edits)
    return tuple(e for edit in edits for e in (parse(edit) if isinstance(edit, str) else (edit,)))


def is_off(edits: Iterable[Edit | str], kind: Kind, layer: int, head: int | str) -> bool:
    """Tells whether one of these edits switches this head off; `mean` and `max` of a layer are, where all its heads are."""
    places = [edit.place for edit in read(edits) if isinstance(edit, HeadOff) and edit.place.kind == kind]
    return any(place.layer in (None, layer) and place.head in (None, head) for place in places)


def _one(part: str) -> Edit:
    place_text, colon, what = part.partition(":")
    if not colon or not is_address(place_text):
        raise _wrong(part)
    place, _ = parse_address(place_text, f"edit {quote_text(part, 60)}")
    if what == "off":
        return MaskOff(place)
    if what == "zero":
        return HeadOff(place)
    if cell := _CELL.fullmatch(what):
        query, key = (_position(number, part) for number in cell.groups())
        if query is None and key is None:
            raise _wrong(part)
        return Flip(place, query, key)
    if row := _ROW.fullmatch(what):
        return Force(place, _position(row[1], part), _shares(row[2], part))
    raise _wrong(part)


def _shares(text: str, part: str) -> tuple[tuple[int, float], ...]:
    if text == "uniform":
        return ()
    shares = []
    for share in text.split("+"):
        match = _SHARE.fullmatch(share)
        if match is None:
            raise _wrong(part)
        key = _position(match[1], part)
        assert key is not None
        shares.append((key, 1.0 if match[2] is None else float(match[2])))
    total = math.fsum(weight for _, weight in shares)
    if abs(total - 1) > 1e-5 or len({key for key, _ in shares}) != len(shares):
        raise OptionError(
            f"edit {quote_text(part, 60)}: the weights of a row add up to 1 and name each key once; these add up to {total:g}"
        )
    return tuple(shares)


def _position(number: str, part: str) -> int | None:
    if number == "*":
        return None
    if not 1 <= int(number) <= HIGHEST:
        raise OptionError(
            f"edit {quote_text(part, 60)}: {number} is not possible; positions, layers and heads count from 1 to {HIGHEST}"
        )
    return int(number) - 1


def _number(position: int | None) -> str:
    return "*" if position is None else str(position + 1)


def _decimal(weight: float) -> str:
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def _wrong(part: str) -> OptionError:
    return OptionError(f"edit {quote_text(part, 60)} is not understood; edits look like {_FORMS}")
