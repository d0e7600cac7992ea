"""Blocks of a survey, in their order, made into one.

Sums are added in the order of the blocks, in double precision, so the result is the same bit for bit whatever computed the
blocks. The files are read twice: which texts are typical is known when the mean is. Memory does not grow with their number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from transformer_viz.analysis import verdict as judging
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.analysis.intervals import normal
from transformer_viz.analysis.survey.outputs import Outputs
from transformer_viz.analysis.survey.partial import KindPartial, Partial, load_partial
from transformer_viz.analysis.survey.result import (
    Distribution,
    Failed,
    Survey,
    SurveyedHead,
    SurveyedKind,
    SurveyedModel,
    SurveyedTexts,
    TextValue,
)
from transformer_viz.analysis.survey.statistic import NAMES, STATISTICS, preferred
from transformer_viz.analysis.survey.verdicts import load_verdicts
from transformer_viz.analysis.verdict import Verdict, Verdicts
from transformer_viz.errors import SurveyError
from transformer_viz.terms import KINDS, Kind
from transformer_viz.version import __version__

MOST_FAILED = 20
_HELD = 2**24
"""Bytes of what is read in the first pass are kept for the second."""
Path = str | PathLike[str]


def merge(
    blocks: Sequence[Path],
    verdicts: Sequence[Path],
    *,
    model: SurveyedModel,
    source: str,
    digest: str,
    options: Mapping[str, Any],
    k: int,
    by: str | None,
) -> Survey:
    """One survey of all blocks.

    Args:
        blocks: files of `Partial`, in the order of the lines.
        verdicts: files of `VerdictPartial`, likewise.
        model: whose.
        source: the name of the texts, for people.
        digest: of all lines.
        options: what decided the numbers; `seed` is that of the intervals of verdicts.
        k: how many texts are kept of each head, and of the worst outputs.
        by: the statistic by which a head's texts are chosen; None leaves it to the head.

    Raises:
        SurveyError: a file that is damaged, or of another model than the first.
    """
    totals, partials = _Totals(k), _Partials(blocks)
    for partial in partials:
        totals.add(partial)
    examples = {kind: _Examples(of, by, k) for kind, of in totals.kinds.items()}
    for partial in partials:
        for kind, of in partial.kinds.items():
            examples[kind].add(partial, of)
    kinds = [kind for kind in KINDS if kind in totals.kinds]
    n_failed = totals.n - totals.n_read
    texts = {"source": source, "n": totals.n, "n_read": totals.n_read, "n_failed": n_failed, "digest": digest}
    return Survey(
        model=model,
        texts=SurveyedTexts(**texts, failed=tuple(totals.failed)),
        options=dict(options),
        statistics=STATISTICS,
        kinds={kind: SurveyedKind(layers=totals.kinds[kind].layers, n_heads=totals.kinds[kind].n_heads) for kind in kinds},
        heads=tuple(head for kind in kinds for head in _heads(kind, totals.kinds[kind], examples[kind])),
        agreement={kind: found for kind in kinds if (found := _agreement(totals.kinds[kind]))},
        outputs=None if totals.outputs is None else totals.outputs.made(),
        verdict=_verdict(verdicts, int(options.get("seed", 0))),
        version=__version__,
    )


class _Partials:
    """Files of blocks, which are gone through twice; of a small survey none is read twice."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._held: list[Partial] = []
        self._room = _HELD

    def __iter__(self) -> Iterator[Partial]:
        yield from self._held
        for path in self._paths[len(self._held) :]:
            partial = load_partial(path)
            if self._room > 0:
                self._held.append(partial)
                self._room -= partial.n_bytes
            yield partial


class _Totals:
    """What is added up in the first pass."""

    def __init__(self, k: int) -> None:
        self.n = self.n_read = 0
        self.failed: list[Failed] = []
        self.kinds: dict[Kind, KindPartial] = {}
        self.outputs: Outputs | None = None
        self._k = k

    def add(self, partial: Partial) -> None:
        """One block more."""
        self.n += len(partial.lines) + len(partial.failed)
        self.n_read += len(partial.lines)
        self.failed += partial.failed[: MOST_FAILED - len(self.failed)]
        for kind, of in partial.kinds.items():
            before = self.kinds.get(kind)
            self.kinds[kind] = replace(of, values=of.values[:, :0]) if before is None else _sum(before, of)
        if partial.outputs is not None:
            self.outputs = self.outputs or Outputs(self._k)
            self.outputs.add(partial.lines, partial.texts, partial.outputs)


def _sum(a: KindPartial, b: KindPartial) -> KindPartial:
    """Two parts as one, without the values of each text; of squares by Chan, Golub and LeVeque (1983)."""
    if (a.layers, a.n_heads, a.values_of) != (b.layers, b.n_heads, b.values_of):
        raise SurveyError("two blocks are of other layers, heads or statistics; they are not of one survey")
    apart = b.sums / np.maximum(b.n, 1) - a.sums / np.maximum(a.n, 1)
    between = np.where((a.n > 0) & (b.n > 0), apart**2 * a.n * b.n / np.maximum(a.n + b.n, 1), 0.0)
    added = {name: getattr(a, name) + getattr(b, name) for name in _ADDED}
    lowest, highest = np.minimum(a.lowest, b.lowest), np.maximum(a.highest, b.highest)
    return replace(a, **added, squares=a.squares + b.squares + between, lowest=lowest, highest=highest)


