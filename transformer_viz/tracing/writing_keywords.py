"""Keywords of `decode` that say how tokens are chosen, with their limits; the command line makes its options of them."""

from typing import Annotated, TypedDict

from transformer_viz.schema import Choice, Range
from transformer_viz.terms import STOPS, STRATEGIES

WIDEST_BEAM, MOST_CANDIDATES = 512, 100_000
LARGEST_SEED = 2**63 - 1


class AnyStrategyKeywords(TypedDict, total=False):
    """Keywords of all strategies."""

    strategy: Annotated[str, "how tokens are chosen (greedy)", Choice(STRATEGIES)]
    max_length: Annotated[
        int | None, "write at most N tokens, <end> included (the limit of the task or the model)", Range(1, 512)
    ]
    candidates: Annotated[int, "how many candidates to record at each step (10)", Range(1, MOST_CANDIDATES)]


class BeamKeywords(TypedDict, total=False):
    """Keywords of a beam search."""

    beam_size: Annotated[int | None, "beam: how many continuations to keep at each step (5)", Range(1, WIDEST_BEAM)]
    length_penalty: Annotated[float | None, "beam: divide scores by length to the power N (0.6)", Range(-10, 10)]
    n_best: Annotated[
        int | None, "beam: how many finished hypotheses to find (as many as the beam is wide)", Range(1, WIDEST_BEAM)
    ]
    stop: Annotated[
        str | None,
        "beam: when to stop: nothing better is possible, enough are finished, or at the limit (bound)",
        Choice(STOPS),
    ]
    refill: Annotated[bool | None, "beam: refill the beam where hypotheses end, as transformers does"]


class SamplingKeywords(TypedDict, total=False):
    """Keywords of sampling."""

    temperature: Annotated[float | None, "sample: divide logits by N (1)", Range(0, 1000)]
    top_k: Annotated[int | None, "sample: only the N most probable tokens (all)", Range(1, 1_000_000)]
    top_p: Annotated[
        float | None,
        "sample: only the most probable tokens that together reach N (1)",
        Range(0, 1, above=True),
    ]
    seed: Annotated[int | None, "sample: draw other tokens (0)", Range(0, LARGEST_SEED)]


class WritingKeywords(AnyStrategyKeywords, BeamKeywords, SamplingKeywords, total=False):
    """The keywords of all strategies."""


OF_STRATEGY: dict[str, frozenset[str]] = {
    "greedy": frozenset(),
    "beam": frozenset(BeamKeywords.__annotations__),
    "sample": frozenset(SamplingKeywords.__annotations__),
}
"""The keywords that mean something to one strategy alone."""
