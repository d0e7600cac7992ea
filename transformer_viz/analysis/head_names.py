"""Names of heads, and the rule of each: the key that its rows look at, or how widely they look.

A rule of place says which key each query row has in its pattern; its number is the head's mean weight on
those keys. It counts for a head where that mean is at least `THRESHOLD`, at least `MARGIN` above what uniform
attention has there, and where at least `COVERAGE` of the rows have such a key. The highest number names the
head; of equal ones the first in `PLACES`. Only rows with a choice (two allowed keys or more) are counted:
the decoder's first row looks at `<start>` whatever the head does.

Where no place names it, the width does: `broad`, `focused` or `mixed`. `docs/grading.md` has all of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.head_rows import NONE, HeadRows, Positions
from transformer_viz.analysis.query_rows import mean_over
from transformer_viz.language import later

THRESHOLD = 0.5
MARGIN = 0.2
COVERAGE = 0.5
BROAD = 0.9
"""A head is broad from this share of the largest entropy on, which is the logarithm of the number of allowed keys."""


def _mirror(heads: HeadRows) -> np.ndarray | None:
    """Row i looks at the letter that is as far from the end as i is from the beginning."""
    positions = heads.positions
    n = positions.n_letters[..., None]
    if heads.kind == "decoder" or not n.any():
        return None
    if heads.kind == "encoder":
        letters = positions.letters
        return positions.of_letters(np.where(letters == NONE, NONE, n - 1 - letters))
    return _of_steps(positions, n - 1 - _numbers(heads))


def _shifted(by: int) -> Callable[[HeadRows], np.ndarray | None]:
    """The key `by` places after the row's own: its position, or in cross-attention the letter with the number of the step."""

    def keys(heads: HeadRows) -> np.ndarray | None:
        positions, shifted = heads.positions, _numbers(heads) + by
        if heads.kind == "cross":
            return _of_steps(positions, shifted) if positions.n_letters.any() else None
        return np.where((shifted >= 0) & (shifted < positions.n_queries[..., None]), shifted, NONE)

    return keys


def _last(heads: HeadRows) -> np.ndarray | None:
    """`<end>`, or where a source has none, its last token that is no padding."""
    if heads.kind == "decoder":
        return None
    return heads.positions.last[..., None] + np.zeros_like(_numbers(heads))


def _numbers(heads: HeadRows) -> np.ndarray:
    """(query,), of the rows, from 0."""
    return np.arange(heads.rows.shape[-1])


def _of_steps(positions: Positions, letters: np.ndarray) -> np.ndarray:
    """The places of the letters that steps have by number, int (…, query); a row of which nothing was written has none."""
    is_step = np.arange(letters.shape[-1]) < positions.n_steps[..., None]
    return np.where(is_step, positions.of_letters(letters), NONE)


PLACES: dict[str, tuple[str, Callable[[HeadRows], np.ndarray | None]]] = {
    later("mirror"): (later("the token in the mirrored place: the last one of the text for the first, and so on"), _mirror),
    later("right token"): (later("the source token that is right for the step"), lambda heads: heads.true_keys),
    later("same place"): (later("its own position; in cross-attention, at step n the n-th token of the text"), _shifted(0)),
    later("previous"): (
        later("one place before its own; in cross-attention, at step n the token before the n-th"),
        _shifted(-1),
    ),
    later("next"): (later("one place after its own; in cross-attention, at step n the token after the n-th"), _shifted(1)),
    later("first"): (later("the first token, <start> where there is one"), lambda heads: np.zeros_like(_numbers(heads))),
    later("last"): (later("the last token, <end> where there is one"), _last),
}
"""The rules of place by name: in words, and the key of each query row in the pattern, int (…, query), NONE where the row has
none; None where the rule makes no sense for a kind of attention."""
WIDTHS: dict[str, str] = {
    later("broad"): later("everything almost alike: entropy at least 0.9 of the largest possible"),
    later("focused"): later("mostly one key in each row, but no rule of place says which"),
    later("mixed"): later("several keys at once"),
    later("nothing"): later("no row that could be judged"),
}
ROLES: dict[str, str] = {name: words for name, (words, _) in PLACES.items()} | WIDTHS
"""The names of heads, with their rules in words."""


@dataclass(frozen=True)
class Roles:
    """The names of heads, (…, layer, head) each.

    Attributes:
        number: int, of the name in `ROLES`.
        score: float64, the number of its rule; NaN of `nothing`.
        score_uniform: float64, that number of uniform attention.
    """

    number: np.ndarray
    score: np.ndarray
    score_uniform: np.ndarray


def roles(heads: HeadRows, uniform: HeadRows) -> Roles:
    """The names of all heads.

    Args:
        heads: their rows.
        uniform: the same for attention that looks at every allowed key alike.
    """
    rows, rows_uniform = (each.rows & each.has_choice for each in (heads, uniform))
    share = mean_over(heads.entropy_share, rows)
    # Where no place names it: wide, sharp or neither.
    sharpest, sharpest_uniform = mean_over(heads.largest, rows), mean_over(uniform.largest, rows_uniform)
    is_focused = (sharpest >= THRESHOLD) & (sharpest - sharpest_uniform >= MARGIN)
    is_broad, is_nothing = share >= BROAD, np.isnan(sharpest)
    number = np.where(is_focused, _number("focused"), _number("mixed"))
    number = np.where(is_broad, _number("broad"), np.where(is_nothing, _number("nothing"), number))
    score, score_uniform = np.where(is_broad, share, sharpest), np.where(is_broad, 1.0, sharpest_uniform)
    best = np.full(share.shape, -np.inf)
    places, keys = _keys(heads)
    scores, scores_uniform = _place_scores(heads, keys, rows), _place_scores(uniform, _keys(uniform)[1], rows_uniform)
    for i, place in enumerate(places):
        on, on_uniform = scores[..., i], scores_uniform[..., i]
        # Comparisons with NaN are false. Strictly higher, so that the first of equal ones stays.
        is_best = (on >= THRESHOLD) & (on - on_uniform >= MARGIN) & (on > best)
        best = np.where(is_best, on, best)
        number, score = np.where(is_best, place, number), np.where(is_best, on, score)
        score_uniform = np.where(is_best, on_uniform, score_uniform)
    return Roles(number, score, score_uniform)


def _keys(heads: HeadRows) -> tuple[list[int], np.ndarray]:
    """The rules of place that make sense, and the key that each row has in their patterns, int (…, query, pattern)."""
    patterns = [(place, keys) for place, (_, rule) in enumerate(PLACES.values()) if (keys := rule(heads)) is not None]
    return [place for place, _ in patterns], np.stack(np.broadcast_arrays(*(keys for _, keys in patterns)), -1)


def _place_scores(heads: HeadRows, keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mean weight on the keys of patterns, int (…, query, pattern) -> (…, layer, head, pattern).

    NaN where too few of the rows have one.
    """
    mine = rows[..., None] & (keys != NONE)[..., None, None, :, :]
    counts = mine.sum(-2)
    sums = np.einsum("...qp,...qp->...p", heads.weights_on(keys), mine.astype(np.float64))
    is_covered = counts >= COVERAGE * rows.sum(-1)[..., None]
    return np.where(is_covered & (counts > 0), sums / np.maximum(counts, 1), np.nan)


def _number(name: str) -> int:
    return list(ROLES).index(name)
