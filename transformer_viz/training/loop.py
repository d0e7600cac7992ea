"""The training loop. It knows neither task nor screen: batches come in, events go out.

Everything random is a pure function of recipe, step and worker (batches and dropout alike), so a run that was cut off goes on
exactly where it was: the state is the weights, the optimizer's moments and the number of the step.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn

from transformer_viz.model.transformer import Transformer
from transformer_viz.training.batch import Batch
from transformer_viz.training.compiled import compiled
from transformer_viz.training.losses import EntropyTap, loss_sum, right_ones
from transformer_viz.training.parallel import ALONE, Workers
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import PAD_ID


@dataclass(frozen=True)
class Event:
    """What is known after a step; loss and entropy in nats, accuracies over tokens and over whole texts of the batch."""

    step: int
    loss: float
    token_accuracy: float
    sequence_accuracy: float
    learning_rate: float
    attention_entropy: float | None
    """Mean entropy of the cross-attention rows, where the recipe weighs it."""
    checks: dict[str, float] = field(default_factory=dict)
    """What somebody measured on held-out texts after this step."""

    def row(self) -> dict[str, float | None]:
        """The event as a row of `history.csv`."""
        data = asdict(self)
        return {**{name: value for name, value in data.items() if name != "checks"}, **self.checks}


def train(
    model: Transformer, batch_at: Callable[[int], Batch], recipe: Recipe, device: torch.device, every: int = 50
) -> Iterator[Event]:
    """Trains `model` in place; yields an event after every `every` steps and after the last."""
    trainer = Trainer(model, batch_at, recipe, device)
    yield from trainer.run(lambda step: step % every == 0)


class Trainer:
    """A model, its optimizer, and how far they are.

    Args:
        model: trained in place.
        batch_at: the batch of a step, the same for every worker; each takes its share of the rows.
        recipe: what to do.
        device: where.
        workers: which of how many processes this one is.
    """

    def __init__(
        self,
        model: Transformer,
        batch_at: Callable[[int], Batch],
        recipe: Recipe,
        device: torch.device,
        workers: Workers = ALONE,
    ) -> None:
        self.model = model.to(device)
        self.batch_at = batch_at
        self.recipe = recipe
        self.device = device
        self.workers = workers
        self.step = 0
        if recipe.frozen_embeddings:
            _freeze_embeddings(model)
        self.optimizer = make_optimizer(model, recipe)
        self.parallel: nn.Module = workers.wrapped(model, device)
        self.forward: Callable[..., Tensor] = compiled(self.parallel) if recipe.compiled else self.parallel

    def run(self, reports: Callable[[int], bool]) -> Iterator[Event]:
        """Goes on to the recipe's last step; yields an event after each step that `reports` accepts, and after the last.

        Whoever takes the events may save, or measure the model: it is put back into train mode.
        """
        while self.step < self.recipe.steps:
            self.model.train()
            report = reports(self.step + 1) or self.step + 1 == self.recipe.steps
            event = self._one_step(report)
            self.step += 1
            if event:
                yield event

    def _one_step(self, report: bool) -> Event | None:
        recipe, step = self.recipe, self.step
        whole = self.batch_at(step)
        # A tensor, since a number would have to be waited for where the batch lies on a GPU.
        n_tokens = (whole.target_out != PAD_ID).sum()
        batch = self.workers.share(whole).to(self.device)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate_at(step)
        if self.model.config.dropout:
            torch.manual_seed(_dropout_seed(recipe.seed, step, self.workers.rank))
        weight = recipe.sharpness_at(step)
        tap = EntropyTap(batch.target_padding) if weight > 0 else None
        # A tap collects what it is shown, which a compiler cannot follow.
        model = self.forward if tap is None else self.parallel
        with _half_precision(recipe, self.device):
            logits = model(batch.source, batch.target_in, batch.source_padding, batch.target_padding, tap=tap)
        summed = loss_sum(logits, batch.target_out, recipe)
        # Workers average their gradients; the mean over all tokens of the whole batch is wanted.
        loss = summed * (self.workers.count / n_tokens)
        self.optimizer.zero_grad(set_to_none=True)
        (loss if tap is None else loss + weight * tap.mean()).backward()
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        if not report:
            return None
        sums = self.workers.sum([float(summed.detach()), *right_ones(logits.detach(), batch.target_out)], self.device)
        mean_loss, tokens, texts = (
            part / n for part, n in zip(sums, (int(n_tokens), int(n_tokens), len(whole.source)), strict=True)
        )
        entropy = None if tap is None else float(tap.mean().detach())
        return Event(step + 1, mean_loss, tokens, texts, recipe.learning_rate_at(step), entropy)


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


def _half_precision(recipe: Recipe, device: torch.device) -> AbstractContextManager[object]:
    if recipe.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def _freeze_embeddings(model: Transformer) -> None:
    for name, parameter in model.named_parameters():
        if "embedding" in name:
            parameter.requires_grad_(False)


def _dropout_seed(seed: int, step: int, rank: int) -> int:
    """Another one for every step and worker; mixed, since neighbouring seeds must not give related draws."""
    mixed = (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + rank * 0x94D049BB133111EB) % 2**64
    return (mixed ^ (mixed >> 31)) % 2**63
