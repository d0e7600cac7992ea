"""What `diff` finds: single differences with their places, and the verdict; for people, for programs and for JSON."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from transformer_viz.errors import join_names
from transformer_viz.numbers_in_words import count_words
from transformer_viz.schema import to_plain
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.text_display import display_token, shorten

What = Literal[
    "input", "model", "settings", "tokens", "answer", "steps", "masks", "attention", "scores", "changes", "search", "groups",
    "attributions", "insides",
]  # fmt: skip
WHATS: tuple[What, ...] = get_args(What)
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Where:
    """The place of a difference; numbers count from 0, what does not apply is None.

    Attributes:
        field: the name of what differs, as in the Trace.
        kind: of attention.
        layer: of attention.
        head: of attention; None also where all heads share a mask.
        query: row.
        key: column.
        query_token: the label of the row, in the first run.
        key_token: the label of the column, in the first run.
        position: in a list of tokens, steps or nodes.
        token: the candidate.
        cell: of an array that is no attention.
    """

    field: str
    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    key: int | None = None
    query_token: str | None = None
    key_token: str | None = None
    position: int | None = None
    token: str | None = None
    cell: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """In words; numbers count from 1."""
        numbered = (("layer", self.layer), ("head", self.head), ("query", self.query), ("key", self.key))
        tokens = {"query": self.query_token, "key": self.key_token}
        words = [shorten(self.field.replace("_", " "), _LONGEST), *([KIND_TITLES[self.kind]] if self.kind else [])]
        for name, number in (*numbered, ("position", self.position)):
            if number is not None:
                words.append(
                    f"{name} {number + 1}" + (f" {display_token(token)!r}" if (token := tokens.get(name)) is not None else "")
                )
        words += [] if self.token is None else [repr(display_token(self.token))]
        return ", ".join([*words, *([] if self.cell is None else [f"cell {join_names(number + 1 for number in self.cell)}"])])


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference.

    Attributes:
        what: which part of a run.
        where: the place; of several numbers the one that differs most, of several tokens the first.
        before: what the first run has there; None where it has nothing.
        after: what the second run has there.
        size: after − before for numbers; ±∞ where one of them is not a number; None for what is no number.
        count: in how many places this field differs.
    """

    what: What
    where: Where
    before: Any
    after: Any
    size: float | None = None
    count: int = 1

    def __str__(self) -> str:
        """One line."""
        notes = [] if self.size is None else [f"{self.size:+.6g}"]
        if self.count > 1:
            notes.append(f"the {'first' if self.size is None else 'largest'} of {self.count}")
        place = str(self.where).removeprefix(f"{self.what}, ")
        before, after = _shown(self.before), _shown(self.after)
        if before == after:  # a difference behind the sixth digit, or far into a text
            first, second = repr(self.before), repr(self.after)
            place_of_sign = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
            start = max(0, place_of_sign - _LONGEST // 2)
            before, after = ("…" * (start > 0) + shorten(text[start:], _LONGEST) for text in (first, second))
        return f"{self.what}: {place}: {before} → {after}" + (f" ({', '.join(notes)})" if notes else "")


@dataclass(frozen=True, kw_only=True)
class TraceDiff:
    """What differs between two runs.

    Attributes:
        differences: in the order of the parts of a run; none when the runs are equal.
        notes: what differs and is no difference: times, devices, versions, numbers within the tolerance.
        tolerance: the largest difference of a number that was allowed.
    """

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    tolerance: float

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return not self.differences

    def __str__(self) -> str:
        """The verdict, and a line for each difference and note."""
        allowed = "to the last bit" if self.tolerance == 0 else f"within {self.tolerance:g}"
        n = len(self.differences)
        first = f"Equal {allowed}." if self.equal else f"Different: {count_words(n, 'difference')} (not equal {allowed})."
        return "\n".join([first, *(f"  {found}" for found in self.differences), *(f"  note: {note}" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data; what is not finite becomes None, what does not apply is left out of `where`."""
        plain = to_plain(self)
        for difference in plain["differences"]:
            difference["where"] = {name: value for name, value in difference["where"].items() if value is not None}
        return {"equal": self.equal, **plain}


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return shorten(f"{value:.6g}" if isinstance(value, float) else repr(value), _LONGEST)
