"""Training steps against a plain implementation of the published reversal model, and `torch.nn.Transformer`, in one run.

The plain one is written as its article describes it: additive masks, softmax, no fused kernel, its own Adam loop. All three get
the same batches; steps are taken in turn, so that another program disturbs all alike. `python -m benchmarks.training`.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz import tasks
from transformer_viz.model.positions import sinusoid
from transformer_viz.runs.make_checkpoint import make_model
from transformer_viz.training.batches import Batch, batches
from transformer_viz.training.defaults import recipe_for
from transformer_viz.training.loop import Trainer
from transformer_viz.vocabulary import PAD_ID

STEPS = 30
WIDTH, HEADS = 128, 4


class PlainAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            part(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part, y in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        weights = (q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS) + mask).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class PlainBlock(nn.Module):
    """x + norm(f(x)) for every sublayer."""

    def __init__(self, n_attentions: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(PlainAttention() for _ in range(n_attentions))
        self.feed = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(n_attentions + 1))

    def forward(self, x: Tensor, memory: Tensor | None, masks: list[Tensor]) -> Tensor:
        for attention, norm, mask, other in zip(self.attentions, self.norms, masks, (None, memory), strict=False):
            x = x + norm(attention(x, x if other is None else other, mask))
        return x + self.norms[-1](self.feed(x))


class Plain(nn.Module):
    """The published model: 1+1 layers, 4 heads, d_model 128, dropout on the embeddings."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(vocabulary, WIDTH) for _ in range(2))
        self.encoder, self.decoder = PlainBlock(1), PlainBlock(2)
        self.out = nn.Linear(WIDTH, vocabulary)
        self.dropout = nn.Dropout(0.1)
        self.table = sinusoid(64, WIDTH, 1e4).float()

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x = self.dropout(self.source(source) * math.sqrt(WIDTH) + self.table[: source.shape[1]])
        padding = (source == PAD_ID)[:, None, None].float() * -1e9
        memory = self.encoder(x, None, [padding])
        future = torch.full((target.shape[1], target.shape[1]), -1e9).triu(1) + (target == PAD_ID)[:, None, None].float() * -1e9
        y = self.dropout(self.target(target) + self.table[: target.shape[1]])
        return self.out(self.decoder(y, memory, [future, padding]))


class Torch(nn.Module):
    """`torch.nn.Transformer` of the same sizes."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(vocabulary, WIDTH) for _ in range(2))
        self.transformer = nn.Transformer(WIDTH, HEADS, 1, 1, WIDTH, dropout=0.0, batch_first=True)
        self.out = nn.Linear(WIDTH, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD_ID
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        options = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        mask = {"tgt_mask": causal, "tgt_key_padding_mask": target == PAD_ID}
        return self.out(self.transformer(self.source(source), self.target(target), **options, **mask))


def main() -> None:
    """Prints median milliseconds a step, and ratios."""
    recipe = recipe_for("reverse", "residual-post-norm")
    task = tasks.make(recipe.task, recipe.task_options)
    prepared = [batches(recipe, task)(step) for step in range(STEPS)]
    ours = Trainer(make_model(recipe, task), lambda step: prepared[step % STEPS], recipe, torch.device("cpu"))
    size = len(task.source_vocabulary)
    steps: dict[str, Callable[[Batch], object]] = {
        "ours": lambda batch: ours._one_step(False),
        "plain": _stepper(Plain(size)),
        "torch.nn.Transformer": _stepper(Torch(size)),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    ours.model.train()
    for batch in prepared:
        for name, step in steps.items():
            started = time.perf_counter()
            step(batch)
            times[name].append(time.perf_counter() - started)
    median = {name: 1000 * statistics.median(each[3:]) for name, each in times.items()}
    print(f"training, reversal as published, batch {recipe.batch_size}, {torch.get_num_threads()} threads, {sys.platform}")
    for name, milliseconds in median.items():
        print(f"  {name:22}{milliseconds:8.1f} ms a step   {milliseconds / median['ours']:.2f}x of ours")


def _stepper(model: nn.Module) -> Callable[[Batch], object]:
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Batch) -> None:
        logits = model(batch.source, batch.target_in)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main()
