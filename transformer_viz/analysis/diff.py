"""What differs between two runs: `diff(before, after)`, over everything that a Trace records; so two files can be compared.

Recorded times, devices and versions are no differences. Numbers are compared with one absolute tolerance; a NaN,
which only a named mistake makes, equals a NaN. Swapping the runs turns the sign of every size. Of the attention those
layers, heads and cells are compared that `comparison` says both have. Numpy alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.align import common, distances, first_apart, largest, paired, places_apart, signed_size
from transformer_viz.analysis.comparison import check_traces, compare
from transformer_viz.analysis.diff_report import WHATS, Difference, TraceDiff, What, Where
from transformer_viz.errors import OptionError, listed, shortened
from transformer_viz.schema import finite_number
from transformer_viz.terms import KINDS, REASON_WORDS, Kind
from transformer_viz.trace.search import Search
from transformer_viz.trace.steps import Candidate
from transformer_viz.trace.trace import Trace

_IDS = ("target_ids", "output_ids")
_MODEL = ("checkpoint", "variant", "task")
_NO_DIFFERENCE = ("seconds", "device", "versions")
_LONGEST_NOTE = 400
_STEP_NUMBERS = ("probability", "log_probability", "sampling_probability")
_NODE_FIELDS = ("parent", "row", "step", "token", "token_id", "text", "rank", "place", "state", "pruned_by")
_NODE_NUMBERS = ("log_probability", "total", "score")


def diff(before: Trace, after: Trace, *, tolerance: float = 0.0, ignore: Iterable[What] = ()) -> TraceDiff:
    """Compares two runs in all that a Trace records.

    Args:
        before: the first run.
        after: the second run; sizes are after − before.
        tolerance: the largest difference of a number that is none. With 0 also the order of equally probable
            candidates and the rank of the written token must be equal; otherwise they may change places.
        ignore: parts that are not compared, for instance `["model"]`; see `diff_report.What`.

    Probabilities and candidates are compared as far as both runs have read the same tokens, attention and masks for
    the layers, heads, rows and columns that both have. Other shapes are a difference, not an error.

    Raises:
        OptionError: something else than two Traces, or an impossible keyword.
    """
    check_traces(before=before, after=after)
    finite_number("tolerance", tolerance, 0, 1e300)
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := sorted(ignored - set(WHATS)):
        raise OptionError(f"ignore={str(unknown[0])[:40]!r} is not possible; choose from {listed(WHATS)}")
    reader = _Reader(before, after, float(tolerance))
    found = [difference for difference in reader.all() if difference.what not in ignored]
    return TraceDiff(differences=tuple(found), notes=tuple(reader.notes()), tolerance=float(tolerance))


def _told_apart(candidates: Sequence[Candidate], ids: Sequence[int]) -> Sequence[Candidate]:
    """Candidates whose labels tell them apart: with their ids where there are any."""
    return [(f"{token} #{number}", p) for (token, p), number in zip(candidates, ids, strict=True)] if ids else candidates


def _rows_told_apart(search: Search) -> list[Sequence[Candidate]]:
    ids = search.candidate_ids or [()] * len(search.candidates)
    return list(map(_told_apart, search.candidates, ids))


class _Reader:
    """Reads two runs part by part."""

    def __init__(self, before: Trace, after: Trace, tolerance: float) -> None:
        self.before, self.after, self.tolerance = before, after, tolerance
        self.comparison = compare(before, after)
        self.within = 0.0
        """The largest difference that the tolerance allowed."""

    def all(self) -> Iterator[Difference]:
        a, b = self.before, self.after
        settings = sorted((a.made_by.keys() | b.made_by.keys()) - {*_MODEL, *_NO_DIFFERENCE})
        yield from self._fields("input", ("source", "source_tokens", "source_letters", "source_ids", "n_given"), a, b)
        yield from self._entries("model", _MODEL, a.made_by, b.made_by)
        yield from self._entries("settings", settings, a.made_by, b.made_by)
        yield from self._fields("tokens", ("target_tokens", "output_tokens", "text", "finished", *_IDS), a, b)
        yield from self._fields("answer", ("expected", "expected_tokens", "alignment"), a, b)
        yield from self._steps()
        yield from self._fills()
        for kind in KINDS:
            yield from self._layers(kind)
            yield from self._mask(kind)
        for what, part in (("attention", "weights"), ("scores", "scores")):
            for kind in KINDS:
                arrays = (getattr(side.attentions.get(kind), part, None) for side in (a, b))
                yield from self._arrays(what, kind, *arrays)
        yield from self._fields("changes", ("mistake", "edits"), a, b)
        yield from self._search(a.search, b.search)
        yield from self._groups()

    def notes(self) -> Iterator[str]:
        if self.within > 0:
            yield f"numbers within the tolerance differ by up to {self.within:.3g}"
        for name in _NO_DIFFERENCE:
            a, b = self.before.made_by.get(name), self.after.made_by.get(name)
            if a != b:
                yield f"{name}: {shortened(str(a), _LONGEST_NOTE)} → {shortened(str(b), _LONGEST_NOTE)}"

    def _steps(self) -> Iterator[Difference]:
        """As far as both have read the same."""
        a, b = self.before.steps, self.after.steps
        if bool(a) != bool(b):
            yield Difference(what="steps", where=Where(field="recorded_steps"), before=len(a), after=len(b))
            return
        # Tokens of one label may be different ones, where ids stand beside them.
        both = (self._both("target_tokens"), self._both("target_ids"))
        apart = [first_apart(first or (), second or ()) for first, second in both]
        alike = min((place for place in apart if place is not None), default=None)
        a, b = a[:alike], b[:alike]
        yield from self._numbers_of("steps", _STEP_NUMBERS, a, b)
        if self.tolerance == 0:
            yield from self._list("steps", "rank", [s.rank for s in a], [s.rank for s in b])
        first, second = ([_told_apart(step.candidates, step.candidate_ids) for step in steps] for steps in (a, b))
        yield from self._list("steps", "number_of_candidates", list(map(len, first)), list(map(len, second)))
        differs = list(self._candidates("steps", "candidates", first, second))
        yield from differs
        if self.tolerance == 0 and not differs:
            orders = ([tuple(token for token, _ in row) for row in rows] for rows in (first, second))
            yield from self._list("steps", "order_of_candidates", *orders)

    def _fills(self) -> Iterator[Difference]:
        """What would stand at the mask tokens of an encoder alone."""
        a, b = self._both("fills")
        yield from self._list("steps", "places_of_fills", [fill.place for fill in a], [fill.place for fill in b])
        if [fill.place for fill in a] == [fill.place for fill in b]:
            first, second = ([_told_apart(fill.candidates, fill.candidate_ids) for fill in fills] for fills in (a, b))
            yield from self._candidates("steps", "fills", first, second)

    def _groups(self) -> Iterator[Difference]:
        """Arrays by the names of what computed them, and their notes."""
        a, b = self._both("groups")
        yield from self._value("groups", "names", sorted(a), sorted(b))
        for name in sorted(a.keys() & b.keys()):
            x, y = a[name], b[name]
            yield from self._value("groups", f"notes_of_{name}", x.notes, y.notes)
            for array in sorted(x.arrays.keys() | y.arrays.keys()):
                field = f"{name}/{array}"
                first, second = x.arrays.get(array), y.arrays.get(array)
                shapes = (None if found is None else found.shape for found in (first, second))
                yield from self._value("groups", f"shape_of_{field}", *shapes)
                if first is not None and second is not None and first.shape == second.shape:
                    sides = (first.astype(np.float64), second.astype(np.float64))
                    yield from self._largest("groups", *sides, lambda _, field=field: Where(field=field))

    def _both(self, name: str) -> tuple[Any, Any]:
        return getattr(self.before, name), getattr(self.after, name)

    def _layers(self, kind: Kind) -> Iterator[Difference]:
        """Which layers were kept, where both have as many; else their shapes say it."""
        before, after = self.before.attentions.get(kind), self.after.attentions.get(kind)
        if before is not None and after is not None and before.n_layers == after.n_layers:
            yield from self._value("attention", f"layers_of_{kind}", before.layers, after.layers)

    def _mask(self, kind: Kind) -> Iterator[Difference]:
        """The first cell whose reason is another one."""
        if kind not in self.comparison.kinds:
            return
        a, b = common(*self.comparison.reasons(kind))
        differ = np.argwhere(a != b)
        if len(differ):
            place = tuple(map(int, differ[0]))
            x, y = (REASON_WORDS[int(reasons[place])] for reasons in (a, b))
            yield Difference(what="masks", where=self._cell("mask", kind, place), before=x, after=y, count=len(differ))

    def _arrays(self, what: What, kind: Kind, a: np.ndarray | None, b: np.ndarray | None) -> Iterator[Difference]:
        """Shapes, and of what both have the cell that differs most."""
        yield from self._value(what, "shape", *(None if array is None else array.shape for array in (a, b)), kind)
        if a is not None and b is not None and kind in self.comparison.kinds:
            a, b = common(*self.comparison.both(kind, a, b))
            yield from self._largest(what, a, b, lambda place: self._cell(what, kind, place))

    def _search(self, a: Search | None, b: Search | None) -> Iterator[Difference]:
        if a is None or b is None:
            first, second = (None if search is None else f"{len(search.nodes)} continuations" for search in (a, b))
            yield from self._value("search", "search", first, second)
            return
        yield from self._entries("search", sorted(a.settings.keys() | b.settings.keys()), a.settings, b.settings)
        yield from self._fields("search", ("best", "alignment", "opening", "opening_ids"), a, b)
        yield from self._value("search", "nodes", len(a.nodes), len(b.nodes))
        if differ := list(self._nodes(a, b)):
            yield from differ
            return  # numbers and rows of other continuations say nothing
        yield from self._numbers_of("search", _NODE_NUMBERS, a.nodes, b.nodes, "node_")
        for kind in [kind for kind in KINDS if kind in a.rows and kind in b.rows]:
            yield from self._rows(kind, a.rows[kind], b.rows[kind])
        yield from self._candidates("search", "row_candidates", *map(_rows_told_apart, (a, b)))

    def _nodes(self, a: Search, b: Search) -> Iterator[Difference]:
        """The first continuation that is another one, in the fields that differ."""
        pairs = enumerate(zip(a.nodes, b.nodes, strict=False))
        apart = [(i, name) for i, (x, y) in pairs for name in _NODE_FIELDS if getattr(x, name) != getattr(y, name)]
        if apart:
            first = apart[0][0]
            names = [name for i, name in apart if i == first]
            x, y = ({name: getattr(search.nodes[first], name) for name in names} for search in (a, b))
            where, count = Where(field="node", position=first), len({i for i, _ in apart})
            yield Difference(what="search", where=where, before=x, after=y, count=count)

    def _rows(self, kind: Kind, a: np.ndarray, b: np.ndarray) -> Iterator[Difference]:
        """Rows of attention of a search."""
        name, layers = f"{kind}_rows", self.before.attentions[kind].layers
        yield from self._value("search", f"shape_of_{name}", a.shape, b.shape)
        if a.shape == b.shape and layers == self.after.attentions[kind].layers:
            yield from self._largest(
                "search", a, b, lambda at: Where(field=name, position=at[0], layer=layers[at[1]], head=at[2], key=at[3])
            )

    # What a difference of one kind of thing is

    def _fields(self, what: What, names: Iterable[str], a: Trace | Search, b: Trace | Search) -> Iterator[Difference]:
        """Attributes; of a list each entry."""
        for name in names:
            x, y = getattr(a, name), getattr(b, name)
            is_list = isinstance(x, tuple | list) or isinstance(y, tuple | list)
            yield from self._list(what, name, x or (), y or ()) if is_list else self._value(what, name, x, y)

    def _entries(self, what: What, names: Iterable[str], a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
        for name in names:
            yield from self._value(what, name, a.get(name), b.get(name))

    def _value(self, what: What, field: str, a: Any, b: Any, kind: Kind | None = None) -> Iterator[Difference]:
        if a != b:
            yield Difference(what=what, where=Where(field=field, kind=kind), before=a, after=b)

    def _list(self, what: What, field: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[Difference]:
        """The first place that differs; a list that has ended has None there."""
        if places := places_apart(a, b):
            i = places[0]
            x, y = (side[i] if i < len(side) else None for side in (a, b))
            if x is None and y is None:  # an entry that is None against one that is not there
                yield from self._value(what, f"length_of_{field}", len(a), len(b))
            else:
                yield Difference(what=what, where=Where(field=field, position=i), before=x, after=y, count=len(places))

    def _candidates(
        self, what: What, field: str, a: Sequence[Sequence[Candidate]], b: Sequence[Sequence[Candidate]]
    ) -> Iterator[Difference]:
        """Lists of candidates, each paired by token."""
        found = [(row, *pair) for row, sides in enumerate(zip(a, b, strict=False)) for pair in paired(*sides)]
        places = [Where(field=field, position=row, token=token) for row, token, *_ in found]
        yield from self._numbers(what, [p for *_, p, _ in found], [q for *_, q in found], places)

    def _numbers_of(
        self, what: What, names: Iterable[str], a: Sequence[Any], b: Sequence[Any], prefix: str = ""
    ) -> Iterator[Difference]:
        """Numbers of records: of each name the one that differs most."""
        for name in names:
            places = [Where(field=prefix + name, position=i) for i in range(len(a))]
            yield from self._numbers(what, [getattr(x, name) for x in a], [getattr(x, name) for x in b], places)

    def _numbers(
        self, what: What, a: Sequence[float | None], b: Sequence[float | None], places: Sequence[Where]
    ) -> Iterator[Difference]:
        """The number that differs most; None is not recorded, which differs from every number."""
        pairs = [(x, y, where) for x, y, where in zip(a, b, places, strict=False) if (x, y) != (None, None)]
        known = [(x, y, where) for x, y, where in pairs if x is not None and y is not None]
        if len(known) < len(pairs):
            x, y, where = next(pair for pair in pairs if None in pair)
            yield Difference(what=what, where=where, before=x, after=y, count=len(pairs) - len(known))
        first, second = (np.array([pair[side] for pair in known], np.float64) for side in (0, 1))
        yield from self._largest(what, first, second, lambda place: known[place[0]][2])

    def _largest(
        self, what: What, a: np.ndarray, b: np.ndarray, where: Callable[[tuple[int, ...]], Where]
    ) -> Iterator[Difference]:
        """The place of two arrays that differs most, and how many do."""
        if not a.size:
            return
        size = distances(a, b)
        apart = size > self.tolerance
        self.within = max(self.within, float(size.max(where=~apart, initial=0.0)))
        if apart.any():
            place = largest(size)
            x, y = float(a[place]), float(b[place])
            yield Difference(what=what, where=where(place), before=x, after=y, size=signed_size(x, y), count=int(apart.sum()))

    def _cell(self, field: str, kind: Kind, place: tuple[int, ...]) -> Where:
        """(query, key) or (layer, head, query, key), with the first run's labels."""
        *by_head, query, key = place
        layer, head = (self.comparison.layers(kind)[by_head[0]], by_head[1]) if by_head else (None, None)
        return Where(
            field=field,
            kind=kind,
            layer=layer,
            head=head,
            query=query,
            key=key,
            query_token=self.before.attentions[kind].queries[query],
            key_token=self.before.attentions[kind].keys[key],
        )
