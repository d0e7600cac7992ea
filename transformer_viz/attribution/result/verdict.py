"""Verdicts on whether a run's maps point at the cause: heads, each layer's mean and strongest head, other attributions.

Two numbers say how far a map agrees with the cause at a step: whether its largest key is the one with the largest cause, and
Spearman's ρ of the two rankings, in which causes under `FLOOR` are equal. Only keys that are content count, not special tokens,
and only written steps with two such keys or more, of which one has a cause of at least `LEAST` nats. A random one of n keys is
the right one in 1/n of the cases.

Faithfulness curves tell how much probability what was written loses without the keys that a ranking puts first.
Comprehensiveness is p(y_t) − p(y_t without the first k), sufficiency p(y_t) − p(y_t with the first k alone) (DeYoung et al.
2020, section 4): a ranking is faithful where the former is large and the latter small.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from transformer_viz.addresses import HIGHEST, HeadAddress, find_map
from transformer_viz.analysis.intervals import Mean, mean_over_texts
from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.analysis.word_starts import is_special
from transformer_viz.errors import OptionError, SurveyError, join_names, short_repr
from transformer_viz.language import later, listed, say
from transformer_viz.numbers_in_words import count_words, percent_words
from transformer_viz.schema import LARGEST, Count, Range
from transformer_viz.terms import KINDS, Kind, head_label, kind_words, layer_label
from transformer_viz.text_table import number_cell, text_table
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

LEAST = 0.1
"""Nats; where no key changes a step by as much, there is no cause to point at."""
FLOOR = 1e-6
"""Nats; a smaller cause, of either sign, is ranked as 0, since it may be rounding. Most keys have such a one."""
Numbers = tuple[Annotated[float, Range(has_nan=True)], ...]
FLOOR_WORDS = later("causes under 10⁻⁶ nats count as equal; where most are, even the best order has a ρ well below 1")
MAP_WORDS = later("Mean and max are those of the weights of all heads of a layer, key by key")


@dataclass(frozen=True)
class Agreement:
    """One map of one run beside the cause, at each judged step.

    Attributes:
        top: (step,), the share of its largest keys that have the largest cause: 0 or 1 unless some are equal.
        rho: (step,), Spearman's ρ over the keys, with causes under `FLOOR` as 0; NaN where all of a row are equal.
    """

    top: Numbers
    rho: Numbers


@dataclass(frozen=True)
class Verdict:
    """One run.

    Attributes:
        kind: whose keys.
        mode: how a key was occluded.
        steps: (step,), which are judged.
        chance: (step,), how often a random key is one with the largest cause.
        maps: by what they are called.
        n_left_out: steps that were written and are not judged.
        n_without_choice: those of `n_left_out` with fewer than two keys; the others had no cause.
    """

    kind: Kind
    mode: str | None
    steps: tuple[Count, ...]
    chance: tuple[float, ...]
    maps: Mapping[str, Agreement]
    n_left_out: Count
    n_without_choice: Count

    def __post_init__(self) -> None:
        if {len(self.steps)} != {len(self.chance), *(len(part) for one in self.maps.values() for part in (one.top, one.rho))}:
            raise SurveyError("its maps are of other steps")


@dataclass(frozen=True)
class MapVerdict:
    """One map over all runs."""

    name: str
    top: Mean
    rho: Mean

    def __post_init__(self) -> None:
        if not self.top.is_from(0) or not self.rho.is_from(-1):
            raise SurveyError(
                f"{short_repr(self.name)} has a share of {self.top} or a correlation of {self.rho}, which cannot be"
            )


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all maps over one or several runs.

    Attributes:
        kind: whose keys.
        mode: how a key was occluded.
        n_texts: how many runs.
        n_judged: steps.
        n_left_out: steps that were written and are not judged.
        n_without_choice: those of `n_left_out` with fewer than two keys; the others had no cause.
        chance: of a random key.
        maps: heads by layer, then layers, then other attributions.
        missing: what the model cannot give, and why.
    """

    kind: Kind
    mode: str | None
    n_texts: Annotated[int, Range(1, LARGEST)]
    n_judged: Count
    n_left_out: Count
    n_without_choice: Count
    chance: Mean
    maps: Annotated[tuple[MapVerdict, ...], Range(0, 2**16)]
    missing: Annotated[Mapping[str, str], Range(0, 100)]

    def __post_init__(self) -> None:
        if self.n_without_choice > self.n_left_out or not self.chance.is_from(0):
            words = f"{self.n_without_choice} of {self.n_left_out} steps that were left out have no choice"
            raise SurveyError(f"{words}, or chance is {self.chance}")
        if len({one.name for one in self.maps}) < len(self.maps):
            raise SurveyError("two maps have one name")

    def __repr__(self) -> str:
        """One line."""
        judged = f"{count_words(self.n_judged, 'step')} of {count_words(self.n_texts, 'text')}"
        return f"<Verdicts {self.kind} by {self.mode}: {count_words(len(self.maps), 'map')}, {judged}>"

    def at(self, name: str | HeadAddress) -> MapVerdict:
        """One map: a head (`cross.2.3`), all heads of a layer (`cross.2.mean`), or a measure (`rollout`).

        Raises:
            OptionError: there is no such map.
        """
        label = map_label(name, self.kind)
        for verdict in self.maps:
            if verdict.name == label:
                return verdict
        raise OptionError(f"there is no map {label!r} in this verdict; it has {join_names(map.name for map in self.maps)}")

    def __str__(self) -> str:
        """The number of judged steps, and a table of all maps."""
        rows = [("by chance", str(self.chance), ""), *((one.name, str(one.top), str(one.rho)) for one in self.maps)]
        return "\n".join(
            (
                f"cause by {self.mode}, {self.kind}: {count_words(self.n_judged, 'step')} of "
                f"{count_words(self.n_texts, 'text')}; {left_out_words(self)}",
                f"{MAP_WORDS}. Rank correlation is Spearman's; {FLOOR_WORDS}.",
                text_table(("map", "points at the cause", "rank correlation"), rows),
                *(f"{method}: {why}" for method, why in self.missing.items()),
            )
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row a map, and one for a random key: its name, how often it points at the cause, its rank correlation; with the
        ends of intervals where there are any."""
        import pandas as pd

        # A ranking by chance has no correlation with any other.
        rows = [*self.maps, MapVerdict("by chance", self.chance, Mean(0.0))]
        columns: dict[str, list[str] | list[float]] = {"map": [verdict.name for verdict in rows]}
        for name, means in (("top", [verdict.top for verdict in rows]), ("rho", [verdict.rho for verdict in rows])):
            columns[name] = [mean.value for mean in means]
            if self.n_texts > 1:
                ends = [mean.interval or (mean.value, mean.value) for mean in means]
                columns |= {f"{name}_low": [low for low, _ in ends], f"{name}_high": [high for _, high in ends]}
        return pd.DataFrame(columns)


def map_label(name: str | HeadAddress, kind: Kind) -> str:
    """The label in tables, such as `L2 H3`, of a map that is named by its address; any other name is its own label.

    Args:
        name: `cross.2.3`, `cross.2.mean`, `rollout`, or `value_weighted cross.2.3` of a measure with heads.
        kind: whose maps are judged.

    Raises:
        OptionError: an address of another kind.
    """
    *measure, place = str(name).split(" ")
    if place.partition(".")[0] not in KINDS:
        return str(name)
    of, layer, head = find_map(place, {one: (range(HIGHEST), HIGHEST) for one in KINDS})
    if of != kind:
        raise OptionError(f"{place} is {kind_words(of)}, and {kind_words(kind)} is judged")
    is_layer = place.count(".") == 1
    label = (
        layer_label(layer) if is_layer else head_label(layer, head) if isinstance(head, int) else f"{layer_label(layer)} {head}"
    )
    return " ".join([*measure, label])


def content_keys(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (query, key): tokens of the text, which the decoder has read by then."""
    content = np.array([not is_special(token) for token in trace.labels(kind)[1]], dtype=bool)
    rows = np.broadcast_to(content, (trace.n_steps, len(content)))
    return np.tril(rows) if kind == "decoder" else rows


def judged_steps(trace: Trace, cause: Attribution) -> tuple[np.ndarray, int, int]:
    """Finds the judged steps, (step,), and counts those that are left out, and of these those without a choice of keys."""
    keys, is_written = content_keys(trace, cause.kind), real_queries(trace, "decoder")
    is_written = is_written & (np.arange(trace.n_steps) >= trace.written.start)
    largest = np.where(keys & np.isfinite(cause.values), cause.values, -np.inf).max(-1, initial=-np.inf)
    has_choice = keys.sum(-1) >= 2
    is_judged = is_written & has_choice & (largest >= LEAST)
    return is_judged.nonzero()[0], int((is_written & ~is_judged).sum()), int((is_written & ~has_choice).sum())


def maps_of(trace: Trace, kind: Kind, results: Iterable[Attribution] = ()) -> dict[str, np.ndarray]:
    """(query, key) of each head, each layer's mean and strongest head, and of other attributions of this kind."""
    maps: dict[str, np.ndarray] = {}
    if (attention := trace.attentions.get(kind)) is not None:
        layers = list(zip(attention.layers, attention.weights, strict=True))
        maps |= {head_label(n, head): one for n, layer in layers for head, one in enumerate(layer)}
        for n, layer in layers:
            exact = layer.astype(np.float64)
            maps |= {f"{layer_label(n)} mean": exact.mean(0), f"{layer_label(n)} max": exact.max(0)}
    for result in results:
        if result.values.ndim == 2:
            maps[result.method] = result.values
            continue
        for n, layer in zip(result.layers, result.values, strict=True):
            # One head axis is all heads as one.
            names = [layer_label(n)] if len(layer) == 1 else [head_label(n, head) for head in range(len(layer))]
            maps |= {f"{result.method} {name}": one for name, one in zip(names, layer, strict=True)}
    return maps


def judge_maps(trace: Trace, cause: Attribution, results: Iterable[Attribution] = ()) -> Verdict:
    """Every map of a run beside what occlusion found.

    Args:
        trace: the run.
        cause: of `tv.attribute(…, "occlusion")`.
        results: other attributions of the same kind.
    """
    steps, n_left_out, n_without_choice = judged_steps(trace, cause)
    keys = content_keys(trace, cause.kind)
    causes = [np.where(np.abs(row) < FLOOR, 0, row) for row in (cause.values[t, keys[t]] for t in steps)]
    is_cause = [row == row.max() for row in causes]

    def top(row: np.ndarray, is_cause: np.ndarray) -> float:
        return float(is_cause[row == row.max()].mean()) if np.isfinite(row).all() else np.nan

    maps = {
        name: Agreement(
            tuple(top(one[t, keys[t]], best) for t, best in zip(steps, is_cause, strict=True)),
            tuple(spearman(one[t, keys[t]], row) for t, row in zip(steps, causes, strict=True)),
        )
        for name, one in maps_of(trace, cause.kind, results).items()
    }
    chance = tuple(float(best.mean()) for best in is_cause)
    return Verdict(cause.kind, cause.mode, tuple(steps.tolist()), chance, maps, n_left_out, n_without_choice)


def merge_verdicts(verdicts: Sequence[Verdict], missing: Mapping[str, str] | None = None, *, seed: int = 0) -> Verdicts:
    """One verdict over all runs; intervals resample the texts, since the steps of one are not independent.

    Args:
        verdicts: of each run; the maps that all of them have are counted.
        missing: what could not be given, and why.
        seed: of the resampling.
    """
    names = [name for name in verdicts[0].maps if all(name in verdict.maps for verdict in verdicts)]
    return Verdicts(
        kind=verdicts[0].kind,
        mode=verdicts[0].mode,
        n_texts=len(verdicts),
        n_judged=sum(len(verdict.steps) for verdict in verdicts),
        n_left_out=sum(verdict.n_left_out for verdict in verdicts),
        n_without_choice=sum(verdict.n_without_choice for verdict in verdicts),
        chance=mean_over_texts([verdict.chance for verdict in verdicts], seed),
        maps=tuple(
            MapVerdict(
                name,
                mean_over_texts([verdict.maps[name].top for verdict in verdicts], seed),
                mean_over_texts([verdict.maps[name].rho for verdict in verdicts], seed),
            )
            for name in names
        ),
        missing=dict(missing or {}),
    )


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's ρ, equal numbers at the mean of their ranks; NaN where all numbers of one are equal, or one is none."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.nan
    ranks = []
    for values in (a, b):
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[place])
    x, y = (own - own.mean() for own in ranks)
    size = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / size) if size else np.nan


