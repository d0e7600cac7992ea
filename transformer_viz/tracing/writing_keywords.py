"""Keywords of `decode` that say how tokens are chosen, with their limits; the command line makes its options of them."""

from typing import Annotated, TypedDict

from transformer_viz.schema import Choice, Range
from transformer_viz.terms import STOPS, STRATEGIES

WIDEST_BEAM, MOST_CANDIDATES = 512, 100_000
LARGEST_SEED = 2**63 - 1


class AnyStrategyKeywords(TypedDict, total=False):
    """Keywords of all strategies."""

    strategy: Annotated[str, "how tokens are chosen (greedy)", Choice(STRATEGIES)]
    max_length: Annotated[int | None, "the most tokens to write, <end> included (the task's or the model's)", Range(1, 512)]
    candidates: Annotated[int, "how many candidates each step keeps (10)", Range(1, MOST_CANDIDATES)]


class BeamKeywords(TypedDict, total=False):
    """Keywords of a beam search."""

    beam_size: Annotated[int | None, "beam: how many continuations each step keeps (5)", Range(1, WIDEST_BEAM)]
    length_penalty: Annotated[
        float | None, "beam: sums of log-probabilities are divided by length to this power (0.6)", Range(-10, 10)
    ]
    n_best: Annotated[
        int | None, "beam: how many finished hypotheses are wanted (as many as the beam is wide)", Range(1, WIDEST_BEAM)
    ]
    stop: Annotated[str | None, "beam: when the search stops (bound)", Choice(STOPS)]
    refill: Annotated[bool | None, "beam: kept full where hypotheses end, as in transformers"]


class SamplingKeywords(TypedDict, total=False):
    """Keywords of sampling."""

    temperature: Annotated[float | None, "sample: logits are divided by it (1)", Range(0, 1000)]
    top_k: Annotated[int | None, "sample: only the N most probable tokens (all)", Range(1, 1_000_000)]
    top_p: Annotated[
        float | None,
        "sample: only the most probable tokens that reach this probability together (1)",
        Range(0, 1, above=True),
    ]
    seed: Annotated[int | None, "sample: another seed draws other tokens (0)", Range(0, LARGEST_SEED)]


class WritingKeywords(AnyStrategyKeywords, BeamKeywords, SamplingKeywords, total=False):
    """All of them."""


OF_STRATEGY: dict[str, frozenset[str]] = {
    "greedy": frozenset(),
    "beam": frozenset(BeamKeywords.__annotations__),
    "sample": frozenset(SamplingKeywords.__annotations__),
}
"""The keywords that mean something to one strategy alone."""
