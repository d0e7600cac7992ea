"""The training loop. It knows neither task nor folder: batches come in, events go out.

Everything random (batches and dropout) is a pure function of recipe and step, so an interrupted training resumes exactly
from the weights, the optimizer's moments and the number of the step.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.model import mistakes
from transformer_viz.model.tap import RecordTap, compose
from transformer_viz.model.transformer import Transformer
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.result import Event
from transformer_viz.vocabulary import PAD_ID


class Trainer:
    """A model, its optimizer, and how far they are.

    Args:
        model: trained in place.
        batch_at: the batch of a step.
        recipe: loss, optimizer, schedule and seed.
        device: where to train.
    """

    def __init__(self, model: Transformer, batch_at: Callable[[int], TokenBatch], recipe: Recipe, device: torch.device) -> None:
        self.model, self.batch_at, self.recipe, self.device = model.to(device), batch_at, recipe, device
        self.step = 0
        if recipe.frozen_embeddings:
            for name, parameter in model.named_parameters():
                parameter.requires_grad_("embedding" not in name)
        self.optimizer = make_optimizer(model, recipe)

    def run(self, reports: Callable[[int], bool]) -> Iterator[Event]:
        """Trains on to the recipe's last step; yields an event after each step that `reports` accepts, and after the last.

        Between two events the caller may save or evaluate the model: it is put back into train mode.
        """
        while self.step < self.recipe.steps:
            event = self.take_step(reports(self.step + 1) or self.step + 1 == self.recipe.steps)
            if event:
                yield event

    def take_step(self, report: bool) -> Event | None:
        """One update of the weights; its event where a report is wanted."""
        recipe, model, step = self.recipe, self.model, self.step
        batch = self.batch_at(step)
        n_tokens = int((batch.written != PAD_ID).sum())
        # Asked here, where no answer of a device is waited for.
        source_padding, target_padding = (None if each is None else each.to(self.device) for each in batch.paddings)
        batch = batch.to(self.device)
        learning_rate, sharpness = recipe.learning_rate_at(step), recipe.sharpness_at(step)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        if model.config.dropout:
            torch.manual_seed(int(np.random.default_rng([recipe.seed, 4, step]).integers(2**63)))
        keep = RecordTap("weights") if sharpness > 0 else None
        mistake = None if recipe.mistake is None else mistakes.MistakeTap(mistakes.named(recipe.mistake))
        model.train()
        is_half = recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if is_half else nullcontext():
            tap = compose(mistake, keep)
            logits = model(batch.source, batch.target, source_padding, target_padding, tap=tap)
        loss = loss_sum(logits, batch.written, recipe) / n_tokens
        entropy = None if keep is None else attention_entropy(keep, target_padding)
        self.optimizer.zero_grad()
        (loss if entropy is None else loss + sharpness * entropy).backward()
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        self.optimizer.step()
        self.step += 1
        if not report:
            return None
        right_tokens, right_texts = correct_counts(logits, batch.written)
        accuracies = right_tokens / n_tokens, right_texts / len(batch.source)
        nats = None if entropy is None else float(entropy.detach())
        return Event(self.step, float(loss.detach()), *accuracies, learning_rate, nats)


def make_optimizer(model: Transformer, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay acts on matrices only, not on biases, norms and embeddings."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decayed = [p for n, p in trained if p.dim() > 1 and "embedding" not in n]
    others = [p for n, p in trained if p.dim() <= 1 or "embedding" in n]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=recipe.momentum)
    kind = torch.optim.AdamW if recipe.optimizer == "adamw" else torch.optim.Adam
    # Each weight is read and written once instead of once for each operation.
    return kind(groups, lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.epsilon, fused=True)


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