def verdict_words(found: MapVerdict, of: Verdicts) -> str:
    """The verdict in a sentence.

    Pointing at the cause does not make a head needed, and a head that is needed may look elsewhere.
    """
    if np.isnan(found.top.value):
        return say("has nothing to point at: {why}", why=left_out_words(of))
    share, chance = percent_words(found.top.value), percent_words(of.chance.value)
    steps = count_words(of.n_judged, "judged step")
    return say("points where the cause is in {share} of {steps} ({chance} by chance)", share=share, steps=steps, chance=chance)


def left_out_words(of: Verdicts) -> str:
    """Says how many steps were left out, and why."""
    if not of.n_left_out:
        return say("no step is left out")
    n_without_cause = of.n_left_out - of.n_without_choice
    few = of.n_without_choice
    why = (
        [say("{n} in which no token matters by {least} nats or more", n=n_without_cause, least=LEAST)]
        if n_without_cause
        else []
    )
    why += [say("{n} with fewer than two tokens to choose from", n=few)] if few else []
    return say("{steps} left out: {why}", steps=count_words(of.n_left_out, "step is", "steps are"), why=listed(why))


KS = (1, 2, 3, 5)
"""The number of keys."""


@dataclass(frozen=True)
class MeanCurve:
    """One ranking over all runs; a mean for each of `KS`."""

    name: str
    comprehensiveness: tuple[Mean, ...]
    sufficiency: tuple[Mean, ...]

    def __str__(self) -> str:
        """Both curves, a line each."""
        curves = ("comprehensiveness", "sufficiency")
        rows = [(name, *(number_cell(mean.value) for mean in getattr(self, name))) for name in curves]
        return text_table((self.name, *(f"k = {k}" for k in KS)), rows)


def first_keys(row: np.ndarray, among: np.ndarray, k: int) -> np.ndarray:
    """bool (key,): the k largest of these keys, or all where there are fewer; of equal ones the first."""
    there = among.nonzero()[0]
    is_first = np.zeros(len(row), dtype=bool)
    # What is no number comes last.
    is_first[there[np.argsort(-row[there], kind="stable")[:k]]] = True
    return is_first