_ADDED = ("n", "sums", "even", "counts", "roles", "agreed", "compared")


class _Examples:
    """The texts of each head, chosen in the second pass: those of the smallest keys, of equal ones the first lines."""

    def __init__(self, total: KindPartial, by: str | None, k: int) -> None:
        self._k = k
        has = np.stack([total.n[NAMES.index(name)] > 0 for name in preferred(by)])
        self.by = np.where(has.any(0), has.argmax(0), -1)
        """int (layer, head), which of the preferred statistics the head has; −1 = none."""
        at = np.array([NAMES.index(name) for name in preferred(by)])[np.maximum(self.by, 0)]
        self._mean = np.take_along_axis(total.sums / np.maximum(total.n, 1), at[None], 0)[0]
        self.kept = {name: _Kept(k, self.by.shape) for name in ("highest", "typical", "unusual")}
        self.texts: dict[int, str] = {}

    def add(self, partial: Partial, of: KindPartial) -> None:
        """One block more."""
        values = np.take_along_axis(of.values, np.maximum(self.by, 0)[None, None], 0)[0]
        values = np.where(self.by >= 0, values, np.nan)
        apart = np.abs(values - self._mean)
        lines = np.array(partial.lines, dtype=np.int64)
        for name, keys in (("highest", -values), ("typical", apart), ("unusual", -apart)):
            self.kept[name].add(keys, values, lines)
        self.texts |= dict(zip(partial.lines, partial.texts, strict=True))
        still = np.unique(np.concatenate([kept.lines.ravel() for kept in self.kept.values()])).tolist()
        self.texts = {line: self.texts[line] for line in still if line}

    def of(self, name: str, layer: int, head: int) -> tuple[TextValue, ...]:
        """The texts of one head."""
        kept = self.kept[name]
        each = zip(kept.lines[:, layer, head].tolist(), kept.values[:, layer, head].tolist(), strict=True)
        return tuple(TextValue(line=line, text=self.texts[line], value=value) for line, value in each if line)


@dataclass
class _Kept:
    """For each head the k texts with the smallest keys so far: keys, values and lines (text, layer, head); line 0 is none."""

    k: int
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        self.keys = np.empty((0, *self.shape))
        self.values = np.empty((0, *self.shape))
        self.lines = np.empty((0, *self.shape), np.int64)

    def add(self, keys: np.ndarray, values: np.ndarray, lines: np.ndarray) -> None:
        """Those of a block; NaN is none."""
        there = ~np.isnan(keys)
        new = np.where(there, np.broadcast_to(lines[:, None, None], keys.shape), 0)
        # Stable, so that of equal ones those of the lines before stay before.
        whole = np.concatenate([self.keys, np.where(there, keys, np.inf)])
        order = whole.argsort(0, kind="stable")[: self.k]
        self.keys = np.take_along_axis(whole, order, 0)
        self.values = np.take_along_axis(np.concatenate([self.values, values]), order, 0)
        self.lines = np.take_along_axis(np.concatenate([self.lines, new]), order, 0)


def _heads(kind: Kind, total: KindPartial, examples: _Examples) -> Iterator[SurveyedHead]:
    names, roles = _names(total, examples), list(ROLES)
    for place, layer in enumerate(total.layers):
        for head in range(total.n_heads):
            counts = total.roles[:, place, head].tolist()
            yield SurveyedHead(
                kind=kind,
                layer=layer,
                head=head,
                n_texts=sum(counts),
                roles={name: count for name, count in zip(roles, counts, strict=True) if count},
                statistics={name: _distribution(total, i, place, head) for i, name in enumerate(NAMES)},
                by=names[place][head],
                highest=examples.of("highest", place, head),
                typical=examples.of("typical", place, head),
                unusual=examples.of("unusual", place, head),
            )


def _names(total: KindPartial, examples: _Examples) -> list[list[str | None]]:
    """The statistic by which the texts of each head are chosen, by layer and head."""
    return [[None if at < 0 else total.values_of[at] for at in layer] for layer in examples.by.tolist()]


def _distribution(total: KindPartial, statistic: int, layer: int, head: int) -> Distribution | None:
    at = statistic, layer, head
    n = int(total.n[at])
    if not n:
        return None
    mean, sd = float(total.sums[at]) / n, (float(total.squares[at]) / (n - 1)) ** 0.5 if n > 1 else 0.0
    low, high = normal(mean, sd, n)
    return Distribution(
        n=n,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        min=float(total.lowest[at]),
        max=float(total.highest[at]),
        even=float(total.even[at]) / n,
        counts=tuple(total.counts[at][: len(STATISTICS[statistic].edges) - 1].tolist()),
    )


def _agreement(total: KindPartial) -> tuple[tuple[float | None, ...], ...]:
    shares = total.agreed / np.maximum(total.compared, 1)
    rows = zip(shares.tolist(), total.compared.tolist(), strict=True)
    return tuple(tuple(share if n else None for share, n in zip(*row, strict=True)) for row in rows)


def _verdict(paths: Sequence[Path], seed: int) -> Verdicts | None:
    found: list[Verdict] = []
    missing: dict[str, str] = {}
    for path in paths:
        partial = load_verdicts(path)
        found += partial.verdicts
        missing |= partial.missing
    return judging.over(found, missing, seed=seed) if found else None
