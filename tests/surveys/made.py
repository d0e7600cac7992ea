"""Surveys made up for tests: sizes, kinds and parts as asked, numbers that fit together and mean nothing."""

from dataclasses import replace
from typing import Any

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.verdict import MapVerdict, Verdicts
from transformer_viz.surveys.result import (
    Confidence,
    CorrectAtLength,
    Failed,
    HeadStatistic,
    HeadTexts,
    Survey,
    SurveyedKind,
    SurveyedModel,
    SurveyedOutputs,
    SurveyedStatistic,
    SurveyedTexts,
    TextValue,
    WorstOutput,
    role_share,
)
from transformer_viz.terms import KINDS, Kind
from transformer_viz.version import __version__

SHARES = tuple(i / 20 for i in range(21))
STATISTICS = (
    SurveyedStatistic(name="mass", title="weight on the right token", help="Mean of it", is_share=True, edges=SHARES),
    SurveyedStatistic(name="entropy_share", title="entropy, of the largest", help="A share", is_share=True, edges=SHARES),
    SurveyedStatistic(name="distance", title="mean distance", help="In positions", is_share=False, edges=(0.0, 1.0, 4.0, 16.0)),
)


def survey(
    seed: int = 0,
    kinds: tuple[Kind, ...] = KINDS,
    n_layers: int = 2,
    n_heads: int = 3,
    n: int = 1000,
    **changes: Any,
) -> Survey:
    """Of a model that writes; `changes` are fields of the Survey that are given instead."""
    rng = np.random.default_rng(seed)
    places = [HeadAddress(kind, layer, head) for kind in kinds for layer in range(n_layers) for head in range(n_heads)]
    rows, examples = zip(*(head(rng, place, n) for place in places), strict=True)
    made: dict[str, Any] = {
        "model": SurveyedModel(name="reverse", variant="pre-norm", parameters=100_000, fingerprint="ab" * 32),
        "texts": SurveyedTexts(
            source="held-out, seed 0",
            n=n + 1,
            n_read=n,
            n_failed=1,
            failed=(Failed(line=17, text="a\tb", why="it has a tab"),),
            digest="cd" * 32,
        ),
        "options": {"k": 3, "by": None, "seed": 0},
        "statistics": STATISTICS,
        "kinds": {kind: SurveyedKind(layers=tuple(range(n_layers)), n_heads=n_heads) for kind in kinds},
        "heads": tuple(row for of_head in rows for row in of_head),
        "examples": examples,
        "agreement": {kind: _agreement(rng, n_layers * n_heads) for kind in kinds},
        "outputs": outputs(rng, n),
        "verdict": verdict(rng, n_layers, n_heads),
        "version": __version__,
    }
    return Survey(**{**made, **changes})


def head(rng: np.random.Generator, place: HeadAddress, n: int) -> tuple[list[HeadStatistic], HeadTexts]:
    """The numbers and the texts of one head; `mass` is of cross-attention alone."""
    by = "mass" if place.kind == "cross" else "entropy_share"
    n_mirror = int(rng.integers(1, n))
    texts = [
        tuple(TextValue(line=int(line), text=f"text {line}", value=round(float(rng.random()), 4)) for line in lines)
        for lines in rng.permutation(np.arange(1, 10)).reshape(3, 3)
    ]
    rows = [statistic(rng, place, of, n) for of in STATISTICS if of.name != "mass" or place.kind == "cross"]
    rows += [role_share(place, role, count, n) for role, count in (("mirror", n_mirror), ("mixed", n - n_mirror))]
    lists = dict(zip(("highest", "typical", "unusual"), texts, strict=True))
    return rows, HeadTexts(kind=place.kind, layer=place.layer, head=place.head, by=by, **lists)


def statistic(rng: np.random.Generator, place: HeadAddress, of: SurveyedStatistic, n: int) -> HeadStatistic:
    """Of n numbers drawn between the statistic's outer edges."""
    values = of.edges[0] + rng.beta(2, 5, n) * (of.edges[-1] - of.edges[0])
    return HeadStatistic(
        kind=place.kind,
        layer=place.layer,
        head=place.head,
        statistic=of.name,
        n=n,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)),
        min=float(values.min()),
        max=float(values.max()),
        uniform=float(values.mean() / 2),
        counts=tuple(np.histogram(values, of.edges)[0].tolist()),
    )


def changed(survey: Survey, place: HeadAddress, name: str, **numbers: Any) -> Survey:
    """The same survey with other numbers of one statistic of one head."""
    heads = tuple(replace(row, **numbers) if (row.place, row.statistic) == (place, name) else row for row in survey.heads)
    assert heads != survey.heads
    return replace(survey, heads=heads)


def outputs(rng: np.random.Generator, n: int) -> SurveyedOutputs:
    """Of three lengths, nine of ten right."""
    by_length = []
    for length, m in zip((4, 6, 9), (n // 3, n // 3, n - 2 * (n // 3)), strict=True):
        right = {"n_exact": m * 9 // 10, "n_tokens": m * length, "n_right": m * length * 19 // 20}
        by_length.append(CorrectAtLength(length=length, n=m, n_known=m, bleu=None, **right))
    counts = rng.integers(1, 50, 20)
    n_judged, places = tuple(counts.tolist()), np.arange(20)
    confidence = Confidence(
        edges=SHARES,
        counts=n_judged,
        n_judged=n_judged,
        sum_p=tuple((counts * (places + 0.5) / 20).tolist()),
        n_right=tuple((counts * (places + 1) // 20).tolist()),
    )
    worst = tuple(
        WorstOutput(line=line, text=f"text {line}", output="txet", expected="txet ", confidence=0.9 - line / 100)
        for line in range(1, 4)
    )
    names = ("n", "n_known", "n_exact", "n_tokens", "n_right")
    totals: Any = {name: sum(getattr(each, name) for each in by_length) for name in names}
    return SurveyedOutputs(**totals, bleu=None, by_length=tuple(by_length), confidence=confidence, worst=worst)


def verdict(rng: np.random.Generator, n_layers: int, n_heads: int) -> Verdicts:
    """Over heads of cross-attention; one of which has no rank correlation."""
    names = [f"L{layer + 1} H{number + 1}" for layer in range(n_layers) for number in range(n_heads)]
    maps = [MapVerdict(name, _mean(rng), _mean(rng)) for name in names]
    maps[0] = MapVerdict(names[0], maps[0].top, Mean(float("nan")))
    counts = {"n_texts": 5, "n_judged": 31, "n_left_out": 4, "n_without_choice": 1}
    missing = {"gradient": "this model has none"}
    return Verdicts(kind="cross", mode="word", chance=Mean(0.2, (0.1, 0.3)), maps=tuple(maps), missing=missing, **counts)


def _mean(rng: np.random.Generator) -> Mean:
    low, value, high = np.sort(rng.random(3)).tolist()
    return Mean(value, (low, high))


def _agreement(rng: np.random.Generator, n: int) -> tuple[tuple[float, ...], ...]:
    found = rng.random((n, n))
    return tuple(map(tuple, np.where(np.eye(n), 1.0, (found + found.T) / 2).tolist()))
