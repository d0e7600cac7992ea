"""Every head of a run, graded: how much weight on the right key, how often it is the top one, how wide, how far.

Each grade is a mean over the head's judged rows (`analysis.rows` says which are left out), beside the same grade
of uniform attention over each row's allowed keys, and, where a run of the untrained model is given, of that.
`docs/grading.md` has the definitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, overload

import numpy as np

from transformer_viz.analysis.head_names import entropies, names
from transformer_viz.analysis.rows import allowed_keys, even_weights, judged_rows, mean_over
from transformer_viz.analysis.true_key import true_keys
from transformer_viz.errors import OptionError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Means over a head's judged rows; None where no row has the grade.

    Attributes:
        mass: weight on the true key, over the steps that have one (cross-attention only).
        hit_rate: share of those steps whose largest weight is on the true key; of equal weights the lowest key is
            the largest. Of uniform attention it is the chance that a key drawn from the allowed ones is the true key.
        entropy: of a row's weights, in nats.
        entropy_share: the same as a share of the logarithm of the number of allowed keys, which is what even
            attention has; rows with one allowed key have none.
        distance: |key − true key| in positions, weighted, over the steps that have one; in self-attention
            |key − the row's own position|.
    """

    mass: float | None
    hit_rate: float | None
    entropy: float | None
    entropy_share: float | None
    distance: float | None


@dataclass(frozen=True, kw_only=True)
class HeadGrade(Measures):
    """One head; layer and head count from 0.

    Attributes:
        name: `mirror`, `true key`, `same place`, `previous`, `next`, `first`, `last`, `broad`, `focused`, `mixed`
            or `nothing` (see `analysis.head_names`).
        rule: what the name says, in words.
        score: the number by which it was named: the mean weight on the keys of the pattern; of `broad` the entropy's
            share; of `focused` and `mixed` the mean largest weight.
        score_even: the same number of uniform attention.
        even: the grades of uniform attention over each row's allowed keys.
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
    score_even: float | None
    even: Measures
    untrained: Measures | None = None
    n_rows: int
    n_left_out: int


MEASURES: tuple[str, ...] = tuple(field.name for field in fields(Measures))


@dataclass(frozen=True)
class Grades(Sequence[HeadGrade]):
    """All heads of a run, best first: by mass; those that have none after them, by kind and score."""

    heads: tuple[HeadGrade, ...]

    @overload
    def __getitem__(self, index: int) -> HeadGrade: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HeadGrade, ...]: ...
    def __getitem__(self, index: int | slice) -> HeadGrade | tuple[HeadGrade, ...]:
        return self.heads[index]

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[HeadGrade]:
        return iter(self.heads)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that were graded."""
        return tuple(kind for kind in KINDS if any(grade.kind == kind for grade in self.heads))

    def of(self, kind: Kind) -> tuple[HeadGrade, ...]:
        """The heads of a kind, by layer and head."""
        return tuple(sorted((g for g in self.heads if g.kind == kind), key=lambda g: (g.layer, g.head)))

    def at(self, kind: Kind, layer: int, head: int) -> HeadGrade:
        """One head; layer and head from 0.

        Raises:
            OptionError: there is no such head.
        """
        for grade in self.heads:
            if (grade.kind, grade.layer, grade.head) == (kind, layer, head):
                return grade
        raise OptionError(f"there is no grade of {kind!r}, layer {layer!r}, head {head!r}; {_sizes(self)}")

    def to_frame(self) -> "pd.DataFrame":
        """One row a head, ranked as here; baselines in columns `even_…` and `untrained_…`."""
        import pandas as pd

        first = ("kind", "layer", "head", "name", "score", "score_even")
        baselines = ("even", "untrained")
        columns = [*first, *MEASURES, *(f"{b}_{m}" for b in baselines for m in MEASURES), "n_rows", "n_left_out", "rule"]
        return pd.DataFrame([_row(grade) for grade in self.heads], columns=columns)


def alignment(trace: Trace, untrained: Trace | None = None) -> Grades:
    """Grades of every head of a run, best first.

    Args:
        trace: the run. Without true keys `mass` and `hit_rate` are None; a kind that it does not have is not there.
        untrained: the run of an untrained model over the same tokens, from `tv.untrained`.

    Raises:
        OptionError: the two runs differ in tokens, layers or heads.
    """
    if untrained is not None:
        _check_same(trace, untrained)
    heads = [grade for kind in trace.kinds for grade in _of_kind(trace, untrained, kind)]
    return Grades(tuple(sorted(heads, key=_rank)))


