"""The training loop. It knows neither task nor screen: batches come in, events go out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.model.tap import Site, TapName
from transformer_viz.model.transformer import Transformer
from transformer_viz.training.batches import Batch
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import PAD_ID


@dataclass(frozen=True)
class Event:
    """What is known after a step; loss and entropy in nats, accuracies over tokens and over whole strings of the batch."""

    step: int
    loss: float
    token_accuracy: float
    sequence_accuracy: float
    learning_rate: float
    attention_entropy: float | None
    """Mean entropy of the cross-attention rows, where the recipe weighs it."""


class EntropyTap:
    """Collects the mean entropy of every cross-attention row, with gradient."""

    def __init__(self) -> None:
        self.entropies: list[Tensor] = []

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if site.kind == "cross" and name == "weights":
            self.entropies.append(torch.special.entr(value.clamp_min(1e-9)).sum(-1).mean())
        return value

    def mean(self) -> Tensor:
        """Over layers, heads, rows and sentences, in nats."""
        return torch.stack(self.entropies).mean()


def train(
    model: Transformer, batch_at: Callable[[int], Batch], recipe: Recipe, device: torch.device, every: int = 50
) -> Iterator[Event]:
    """Trains `model` in place; yields an event after every `every` steps and after the last."""
    model.to(device).train()
    optimizer = make_optimizer(model, recipe)
    for step in range(recipe.steps):
        report = (step + 1) % every == 0 or step + 1 == recipe.steps
        event = _step(model, optimizer, batch_at(step).to(device), recipe, step, report)
        if event:
            yield event


def make_optimizer(model: Transformer, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay acts on matrices only, not on biases, norms and embeddings."""
    decayed = [p for n, p in model.named_parameters() if p.dim() > 1 and "embedding" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() <= 1 or "embedding" in n]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    kind = torch.optim.AdamW if recipe.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.epsilon)


def _step(
    model: Transformer, optimizer: torch.optim.Optimizer, batch: Batch, recipe: Recipe, step: int, report: bool
) -> Event | None:
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate_at(step)
    weight = recipe.sharpness_at(step)
    tap = EntropyTap() if weight > 0 else None
    logits = model(batch.source, batch.target_in, batch.source_padding, batch.target_padding, tap=tap)
    loss = F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD_ID)
    optimizer.zero_grad(set_to_none=True)
    (loss if tap is None else loss + weight * tap.mean()).backward()
    if recipe.clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    if not report:
        return None
    tokens, sequences = _accuracy(logits.detach(), batch.target_out)
    entropy = None if tap is None else float(tap.mean().detach())
    return Event(step + 1, float(loss.detach()), tokens, sequences, recipe.learning_rate_at(step), entropy)


def _accuracy(logits: Tensor, target: Tensor) -> tuple[float, float]:
    """Right tokens and right strings; padded positions count for nothing."""
    counted = target != PAD_ID
    right = (logits.argmax(-1) == target) & counted
    whole = (right | ~counted).all(-1)
    return float(right.sum() / counted.sum()), float(whole.float().mean())
