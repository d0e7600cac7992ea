"""What to call a head, and by which rule: the key that its rows look at, or how widely they look.

A rule of place says which key each query row has in its pattern; its number is the head's mean weight on
those keys. It counts for a head where that mean is at least `THRESHOLD`, at least `MARGIN` above what even
attention has there, and where at least `COVERAGE` of the rows have such a key. The highest number names the
head; of equal ones the first in `PLACES`. Only rows with a choice (two allowed keys or more) are counted:
the decoder's first row looks at `<start>` whatever the head does.

Where no place names it, the width does: `broad`, `focused` or `mixed`. `docs/grading.md` has all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.rows import allowed_keys, entropies, even_weights, judged_rows, mean_over, real_queries
from transformer_viz.analysis.true_key import true_keys
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END

THRESHOLD = 0.5
MARGIN = 0.2
COVERAGE = 0.5
BROAD = 0.9
"""Of the logarithm of the number of allowed keys, which is the entropy of uniform attention."""

Keys = Sequence[int | None]


@dataclass(frozen=True)
class Place:
    """A rule of place: the key that each query row has in it, or None; the whole is None where the rule makes no sense."""

    name: str
    words: str
    keys: Callable[[Trace, Kind], Keys | None]


@dataclass(frozen=True)
class Named:
    """A head's name, the rule that gave it, the rule's number, and that number for uniform attention."""

    name: str
    rule: str
    score: float | None
    score_even: float | None


def _mirror(trace: Trace, kind: Kind) -> Keys | None:
    """Row i looks at the letter that is as far from the end as i is from the beginning."""
    places = _letter_places(trace)
    if kind == "decoder" or not places:
        return None
    n = len(places)
    if kind == "encoder":
        return [None if letter is None else places.get(n - 1 - letter) for letter in trace.source_letters]
    return [places.get(n - 1 - t) for t in range(len(trace.steps))]


def _true(trace: Trace, kind: Kind) -> Keys | None:
    return true_keys(trace) if kind == "cross" else None


def _shifted(by: int) -> Callable[[Trace, Kind], Keys | None]:
    """The key `by` places after the row's own: its position, or in cross-attention the letter with the number of the step."""

    def keys(trace: Trace, kind: Kind) -> Keys | None:
        if kind == "cross":
            places = _letter_places(trace)
            return [places.get(t + by) for t in range(len(trace.steps))] if places else None
        n = len(trace.queries(kind))
        return [q + by if 0 <= q + by < n else None for q in range(n)]

    return keys


def _first(trace: Trace, kind: Kind) -> Keys | None:
    return [0] * len(trace.queries(kind))


def _last(trace: Trace, kind: Kind) -> Keys | None:
    """`<end>`, or where a source has none, its last token that is no padding."""
    if kind == "decoder":
        return None
    tokens = trace.source_tokens
    real = real_queries(trace, "encoder").nonzero()[0]
    last = tokens.index(END) if END in tokens else int(real[-1]) if len(real) else None
    return None if last is None else [last] * len(trace.queries(kind))


PLACES: tuple[Place, ...] = (
    Place("mirror", "the token in the mirrored place: the last one of the text for the first, and so on", _mirror),
    Place("true key", "the source token that is right for the step", _true),
    Place("same place", "its own position; in cross-attention, at step n the n-th token of the text", _shifted(0)),
    Place("previous", "one place before its own; in cross-attention, at step n the token before the n-th", _shifted(-1)),
    Place("next", "one place after its own; in cross-attention, at step n the token after the n-th", _shifted(1)),
    Place("first", "the first token, <start> where there is one", _first),
    Place("last", "the last token, <end> where there is one", _last),
)
WIDTHS: dict[str, str] = {
    "broad": "everything almost alike: entropy at least 0.9 of the largest possible",
    "focused": "mostly one key in each row, but no rule of place says which",
    "mixed": "several keys at once",
    "nothing": "no row that could be judged",
}


def names(trace: Trace, kind: Kind) -> list[list[Named]]:
    """The name of every head of a kind that the run has, by layer and head."""
    weights = trace.attentions(kind)
    assert weights is not None
    allowed = allowed_keys(trace, kind)
    even = even_weights(allowed)
    rows = judged_rows(trace, kind) & (allowed.sum(-1) > 1)
    scores = [_place_scores(place.keys(trace, kind), weights, even, rows) for place in PLACES]
    # A run of one row, or one whose rows have one key each, has nothing to judge; NaN then, and no name by place.
    share = mean_over(entropies(weights) / np.log(np.maximum(allowed.sum(-1), 2)), rows)
    sharpest = mean_over(weights.max(-1).astype(np.float64), rows)
    even_sharpest = mean_over(even.max(-1), rows)
    n_layers, n_heads = weights.shape[:2]
    return [
        [
            _named([(score[layer, head], own[layer, head]) for score, own in scores], share[layer, head])
            or _by_sharpness(sharpest[layer, head], even_sharpest[layer, head])
            for head in range(n_heads)
        ]
        for layer in range(n_layers)
    ]


def _place_scores(keys: Keys | None, weights: np.ndarray, even: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean weight on a pattern's keys, of the heads and of uniform attention, (layer, head); NaN: too few rows."""
    none = np.full(weights.shape[:2], np.nan)
    if keys is None:
        return none, none
    queries = [q for q, key in enumerate(keys) if key is not None]
    if not queries:
        return none, none
    at = [key for key in keys if key is not None]
    mine = rows[:, :, queries]
    covered = mine.sum(-1) >= COVERAGE * rows.sum(-1)
    found = (mean_over(source[:, :, queries, at].astype(np.float64), mine) for source in (weights, even))
    score, own = (np.where(covered, mean, np.nan) for mean in found)
    return score, own


def _named(scores: list[tuple[float, float]], share: float) -> Named | None:
    """By place, else `broad`, else None."""
    best: Named | None = None
    for place, (score, own) in zip(PLACES, scores, strict=True):
        # Comparisons with NaN are false. Strictly higher, so that the first of equal ones stays.
        if score >= THRESHOLD and score - own >= MARGIN and (best is None or best.score is None or score > best.score):
            best = Named(place.name, place.words, float(score), float(own))
    if best is None and share >= BROAD:
        return Named("broad", WIDTHS["broad"], float(share), 1.0)
    return best


def _by_sharpness(sharpest: float, even: float) -> Named:
    if np.isnan(sharpest):
        return Named("nothing", WIDTHS["nothing"], None, None)
    name = "focused" if sharpest >= THRESHOLD and sharpest - even >= MARGIN else "mixed"
    return Named(name, WIDTHS[name], float(sharpest), float(even))


def _letter_places(trace: Trace) -> dict[int, int]:
    """Letter number to source position."""
    return {letter: place for place, letter in enumerate(trace.source_letters) if letter is not None}
