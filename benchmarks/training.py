"""Training on the CPU, and on a GPU where there is one: our loop around our model, and around `torch.nn.Transformer`.

Both train on the same batches of reversed letters, with the same sizes, share of dropout and optimizer.
"""

from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.decoding import SIZES
from benchmarks.measure import Line, Number, Report, in_turns
from transformer_viz import tasks
from transformer_viz.model.devices import title
from transformer_viz.model.transformer import Transformer, sinusoid
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipes import recipe_for
from transformer_viz.vocabulary import PAD_ID

TITLE = "training"
TARGETS = {}
_BATCH, _N_BATCHES, _BUDGET = {"1+1": 256, "6+6": 32}, 8, 20.0


def measure(report: Report) -> None:
    """Both sizes, in float32."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device, (name, batch_size) in product(map(torch.device, devices), _BATCH.items()):
        size = SIZES[name]
        layers = {"n_encoder_layers": size["layers"], "n_decoder_layers": size["layers"]}
        recipe = recipe_for(
            "reverse",
            "torch-reference",
            settings={"batch_size": batch_size, "precision": "float32", "mix": {"uniform": 1.0}},
            model={**layers, "d_model": size["d_model"], "n_heads": size["heads"], "d_ff": size["d_ff"]},
            task_options={"trained_lengths": [10, 19]},
        )
        task = tasks.make_task(recipe.task, recipe.task_options)
        batch_at = batches(recipe, task)
        prepared = [batch_at(step) for step in range(_N_BATCHES)]
        tokens = sum(int((batch.written != PAD_ID).sum()) for batch in prepared) / len(prepared)
        ours = make_model(recipe, task)
        models: dict[str, Any] = {"ours": ours, "nn.Transformer": TorchTransformer(ours)}
        works = {}
        for whose, model in models.items():
            trainer = Trainer(model, lambda step, prepared=prepared: prepared[step % len(prepared)], recipe, device)
            works[whose] = partial(next, trainer.run(lambda step: True))
        seconds = in_turns(works, budget=_BUDGET)
        numbers = [Number.of(whose, [tokens / each for each in taken]) for whose, taken in seconds.items()]
        what = f"{name} layers, batch {batch_size}, {title(device)}"
        report.add(Line(what, *numbers, "tokens/s", len(seconds["ours"]), "more"))


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with the sizes of one of our models, called like it."""

    positions: Tensor

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c = self.config = ours.config
        self.source_embedding = nn.Embedding(c.source_vocabulary_size, c.d_model)
        self.target_embedding = nn.Embedding(c.target_vocabulary_size, c.d_model)
        self.transformer = nn.Transformer(
            c.d_model, c.n_heads, c.n_encoder_layers, c.n_decoder_layers, c.d_ff, dropout=c.dropout, batch_first=True
        )
        self.output, self.dropout = nn.Linear(c.d_model, c.target_vocabulary_size), nn.Dropout(c.dropout)
        self.register_buffer("positions", sinusoid(c.max_positions, c.d_model, c.sinusoid_base).float(), persistent=False)

    def forward(
        self, source: Tensor, target: Tensor, source_padding: Tensor | None, target_padding: Tensor | None, *, tap: None = None
    ) -> Tensor:
        """As `Transformer.forward`; there is no tap."""
        read, written = (
            self.dropout(embedding(ids) + self.positions[: ids.shape[1]])
            for embedding, ids in ((self.source_embedding, source), (self.target_embedding, target))
        )
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
        hidden = self.transformer(
            read,
            written,
            tgt_mask=future,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return self.output(hidden)
