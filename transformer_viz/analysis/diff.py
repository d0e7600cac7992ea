"""What differs between two runs: `diff(before, after)`. Numpy alone, so two files can be compared where no model is.

Recorded times, devices and versions are no differences. Numbers are compared with one absolute tolerance; a NaN,
which only a named mistake makes, equals a NaN. Swapping the runs turns the sign of every size.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.aligned import common, n_alike, paired, sizes
from transformer_viz.analysis.diff_report import WHATS, Difference, TraceDiff, What, Where
from transformer_viz.errors import OptionError, listed, shortened
from transformer_viz.terms import KINDS, REASON_WORDS, Kind
from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Step, Trace

_MODEL = ("checkpoint", "variant", "task")
_NO_DIFFERENCE = ("seconds", "device", "versions")
_LONGEST_NOTE = 400
_STEP_NUMBERS = ("probability", "log_probability", "sampling_probability")
_NODE_FIELDS = ("parent", "row", "step", "token", "text", "rank", "place", "state", "pruned_by")
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
    the rows and columns that both have. Other shapes are a difference, not an error.

    Raises:
        OptionError: something else than two Traces, or an impossible keyword.
    """
    for name, run in (("before", before), ("after", after)):
        if not isinstance(run, Trace):
            raise OptionError(f"{name} is {type(run).__name__}, not a Trace; a file is read with load_trace")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise OptionError(f"tolerance={tolerance!r} is not possible; it is a number from 0")
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := sorted(ignored - set(WHATS)):
        raise OptionError(f"ignore={str(unknown[0])[:40]!r} is not possible; choose from {listed(WHATS)}")
    comparison = _Comparison(before, after, float(tolerance))
    found = [difference for difference in comparison.all() if difference.what not in ignored]
    return TraceDiff(differences=tuple(found), notes=tuple(comparison.notes()), tolerance=float(tolerance))


