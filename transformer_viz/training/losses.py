"""The losses of training, its accuracy, and the sharpness of cross-attention. Padding is left out of all of them."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model.tap import RecordTap
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


def attention_entropy(keep: RecordTap, target_padding: Tensor | None = None) -> Tensor:
    """Mean entropy of the rows of cross-attention over layers, heads, rows and sentences, in nats, with gradient.

    Args:
        keep: the weights of a pass.
        target_padding: bool (batch, query), True = a padded row, which is left out; None = no padding.
    """
    entropies = []
    for weights in (kept["weights"] for site, kept in keep.kept.items() if site.kind == "cross"):
        rows = torch.special.entr(weights.clamp_min(1e-9)).sum(-1).mean(1)
        padding = torch.zeros_like(rows, dtype=torch.bool) if target_padding is None else target_padding
        entropies.append(rows.masked_fill(padding, 0.0).sum() / (~padding).sum())
    return torch.stack(entropies).mean()
