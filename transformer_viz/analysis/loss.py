"""Cross-entropy per token of a padded batch, with padding left out, and what it would wrongly be with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import PAD


@dataclass(frozen=True)
class Losses:
    """Losses in nats; all sentences have the same number of steps, padding included. A prompt, which is given, has none.

    Attributes:
        per_token: (sentence, step) −log p of the token that should be written.
        counted: bool (sentence, step); False at padding.
        right: bool (sentence, step); whether that token was the most probable one.
    """

    per_token: np.ndarray
    counted: np.ndarray
    right: np.ndarray

    @property
    def loss(self) -> float:
        """Mean over real tokens."""
        return float(self.per_token[self.counted].mean())

    @property
    def loss_with_padding(self) -> float:
        """Mean over all tokens: what comes out when `ignore_index` is forgotten."""
        return float(self.per_token.mean())

    @property
    def accuracy(self) -> float:
        """Share of right tokens among real ones."""
        return float(self.right[self.counted].mean())

    @property
    def accuracy_with_padding(self) -> float:
        """Share of right tokens among all, when padding must be predicted too."""
        return float(self.right.mean())

    @property
    def accuracy_padding_right(self) -> float:
        """Share of right tokens when every padded position counts as right, as a mask multiplied onto both sides does."""
        return float((self.right | ~self.counted).mean())


def losses(traces: Sequence[Trace]) -> Losses:
    """The losses of teacher-forced runs (`decode(…, target=…, pad_target_to=…)`) with the same number of steps.

    Raises:
        OptionError: a run whose probabilities or ranks were not recorded.
    """
    if any(not trace.steps or any(step.rank is None for step in trace.steps) for trace in traces):
        raise OptionError("a loss needs runs with recorded probabilities and ranks; decode with target=…")
    written = [trace.steps[trace.written] for trace in traces]
    return Losses(
        per_token=np.array([[-step.log_probability for step in steps] for steps in written]),
        counted=np.array([[step.token != PAD for step in steps] for steps in written]),
        right=np.array([[step.rank == 0 for step in steps] for steps in written]),
    )
