"""What training makes small, and how sharp cross-attention is. Padding is left out of everything."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model.tap import Site, TapName
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import PAD_ID


def loss_sum(logits: Tensor, target: Tensor, recipe: Recipe) -> Tensor:
    """The loss in nats, summed over the tokens that are no padding.

    cross-entropy smooths over the whole vocabulary, as torch does. kl is the divergence of log-probabilities from targets
    that are smoothed over all tokens but `<pad>` and the true one; without smoothing both are the same number.

    Args:
        logits: float (batch, target, vocabulary).
        target: int (batch, target), `<pad>` where there is nothing to write.
        recipe: `loss` and `label_smoothing`.
    """
    flat, wanted = logits.flatten(0, 1).float(), target.flatten()
    if recipe.loss == "cross-entropy":
        return F.cross_entropy(flat, wanted, ignore_index=PAD_ID, label_smoothing=recipe.label_smoothing, reduction="sum")
    counted = wanted != PAD_ID
    smoothed = torch.full_like(flat, recipe.label_smoothing / (flat.shape[-1] - 2))
    smoothed[:, PAD_ID] = 0.0
    smoothed.scatter_(1, wanted[:, None], 1 - recipe.label_smoothing)
    divergence = F.kl_div(flat.log_softmax(-1), smoothed, reduction="none").sum(-1)
    return divergence.masked_fill(~counted, 0.0).sum()


def correct_counts(logits: Tensor, target: Tensor) -> tuple[int, int]:
    """The numbers of tokens and of whole texts that are right; padded positions count for nothing."""
    is_token = target != PAD_ID
    is_right = logits.argmax(-1) == target
    return int((is_right & is_token).sum()), int((is_right | ~is_token).all(-1).sum())


class EntropyTap:
    """Collects the mean entropy of the cross-attention rows that are no padding, with gradient."""

    names = frozenset({"weights"})

    def __init__(self, target_padding: Tensor | None = None) -> None:
        """`target_padding`: bool (batch, target), True = a padded row; None = no padding."""
        self.target_padding = target_padding
        self.entropies: list[Tensor] = []

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if site.kind == "cross" and name == "weights":
            rows = torch.special.entr(value.clamp_min(1e-9)).sum(-1).mean(1)
            padding = torch.zeros_like(rows, dtype=torch.bool) if self.target_padding is None else self.target_padding
            self.entropies.append(rows.masked_fill(padding, 0.0).sum() / (~padding).sum())
        return value

    def mean(self) -> Tensor:
        """Over layers, heads, rows and sentences, in nats."""
        return torch.stack(self.entropies).mean()
