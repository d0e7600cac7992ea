"""The measures of a head: one number of each, from its rows; each is an entry of `OF_MANY`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.head_rows import NONE, HeadRows
from transformer_viz.language import later

_NO_CHOICE, _NO_TRUE_KEY = later("no row with a choice"), later("no right token")


@dataclass(frozen=True)
class Measure:
    """One number of every head.

    Attributes:
        of: the function that computes it, float64 (…, layer, head), NaN where a head has no number; or None for a kind without.
        column: its heading in a table; a word or two.
        title: its name beside the number.
        help: its meaning, in a sentence.
        is_share: whether it lies between 0 and 1, so that tiles can be tinted by it.
        missing: why a kind of attention may have no such number.
        of_uniform: the number of uniform attention where it is always the same; then no baseline is listed.
        is_for_many: whether only surveys list it, and no table of one run.
    """

    of: Callable[[HeadRows], np.ndarray | None]
    column: str
    title: str
    help: str
    is_share: bool = True
    missing: str = _NO_CHOICE
    of_uniform: float | None = None
    is_for_many: bool = False


def mass(heads: HeadRows) -> np.ndarray | None:
    """Weight on the true key, over the steps that have one; cross-attention only."""
    true = heads.true_keys
    return None if true is None else heads.mean(heads.weight_on(true), _by_head(true != NONE))


def hit_rate(heads: HeadRows) -> np.ndarray | None:
    """Share of the steps with a true key whose largest weight is on it; of equal weights the lowest key is the largest."""
    true = heads.true_keys
    # Uniform attention has no largest weight. Its baseline is the chance of drawing the true key from the allowed ones.
    if true is None or heads.is_uniform:
        return mass(heads)
    return heads.mean((heads.top == _by_head(true)).astype(np.float64), _by_head(true != NONE))


def entropy_share(heads: HeadRows) -> np.ndarray:
    """Entropy as a share of the logarithm of the number of allowed keys; rows with one allowed key have none."""
    return heads.mean(heads.entropy_share, heads.has_choice)


def distance(heads: HeadRows) -> np.ndarray | None:
    """|key − true key| in positions, weighted, over the steps that have one; in self-attention |key − the row's position|."""
    n_queries, n_keys = heads.weights.shape[-2:]
    if heads.kind == "cross":
        if (reference := heads.true_keys) is None:
            return None
        judged = _by_head(reference != NONE)
    else:
        reference, judged = np.arange(n_queries), None
    steps = np.abs(np.arange(n_keys) - reference[..., None]).astype(np.float64)
    return heads.mean(np.einsum("...k,...k->...", heads.weights, steps[..., None, None, :, :]), judged)


def last_key(heads: HeadRows) -> np.ndarray | None:
    """Weight on the last token of the source: where heads of an encoder rest, and cross-attention once all is written."""
    last = heads.positions.last
    if heads.kind == "decoder" or (last == NONE).all():  # a decoder's last key is the row's own
        return None
    keys = np.broadcast_to(last[..., None], (*last.shape, heads.weights.shape[-2]))
    return heads.mean(heads.weight_on(keys), heads.has_choice)


def special(heads: HeadRows) -> np.ndarray:
    """Weight on tokens of no text: beginning, end, separators."""
    is_special = heads.positions.special[..., None, None, None, :].astype(float)
    return heads.mean(np.einsum("...k,...k->...", heads.weights, is_special), heads.has_choice)


def itself(heads: HeadRows) -> np.ndarray | None:
    """Weight of each row of self-attention on its own position."""
    if heads.kind == "cross":
        return None
    return heads.mean(heads.weight_on(np.arange(heads.weights.shape[-2])), heads.has_choice)


def _by_head(rows: np.ndarray) -> np.ndarray:
    """(…, query), the same for all heads -> (…, 1, 1, query)."""
    return rows[..., None, None, :]


OF_MANY: dict[str, Measure] = {
    "mass": Measure(
        mass,
        column=later("right token"),
        title=later("weight on the right token"),
        help=later("Mean weight on the right token, over the steps that have one"),
        missing=_NO_TRUE_KEY,
    ),
    "hit_rate": Measure(
        hit_rate,
        column=later("on top"),
        title=later("steps with the right token on top"),
        help=later("Share of those steps whose largest weight is on the right token"),
        missing=_NO_TRUE_KEY,
    ),
    "entropy": Measure(
        lambda heads: heads.mean(heads.entropy),
        column=later("entropy"),
        title=later("entropy (nats)"),
        help=later("Mean entropy of a row, in nats"),
        is_share=False,
        missing=later("no row to judge"),
    ),
    "entropy_share": Measure(
        entropy_share,
        column=later("entropy share"),
        title=later("entropy, of the largest possible"),
        help=later("Entropy as a share of the logarithm of the number of allowed keys"),
        of_uniform=1.0,
    ),
    "distance": Measure(
        distance,
        column=later("distance"),
        title=later("mean distance"),
        help=later("Mean distance from the right token; in self-attention, from the row's own position. In positions"),
        is_share=False,
        missing=later("no row to judge"),
    ),
    # In a decoder heads rest there that have nothing to look for (Xiao et al. 2023, "Efficient Streaming Language Models with
    # Attention Sinks").
    "first_key": Measure(
        lambda heads: heads.mean(heads.weights[..., 0], heads.has_choice),
        column=later("first key"),
        title=later("weight on the first token"),
        help=later("Mean weight on the first key, over the rows that may look at another one too"),
    ),
    "last_key": Measure(
        last_key,
        column=later("last key"),
        title=later("weight on the last token"),
        help=later("Mean weight on the last token of the source, <end> where there is one"),
        is_for_many=True,
    ),
    "special": Measure(
        special,
        column=later("special"),
        title=later("weight on special tokens"),
        help=later(
            "Mean weight on tokens of no text, such as <start> and <end>, over the rows that may look at another one too"
        ),
        is_for_many=True,
    ),
    "itself": Measure(
        itself,
        column=later("itself"),
        title=later("weight on itself"),
        help=later("Mean weight of a token on itself, over the rows that may look at another one too; in self-attention"),
        is_for_many=True,
    ),
}
"""The measures by name, in the order of tables; surveys compute them over many texts."""
MEASURES = {name: measure for name, measure in OF_MANY.items() if not measure.is_for_many}
"""The measures that are listed for one run."""
