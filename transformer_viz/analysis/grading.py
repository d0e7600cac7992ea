"""Every head of a run, graded: how much weight on the right key, how often it is the top one, how wide, how far.

Each grade is a mean over the head's judged rows (`analysis.query_rows` says which are left out), beside the same grade
of uniform attention over each row's allowed keys, and, where a run of the untrained model is given, of that.
`docs/grading.md` has the definitions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transformer_viz.addresses import Grid, HeadAddress, find_head
from transformer_viz.analysis.head_names import ROLES, roles
from transformer_viz.analysis.head_rows import HeadRows
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Every measure of one head, by its name and as an attribute: `grade.mass`, `grade.entropy`.

    Attributes:
        measures: each by its name in `analysis.measures`; None where no row of the head has it.
    """

    measures: Mapping[str, float | None]

    def __getattr__(self, name: str) -> float | None:
        # Copying asks for names before there are measures.
        if name in self.__dict__.get("measures", ()):
            return self.measures[name]
        raise AttributeError(f"{type(self).__name__} has no measure {name!r}; it has {join_names(MEASURES)}")


@dataclass(frozen=True, kw_only=True)
class HeadGrade(Measures):
    """One head; layer and head count from 0.

    Attributes:
        name: `mirror`, `right token`, `same place`, `previous`, `next`, `first`, `last`, `broad`, `focused`, `mixed`
            or `nothing` (see `analysis.head_names`).
        rule: what the name says, in words.
        score: the number by which it was named: the mean weight on the keys of the pattern; of `broad` the entropy's
            share; of `focused` and `mixed` the mean largest weight.
        score_uniform: the same number of uniform attention.
        uniform: the grades of uniform attention over each row's allowed keys.
        untrained: the grades of the same head of an untrained model, where they were asked for.
        n_rows: how many rows were judged.
        n_left_out: how many were not.
    """

    kind: Kind
    layer: int
    head: int
    name: str
    rule: str
    score: float | None
    score_uniform: float | None
    uniform: Measures
    untrained: Measures | None = None
    n_rows: int
    n_left_out: int


class Grades(tuple[HeadGrade, ...]):
    """The grades of all heads of a run, best first: sorted by mass, then heads without it by kind and score."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that were graded."""
        return tuple(kind for kind in KINDS if any(grade.kind == kind for grade in self))

    def of(self, kind: Kind) -> tuple[HeadGrade, ...]:
        """The heads of a kind, by layer and head."""
        return tuple(sorted((g for g in self if g.kind == kind), key=lambda g: (g.layer, g.head)))

    def at(self, head: str | HeadAddress) -> HeadGrade:
        """One head, such as `cross.2.3`.

        Raises:
            OptionError: there is no such head.
        """
        grid: Grid = {
            kind: (sorted({grade.layer for grade in self.of(kind)}), 1 + max(grade.head for grade in self.of(kind)))
            for kind in self.kinds
        }
        place = find_head(head, grid, "what was graded")
        return next(grade for grade in self if HeadAddress(grade.kind, grade.layer, grade.head) == place)

    def to_frame(self) -> "pd.DataFrame":
        """One row a head, ranked as here; baselines in columns `uniform_…` and `untrained_…`."""
        import pandas as pd

        first = ("kind", "layer", "head", "name", "score", "score_uniform")
        baselines = ("uniform", "untrained")
        columns = [*first, *MEASURES, *(f"{b}_{m}" for b in baselines for m in MEASURES), "n_rows", "n_left_out", "rule"]
        rows = []
        for grade in self:
            row: dict[str, object] = {**vars(grade), **grade.measures}
            for name, baseline in (("uniform", grade.uniform), ("untrained", grade.untrained)):
                values = dict.fromkeys(MEASURES) if baseline is None else baseline.measures
                row |= {f"{name}_{measure}": value for measure, value in values.items()}
            rows.append(row)
        return pd.DataFrame(rows, columns=columns)


def alignment(trace: Trace, untrained: Trace | None = None) -> Grades:
    """Grades of every head of a run, best first.

    Args:
        trace: the run. Without true keys `mass` and `hit_rate` are None.
        untrained: the run of an untrained model over the same tokens, from `tv.decode_untrained`.

    Raises:
        OptionError: the two runs differ in tokens, layers or heads.
    """
    if untrained is not None:
        for kind in KINDS:
            a, b = trace.attentions.get(kind), untrained.attentions.get(kind)
            shapes = ["none" if attention is None else str(attention.weights.shape) for attention in (a, b)]
            if shapes[0] != shapes[1]:
                raise OptionError(
                    f"untrained: {kind} attention of the two runs has shapes {' and '.join(shapes)} (layer, head, query, key); "
                    "give a run of the same tokens and sizes, as tv.decode_untrained(checkpoint, trace) makes it"
                )
            if a is not None and b is not None and a.layers != b.layers:
                words = f"the two runs keep different layers of {kind} attention; tv.decode_untrained keeps the same"
                raise OptionError(f"untrained: {words}")
        # What was written may differ, since nobody looks at that.
        if (trace.source_tokens, trace.target_tokens) != (untrained.source_tokens, untrained.target_tokens):
            raise OptionError(
                "untrained: the two runs read different tokens; tv.decode_untrained(checkpoint, trace) makes one of the same"
            )
    return Grades(sorted((grade for kind in trace.kinds for grade in _of_kind(trace, untrained, kind)), key=_rank))


def _of_kind(trace: Trace, untrained: Trace | None, kind: Kind) -> Iterator[HeadGrade]:
    heads = HeadRows.of(trace, kind)
    uniform = heads.uniform()
    graded = [heads, uniform, *([] if untrained is None else [HeadRows.of(untrained, kind)])]
    values = [{name: measure.of(rows) for name, measure in MEASURES.items()} for rows in graded]

    def measures(of: int, at: tuple[int, ...]) -> dict[str, float | None]:
        """The measures of a head, at the place of its layer: of the run, of uniform attention, or of the untrained model."""
        return {name: None if every is None else _number(every[at]) for name, every in values[of].items()}

    n_rows, named, attention = heads.rows.sum(-1), roles(heads, uniform), trace.attentions[kind]
    for place, head in np.ndindex(attention.n_layers, attention.n_heads):
        at = place, head
        name, rule = list(ROLES.items())[named.number[at]]
        yield HeadGrade(
            kind=kind,
            layer=attention.layers[place],
            head=head,
            name=name,
            rule=rule,
            score=_number(named.score[at]),
            score_uniform=_number(named.score_uniform[at]),
            measures=measures(0, at),
            uniform=Measures(measures=measures(1, at)),
            untrained=None if untrained is None else Measures(measures=measures(2, at)),
            n_rows=int(n_rows[at]),
            n_left_out=len(attention.queries) - int(n_rows[at]),
        )


def _number(value: np.ndarray) -> float | None:
    """A number, or None for NaN."""
    return None if np.isnan(value) else float(value)


def _rank(grade: HeadGrade) -> tuple[bool, float, int, bool, float, int, int]:
    mass, score = grade.mass, grade.score
    by_mass = (mass is None, -(mass or 0.0))
    return (*by_mass, KINDS.index(grade.kind), score is None, -(score or 0.0), grade.layer, grade.head)
