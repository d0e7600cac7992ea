"""Differences between two runs: `diff(before, after)`, over everything that a Trace records; so two files can be compared.

Recorded times, devices and versions are no differences. Numbers are compared with one absolute tolerance; a NaN,
which only a named mistake makes, equals a NaN. Swapping the runs turns the sign of every size. Of the attention those
layers, heads and cells are compared that `comparison` says both have. Numpy alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, get_args

import numpy as np

from transformer_viz.comparison.align import common, distances, first_difference, largest, paired, signed_size
from transformer_viz.comparison.compare import check_traces, compare
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import count_words
from transformer_viz.schema import finite_number, to_plain
from transformer_viz.terms import KINDS, REASON_WORDS, Kind, kind_words
from transformer_viz.text_display import display_token, shorten
from transformer_viz.trace.search import Search
from transformer_viz.trace.steps import Candidate, Fill, Step
from transformer_viz.trace.trace import Trace

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
        words = [shorten(self.field.replace("_", " "), _LONGEST), *([kind_words(self.kind)] if self.kind else [])]
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
    """The differences between two runs.

    Attributes:
        differences: in the order of the parts of a run; none when the runs are equal.
        notes: what differs and is no difference: times, devices, versions, numbers within the tolerance.
        tolerance: the largest difference of a number that was allowed.
    """

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    tolerance: float

    def __repr__(self) -> str:
        """One line."""
        return f"<TraceDiff {str(self).splitlines()[0]}>"

    @property
    def equal(self) -> bool:
        """Tells whether nothing differs by more than the tolerance."""
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


_FIELDS: dict[What, tuple[str, ...]] = {
    "input": ("source", "source_tokens", "source_letters", "source_ids", "n_given"),
    "tokens": ("target_tokens", "output_tokens", "text", "finished", "target_ids", "output_ids"),
    "answer": ("expected", "expected_tokens", "alignment"),
    "changes": ("mistake", "edits"),
    "search": ("search",),
    "groups": ("groups",),
    "attributions": ("attributions",),
}
"""The fields of a Trace that are compared as they are, by the part of the run that they belong to."""
_MODEL = ("checkpoint", "variant", "task")
_NO_DIFFERENCE = ("seconds", "device", "versions")
_LONGEST_NOTE = 400


def diff(before: Trace, after: Trace, *, tolerance: float = 0.0, ignore: Iterable[What] = ()) -> TraceDiff:
    """Compares two runs in all that a Trace records.

    Args:
        before: the first run.
        after: the second run; sizes are after − before.
        tolerance: numbers that differ by no more than this count as equal. Above 0, candidates that are equally probable
            within it may change places, and the rank of the written token with them.
        ignore: parts that are not compared, one or a list of `input`, `model`, `settings`, `tokens`, `answer`, `steps`,
            `masks`, `attention`, `scores`, `changes`, `search`, `groups`, `attributions` and `insides`.

    Probabilities and candidates are compared as far as both runs have read the same tokens; attention and masks in the
    layers, heads, rows and columns that both have. Different shapes are reported, and are no error.

    Returns:
        The differences: `equal`, a line for each by `print`, and `differences`, each with `what`, `where` and `size`.

    Raises:
        OptionError: an argument is not a Trace, or an impossible keyword.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> a, b = (tv.decode(model, text) for text in ("hello", "hells"))
        >>> tv.diff(a, a).equal, tv.diff(a, b).equal
        (True, False)
        >>> next(one.after for one in tv.diff(a, b).differences if one.where.field == "text")
        'slleh'
    """
    check_traces(before=before, after=after)
    finite_number("tolerance", tolerance, 0, 1e300)
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := sorted(ignored - set(WHATS)):
        raise OptionError(f"ignore={str(unknown[0])[:40]!r} is not possible; choose from {join_names(WHATS)}")
    walk = _Walk(before, after, float(tolerance))
    walk.run()
    # Of a field the largest difference, or the first, and how many there are; in the order of the parts.
    largest = []
    for alike in walk.apart.values():
        most = alike[0] if alike[0].size is None else max(alike, key=lambda one: abs(one.size or 0))
        largest.append(replace(most, count=sum(one.count for one in alike)))
    largest.sort(key=lambda one: WHATS.index(one.what))
    notes = [f"numbers within the tolerance differ by up to {walk.within:.3g}"] if walk.within > 0 else []
    for name in _NO_DIFFERENCE:
        a, b = before.made_by.get(name), after.made_by.get(name)
        if a != b:
            notes.append(f"{name}: {shorten(str(a), _LONGEST_NOTE)} → {shorten(str(b), _LONGEST_NOTE)}")
    differences = tuple(difference for difference in largest if difference.what not in ignored)
    return TraceDiff(differences=differences, notes=tuple(notes), tolerance=float(tolerance))


class _Walk:
    """Goes through two runs field by field, and collects what differs."""

    def __init__(self, before: Trace, after: Trace, tolerance: float) -> None:
        self.before, self.after, self.tolerance = before, after, tolerance
        self.comparison = compare(before, after)
        self.within = 0.0
        """The largest difference that the tolerance allowed."""
        self.apart: dict[tuple[Any, ...], list[Difference]] = {}
        """The differences, those of one field together."""

    def run(self) -> None:
        """Compares all parts of the two runs."""
        a, b = self.before, self.after
        for what, names in _FIELDS.items():
            for name in names:
                self._compare(what, getattr(a, name), getattr(b, name), "" if name == what else name)
        for name in sorted((a.made_by.keys() | b.made_by.keys()) - {*_NO_DIFFERENCE}):
            x, y = a.made_by.get(name), b.made_by.get(name)
            if x != y:
                self._add("model" if name in _MODEL else "settings", Where(field=name), x, y)
        # Steps as far as both runs have read the same tokens. Tokens of one label may differ, where ids stand beside them.
        read = [(getattr(a, name), getattr(b, name)) for name in ("target_tokens", "target_ids")]
        apart = [first_difference(first or (), second or ()) for first, second in read]
        alike = min((place for place in apart if place is not None), default=None)
        if bool(a.steps) != bool(b.steps):
            self._add("steps", Where(field="recorded_steps"), len(a.steps), len(b.steps))
        else:
            for i, (x, y) in enumerate(zip(a.steps[:alike], b.steps[:alike], strict=False)):
                self._compare("steps", x, y, position=i)
            self._compare("steps", a.fills, b.fills, "fills")
        for kind in KINDS:
            self._compare_attention(kind)
        first, second = ({inside.address: inside for inside in run.insides} for run in (a, b))
        self._compare("insides", first, second)

    def _add(self, what: What, where: Where, a: Any, b: Any, size: float | None = None, count: int = 1) -> None:
        difference = Difference(what=what, where=where, before=a, after=b, size=size, count=count)
        self.apart.setdefault((what, where.field, where.kind, size is None), []).append(difference)

    def _compare(self, what: What, a: Any, b: Any, field: str = "", position: int | None = None) -> None:
        """Dataclasses field by field, mappings by name, lists and arrays by position, numbers by the tolerance."""
        where, path = Where(field=field or what, position=position), f"{field}." if field else ""
        if is_dataclass(a) and is_dataclass(b):
            left_out = set()
            if isinstance(a, Step):  # what was written is compared with the tokens; equally probable tokens may change places
                left_out = {"token", "token_id", "rank"} if self.tolerance else {"token", "token_id"}
            if isinstance(a, Step | Fill | Search):
                left_out |= {"candidates", "candidate_ids"}
            for name in [one.name for one in fields(a) if one.init and one.name not in left_out]:
                self._compare(what, getattr(a, name), getattr(b, name), path + name, position)
            if isinstance(a, Step | Fill | Search):
                self._compare_candidates(what, f"{path}candidates", _rows(a), _rows(b), position or 0)
        elif isinstance(a, Mapping) and isinstance(b, Mapping):
            for name in [*a, *(name for name in b if name not in a)]:
                self._compare(what, a.get(name), b.get(name), f"{path}{name}", position)
        elif isinstance(a, tuple | list | None) and isinstance(b, tuple | list | None) and a != b:
            for i, (x, y) in enumerate(zip_longest(a or (), b or ())):
                if x is None and y is None and i >= min(len(a or ()), len(b or ())):
                    self._add(what, Where(field=f"length_of_{field}"), len(a or ()), len(b or ()))
                    break
                self._compare(what, x, y, field, i)
        elif isinstance(a, float) and isinstance(b, float):
            if a != b and (farthest := self._farthest(np.array([a]), np.array([b]))):
                self._add(what, where, *farthest[1:])
        elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
            if farthest := self._farthest(a, b):
                self._add(what, replace(where, cell=farthest[0]), *farthest[1:])
        elif isinstance(a, np.ndarray) or isinstance(b, np.ndarray) or a != b:
            self._add(what, where, _value_words(a), _value_words(b))

    def _farthest(self, a: np.ndarray, b: np.ndarray) -> tuple[tuple[int, ...], float, float, float, int] | None:
        """The place of two arrays that differs most, both numbers, their difference, and how many differ."""
        if not a.size:
            return None
        sizes = distances(a, b)
        apart = sizes > self.tolerance
        self.within = max(self.within, float(sizes.max(where=~apart, initial=0.0)))
        if not apart.any():
            return None
        place = largest(sizes)
        x, y = float(a[place]), float(b[place])
        return place, x, y, signed_size(x, y), int(apart.sum())

    def _compare_candidates(
        self, what: What, field: str, a: Sequence[Sequence[Candidate]], b: Sequence[Sequence[Candidate]], first: int
    ) -> None:
        """Rows of candidates, paired by token; with no tolerance their order too. The first row is at position `first`."""
        for row, sides in enumerate(zip(a, b, strict=False), start=first):
            if len(sides[0]) != len(sides[1]):
                self._add(what, Where(field=f"number_of_{field}", position=row), *map(len, sides))
            is_apart = False
            for token, p, q in paired(*sides):
                if p != q and (farthest := self._farthest(np.array([p]), np.array([q]))):
                    self._add(what, Where(field=field, position=row, token=token), *farthest[1:])
                    is_apart = True
            orders = [[token for token, _ in side] for side in sides]
            if self.tolerance == 0 and not is_apart and orders[0] != orders[1]:
                self._add(what, Where(field=f"order_of_{field}", position=row), orders[0], orders[1])

    def _compare_attention(self, kind: Kind) -> None:
        """Layers, where both have as many; the first cell that is masked otherwise; the weight that differs most."""
        before, after = self.before.attentions.get(kind), self.after.attentions.get(kind)
        if before is not None and after is not None and before.n_layers == after.n_layers and before.layers != after.layers:
            self._add("attention", Where(field=f"layers_of_{kind}"), before.layers, after.layers)
        is_common = kind in self.comparison.kinds
        if is_common:
            a, b = common(*self.comparison.reasons(kind))
            if len(differ := np.argwhere(a != b)):
                place = tuple(map(int, differ[0]))
                words = [REASON_WORDS[int(reasons[place])] for reasons in (a, b)]
                self._add("masks", self._cell("mask", kind, place), words[0], words[1], count=len(differ))
        parts: tuple[tuple[What, str], ...] = (("attention", "weights"), ("scores", "scores"))
        for what, part in parts:
            first, second = (getattr(attention, part, None) for attention in (before, after))
            shapes = [None if array is None else array.shape for array in (first, second)]
            if shapes[0] != shapes[1]:
                self._add(what, Where(field="shape", kind=kind), shapes[0], shapes[1])
            if first is not None and second is not None and is_common:
                first, second = common(*self.comparison.both(kind, first, second))
                if farthest := self._farthest(first, second):
                    self._add(what, self._cell(what, kind, farthest[0]), *farthest[1:])

    def _cell(self, field: str, kind: Kind, place: tuple[int, ...]) -> Where:
        """(query, key) or (layer, head, query, key), with the first run's labels."""
        *by_head, query, key = place
        layer, head = (self.comparison.layers(kind)[by_head[0]], by_head[1]) if by_head else (None, None)
        attention = self.before.attentions[kind]
        return Where(
            field=field,
            kind=kind,
            layer=layer,
            head=head,
            query=query,
            key=key,
            query_token=attention.queries[query],
            key_token=attention.keys[key],
        )


def _value_words(value: Any) -> Any:
    """A short form of a value: an array's shape, a dataclass's name; other values are returned as they are."""
    return value.shape if isinstance(value, np.ndarray) else f"a {type(value).__name__}" if is_dataclass(value) else value


def _rows(part: Step | Fill | Search) -> list[Sequence[Candidate]]:
    """Candidates whose labels tell them apart: with their ids where there are any."""
    rows = part.candidates if isinstance(part, Search) else [part.candidates]
    ids = part.candidate_ids if isinstance(part, Search) else [part.candidate_ids]
    return [
        [(f"{token} #{number}", p) for (token, p), number in zip(row, numbers, strict=True)] if numbers else row
        for row, numbers in zip_longest(rows, ids, fillvalue=())
    ]
