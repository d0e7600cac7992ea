"""The written token of each step with its candidates, and the candidates at a mask token."""

import math
from dataclasses import dataclass
from typing import Annotated

from transformer_viz.errors import TraceError
from transformer_viz.schema import Count, Range, Share

Text = Annotated[str, Range(0, 2**30)]
"""Tokens and texts may be as long as what was read."""
ShareOrNaN = Annotated[float, Range(0, 1 + 1e-6, has_nan=True)]
"""A mask mistake can make probabilities NaN."""
LogProbability = Annotated[float, Range(most=1e-6)]
Candidate = tuple[Text, ShareOrNaN]
"""A token and its probability."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One written token and what else could have been written.

    Attributes:
        token: what was written.
        probability: of `token`, from the natural softmax over the whole vocabulary at temperature 1.
        log_probability: its natural logarithm, computed before the rounding to a probability; −∞ for 0.
        rank: place of `token` among all tokens, 0 = the most probable; ties by id; None where it was not recorded.
        candidates: the most probable tokens with their probabilities, best first; none where they were not recorded.
        sampling_probability: of `token` under the distribution it was drawn from, if it was sampled.
        token_id: of `token`, where labels do not tell tokens apart.
        candidate_ids: one for each candidate; none where labels tell tokens apart.

    Raises:
        TraceError: there is not one id for each candidate.
    """

    token: Text
    probability: ShareOrNaN
    log_probability: Annotated[float, Range(most=1e-6, has_nan=True)]
    rank: Count | None
    candidates: tuple[Candidate, ...]
    sampling_probability: Share | None = None
    token_id: Count | None = None
    candidate_ids: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if self.candidate_ids and len(self.candidate_ids) != len(self.candidates):
            raise wrong_ids(self.token, self.candidates, self.candidate_ids)
        # A file has null for every number that JSON does not know; the logarithm of 0 is one of them.
        if self.probability == 0 and math.isnan(self.log_probability):
            object.__setattr__(self, "log_probability", -math.inf)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fill:
    """The candidates of a model at a mask token of the source.

    Attributes:
        place: of the mask token among the source tokens.
        candidates: the most probable tokens with their probabilities, best first.
        candidate_ids: one for each candidate; none where labels tell tokens apart.

    Raises:
        TraceError: there is not one id for each candidate.
    """

    place: Count
    candidates: tuple[Candidate, ...]
    candidate_ids: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if self.candidate_ids and len(self.candidate_ids) != len(self.candidates):
            raise wrong_ids(f"the fill at {self.place}", self.candidates, self.candidate_ids)


def wrong_ids(where: str, candidates: tuple[Candidate, ...], ids: tuple[int, ...]) -> TraceError:
    """The error for ids that are not one for each candidate."""
    return TraceError(f"{where[:40]!r} has {len(ids)} ids for {len(candidates)} candidates")