def _of_kind(trace: Trace, untrained: Trace | None, kind: Kind) -> Iterator[HeadGrade]:
    measured, even = _measures(trace, kind, even=False), _measures(trace, kind, even=True)
    before = None if untrained is None else _measures(untrained, kind, even=False)
    n_rows = judged_rows(trace, kind).sum(-1)
    for place, per_head in enumerate(names(trace, kind)):
        for head, named in enumerate(per_head):
            yield HeadGrade(
                kind=kind,
                layer=trace.layer_numbers(kind)[place],
                head=head,
                name=named.name,
                rule=named.rule,
                score=named.score,
                score_even=named.score_even,
                **_at(measured, place, head),
                even=Measures(**_at(even, place, head)),
                untrained=None if before is None else Measures(**_at(before, place, head)),
                n_rows=int(n_rows[place, head]),
                n_left_out=len(trace.queries(kind)) - int(n_rows[place, head]),
            )


def _rank(grade: HeadGrade) -> tuple[bool, float, int, bool, float, int, int]:
    mass, score = grade.mass, grade.score
    by_mass = (mass is None, -(mass or 0.0))
    return (*by_mass, KINDS.index(grade.kind), score is None, -(score or 0.0), grade.layer, grade.head)


def _measures(trace: Trace, kind: Kind, *, even: bool) -> dict[str, np.ndarray]:
    """Every measure, (layer, head) float64, NaN where there is none; of the run's weights or of uniform attention."""
    weights, allowed, rows = trace.attentions(kind), allowed_keys(trace, kind), judged_rows(trace, kind)
    assert weights is not None
    used = even_weights(allowed) if even else np.where(rows[..., None], weights, 0).astype(np.float64)
    entropy, n_allowed = entropies(used), allowed.sum(-1)
    found = {
        "mass": np.full(used.shape[:2], np.nan),
        "hit_rate": np.full(used.shape[:2], np.nan),
        "entropy": mean_over(entropy, rows),
        "entropy_share": mean_over(entropy / np.log(np.maximum(n_allowed, 2)), rows & (n_allowed > 1)),
    }
    reference = true_keys(trace) if kind == "cross" else range(used.shape[2])
    queries = [q for q, key in enumerate(reference) if key is not None]
    keys = np.array([key for key in reference if key is not None], dtype=np.int64)
    mine = rows[:, :, queries]
    steps = np.abs(np.arange(used.shape[-1]) - keys[:, None])
    found["distance"] = mean_over((used[:, :, queries] * steps).sum(-1), mine)
    if kind == "cross":
        found["mass"] = mean_over(used[:, :, queries, keys], mine)
        # Even attention has no largest weight. Its baseline is the chance of drawing the true key.
        hits = (used[:, :, queries].argmax(-1) == keys).astype(np.float64)
        found["hit_rate"] = found["mass"] if even else mean_over(hits, mine)
    return found


def _at(found: dict[str, np.ndarray], place: int, head: int) -> dict[str, float | None]:
    values = {name: float(array[place, head]) for name, array in found.items()}
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _row(grade: HeadGrade) -> dict[str, object]:
    found = asdict(grade)
    for baseline in ("even", "untrained"):
        values = found.pop(baseline) or dict.fromkeys(MEASURES)
        found |= {f"{baseline}_{name}": value for name, value in values.items()}
    return found


def _check_same(trace: Trace, untrained: Trace) -> None:
    """The same tokens read, the same layers and heads; what was written may differ, since nobody looks at that."""
    for kind in KINDS:
        a, b = trace.attentions(kind), untrained.attentions(kind)
        shapes = [None if weights is None else weights.shape for weights in (a, b)]
        if shapes[0] != shapes[1]:
            words = " and ".join("none" if shape is None else str(shape) for shape in shapes)
            raise OptionError(
                f"untrained: {kind} attention of the two runs has shapes {words} (layer, head, query, key); "
                f"give a run of the same tokens and sizes, as tv.untrained(checkpoint, trace) makes it"
            )
        if trace.layer_numbers(kind) != untrained.layer_numbers(kind):
            raise OptionError(f"untrained: the two runs keep other layers of {kind} attention; tv.untrained keeps the same")
    if (trace.source_tokens, trace.target_tokens) != (untrained.source_tokens, untrained.target_tokens):
        raise OptionError("untrained: the two runs read other tokens; tv.untrained(checkpoint, trace) makes one of the same")


def _sizes(grades: Grades) -> str:
    sizes = []
    for kind in grades.kinds:
        heads = grades.of(kind)
        layers = sorted({grade.layer for grade in heads})
        which = f"0 to {layers[-1]}" if len(layers) == layers[-1] + 1 else listed(layers)
        sizes.append(f"{kind} has layers {which} with heads 0 to {max(g.head for g in heads)}")
    return "; ".join(sizes) if sizes else "nothing was graded"