class _Comparison:
    """One comparison of two runs."""

    def __init__(self, before: Trace, after: Trace, tolerance: float) -> None:
        self.before, self.after, self.tolerance = before, after, tolerance
        self.within = 0.0
        """The largest difference that the tolerance allowed."""

    def all(self) -> Iterator[Difference]:
        yield from self._input()
        yield from self._made_by()
        yield from self._tokens()
        yield from self._steps()
        for kind in KINDS:
            yield from self._layers(kind)
            yield from self._mask(kind)
        for kind in KINDS:
            yield from self._arrays("attention", kind, self.before.attentions(kind), self.after.attentions(kind))
        for kind in KINDS:
            yield from self._arrays("scores", kind, self.before.scores.get(kind), self.after.scores.get(kind))
        yield from self._value("changes", "mistake", self.before.mistake, self.after.mistake)
        yield from self._list("changes", "edits", self.before.edits, self.after.edits)
        yield from self._search(self.before.search, self.after.search)

    def notes(self) -> Iterator[str]:
        if self.within > 0:
            yield f"numbers within the tolerance differ by up to {self.within:.3g}"
        for name in _NO_DIFFERENCE:
            a, b = self.before.made_by.get(name), self.after.made_by.get(name)
            if a != b:
                yield f"{name}: {shortened(str(a), _LONGEST_NOTE)} → {shortened(str(b), _LONGEST_NOTE)}"

    def _input(self) -> Iterator[Difference]:
        yield from self._value("input", "source", self.before.source, self.after.source)
        for name in ("source_tokens", "source_letters"):
            yield from self._list("input", name, getattr(self.before, name), getattr(self.after, name))

    def _made_by(self) -> Iterator[Difference]:
        a, b = self.before.made_by, self.after.made_by
        for name in _MODEL:
            yield from self._value("model", name, a.get(name), b.get(name))
        for name in sorted((a.keys() | b.keys()) - {*_MODEL, *_NO_DIFFERENCE}):
            yield from self._value("settings", name, a.get(name), b.get(name))

    def _tokens(self) -> Iterator[Difference]:
        for name in ("target_tokens", "output_tokens"):
            yield from self._list("tokens", name, getattr(self.before, name), getattr(self.after, name))
        for name in ("text", "finished"):
            yield from self._value("tokens", name, getattr(self.before, name), getattr(self.after, name))
        yield from self._value("answer", "expected", self.before.expected, self.after.expected)
        known = (self.before.expected_tokens or (), self.after.expected_tokens or ())
        yield from self._list("answer", "expected_tokens", *known)
        yield from self._list("answer", "alignment", self.before.alignment, self.after.alignment)

    def _steps(self) -> Iterator[Difference]:
        """As far as both have read the same."""
        a, b = self.before.steps, self.after.steps
        if bool(a) != bool(b):
            yield self._said("steps", Where(field="recorded_steps"), len(a), len(b))
            return
        alike = n_alike(self.before.target_tokens, self.after.target_tokens)
        a, b = a[:alike], b[:alike]
        for name in _STEP_NUMBERS:
            places = [Where(field=name, position=t) for t in range(len(a))]
            yield from self._numbers("steps", [getattr(s, name) for s in a], [getattr(s, name) for s in b], places)
        if self.tolerance == 0:
            yield from self._list("steps", "rank", [s.rank for s in a], [s.rank for s in b])
        yield from self._candidates(a, b)

    def _candidates(self, a: Sequence[Step], b: Sequence[Step]) -> Iterator[Difference]:
        lists = [(t, x.candidates, y.candidates) for t, (x, y) in enumerate(zip(a, b, strict=False))]
        yield from self._list("steps", "number_of_candidates", [len(x) for _, x, _ in lists], [len(y) for *_, y in lists])
        found = [(t, *pair) for t, x, y in lists for pair in paired(x, y)]
        places = [Where(field="candidates", position=t, token=token) for t, token, *_ in found]
        differs = list(self._numbers("steps", [p for *_, p, _ in found], [q for *_, q in found], places))
        yield from differs
        if self.tolerance == 0 and not differs:
            first, second = ([tuple(token for token, _ in pair[side]) for pair in lists] for side in (1, 2))
            yield from self._list("steps", "order_of_candidates", first, second)

    def _layers(self, kind: Kind) -> Iterator[Difference]:
        """Which layers were kept, where both have the kind; what one of them has alone is not compared further."""
        before, after = (run.layer_numbers(kind) for run in (self.before, self.after))
        if before != after and before and after:
            is_said = len(before) != len(after)  # as another shape
            yield from () if is_said else self._value("attention", f"layers_of_{kind}", before, after)

    def _mask(self, kind: Kind) -> Iterator[Difference]:
        """The first cell whose reason is another one."""
        a, b = self.before.mask_reasons.get(kind), self.after.mask_reasons.get(kind)
        if a is None or b is None:
            return
        by_head = a.ndim == 4 or b.ndim == 4
        if by_head:
            a, b = (np.broadcast_to(reasons, _shape(run, kind)) for reasons, run in ((a, self.before), (b, self.after)))
            if a.shape[:2] != b.shape[:2] or self._has_other_layers(kind):
                return  # said of the attention
        a, b = common(a, b)
        differ = np.argwhere(a != b)
        if len(differ):
            place = tuple(int(i) for i in differ[0])
            x, y = (REASON_WORDS[int(reasons[place])] for reasons in (a, b))
            yield self._said("masks", self._cell("mask", kind, place), x, y, count=len(differ))

    def _arrays(self, what: What, kind: Kind, a: np.ndarray | None, b: np.ndarray | None) -> Iterator[Difference]:
        """Shapes, and where they can be laid upon each other the cell that differs most."""
        before, after = (None if array is None else array.shape for array in (a, b))
        if before != after:
            yield self._said(what, Where(field="shape", kind=kind), before, after)
        if a is None or b is None or a.shape[:2] != b.shape[:2] or self._has_other_layers(kind):
            return
        a, b = common(a, b)
        size = sizes(a, b)
        yield from self._largest_differences(what, a, b, size, lambda place: self._cell(what, kind, place))

    def _search(self, a: Search | None, b: Search | None) -> Iterator[Difference]:
        if a is None or b is None:
            yield from self._value("search", "search", _in_short(a), _in_short(b))
            return
        for name in sorted(a.settings.keys() | b.settings.keys()):
            yield from self._value("search", name, a.settings.get(name), b.settings.get(name))
        yield from self._list("search", "best", a.best, b.best)
        yield from self._list("search", "alignment", a.alignment, b.alignment)
        yield from self._value("search", "nodes", len(a.nodes), len(b.nodes))
        if differ := list(self._nodes(a, b)):
            yield from differ
            return  # numbers and rows of other continuations say nothing
        for name in _NODE_NUMBERS:
            numbers = ([getattr(node, name) for node in search.nodes] for search in (a, b))
            yield from self._numbers("search", *numbers, [Where(field=f"node_{name}", position=i) for i in range(len(a.nodes))])
        for kind in [kind for kind in KINDS if kind in a.rows and kind in b.rows and not self._has_other_layers(kind)]:
            yield from self._rows(kind, a.rows[kind], b.rows[kind])
        rows = zip(a.candidates, b.candidates, strict=False)
        found = [(row, *pair) for row, (x, y) in enumerate(rows) for pair in paired(x, y)]
        places = [Where(field="row_candidates", position=row, token=token) for row, token, *_ in found]
        yield from self._numbers("search", [p for *_, p, _ in found], [q for *_, q in found], places)

    def _nodes(self, a: Search, b: Search) -> Iterator[Difference]:
        """The first continuation that is another one, in the fields that differ."""
        pairs = enumerate(zip(a.nodes, b.nodes, strict=False))
        apart = [(i, name) for i, (x, y) in pairs for name in _NODE_FIELDS if getattr(x, name) != getattr(y, name)]
        if apart:
            first = apart[0][0]
            names = [name for i, name in apart if i == first]
            x, y = ({name: getattr(search.nodes[first], name) for name in names} for search in (a, b))
            yield self._said("search", Where(field="node", position=first), x, y, count=len({i for i, _ in apart}))

    def _has_other_layers(self, kind: Kind) -> bool:
        return self.before.layer_numbers(kind) != self.after.layer_numbers(kind)

    def _rows(self, kind: Kind, a: np.ndarray, b: np.ndarray) -> Iterator[Difference]:
        name = f"{kind}_rows"
        if a.shape != b.shape:
            yield self._said("search", Where(field=f"shape_of_{name}"), a.shape, b.shape)
            return

        def place_of(place: tuple[int, ...]) -> Where:
            row, layer, head, key = place
            layer = self.before.layer_numbers(kind)[layer]
            return Where(field=name, position=row, layer=layer, head=head, key=key)

        yield from self._largest_differences("search", a, b, sizes(a, b), place_of)

    # What a difference of one kind of thing is

    def _value(self, what: What, field: str, a: Any, b: Any) -> Iterator[Difference]:
        if a != b:
            yield self._said(what, Where(field=field), a, b)

    def _list(self, what: What, field: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[Difference]:
        """The first place that differs; a list that has ended has None there."""
        n = max(len(a), len(b))
        padded = [[*side, *[_MISSING] * (n - len(side))] for side in (a, b)]
        places = [i for i, (x, y) in enumerate(zip(*padded, strict=True)) if x != y]
        if places:
            i = places[0]
            x, y = (None if side[i] is _MISSING else side[i] for side in padded)
            if x is None and y is None:  # an entry that is None against one that is not there
                yield self._said(what, Where(field=f"length_of_{field}"), len(a), len(b))
            else:
                yield self._said(what, Where(field=field, position=i), x, y, count=len(places))

    def _numbers(
        self, what: What, a: Sequence[float | None], b: Sequence[float | None], places: Sequence[Where]
    ) -> Iterator[Difference]:
        """The number that differs most; None is not recorded, which differs from every number."""
        n = min(len(a), len(b))
        pairs = [(x, y, where) for x, y, where in zip(a[:n], b[:n], places, strict=False) if (x, y) != (None, None)]
        unknown = [(x, y, where) for x, y, where in pairs if x is None or y is None]
        if unknown:
            x, y, where = unknown[0]
            yield self._said(what, where, x, y, count=len(unknown))
        known = [(x, y, where) for x, y, where in pairs if x is not None and y is not None]
        first, second = (np.array([pair[side] for pair in known], np.float64) for side in (0, 1))
        yield from self._largest_differences(what, first, second, sizes(first, second), lambda place: known[place[0]][2])

    def _largest_differences(
        self, what: What, a: np.ndarray, b: np.ndarray, size: np.ndarray, place_of: Any
    ) -> Iterator[Difference]:
        if size.size == 0:
            return
        place = tuple(int(i) for i in np.unravel_index(int(np.abs(size).argmax()), size.shape))
        largest = float(size[place])
        n_apart = int((np.abs(size) > self.tolerance).sum())
        allowed = np.abs(size[np.abs(size) <= self.tolerance])
        self.within = max(self.within, float(allowed.max(initial=0.0)))
        if n_apart:
            yield self._said(what, place_of(place), float(a[place]), float(b[place]), size=largest, count=n_apart)

    def _said(self, what: What, where: Where, before: Any, after: Any, size: float | None = None, count: int = 1) -> Difference:
        return Difference(what=what, where=where, before=before, after=after, size=size, count=count)

    def _cell(self, field: str, kind: Kind, place: tuple[int, ...]) -> Where:
        """(query, key) or (layer, head, query, key), with the first run's labels."""
        layer, head = (self.before.layer_numbers(kind)[place[0]], place[1]) if len(place) == 4 else (None, None)
        query, key = place[-2:]
        return Where(
            field=field,
            kind=kind,
            layer=layer,
            head=head,
            query=query,
            key=key,
            query_token=self.before.queries(kind)[query],
            key_token=self.before.keys(kind)[key],
        )


_MISSING = object()


def _shape(run: Trace, kind: Kind) -> tuple[int, ...]:
    weights = run.attentions(kind)
    assert weights is not None
    return weights.shape


def _in_short(search: Search | None) -> str | None:
    return None if search is None else f"{len(search.nodes)} continuations"
