"""Prints the table of `memory.md`: `python -m docs.memory_table`. Nothing is run but the prediction."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import transformer_viz as tv
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.tasks.reverse import Reverse

SHIPPED = ModelConfig(
    source_vocabulary_size=99, target_vocabulary_size=99, n_heads=4, n_encoder_layers=2, n_decoder_layers=2
)  # fmt: skip
BASE = ModelConfig(
    source_vocabulary_size=10_000, target_vocabulary_size=10_000, d_model=512, n_heads=8, n_encoder_layers=6,
    n_decoder_layers=6, d_ff=2048,
)  # fmt: skip
LARGE = replace(BASE, d_model=1024, n_heads=16, d_ff=4096, n_encoder_layers=12, n_decoder_layers=12)
BEAM: dict[str, Any] = {"strategy": "beam", "beam_size": 5}
RUNS: tuple[tuple[str, ModelConfig, int, dict[str, Any]], ...] = (
    ("2+2 layers, 4 heads (as shipped), 34 tokens", SHIPPED, 34, {}),
    ("the same, beam 5", SHIPPED, 34, BEAM),
    ("6+6 layers, 8 heads, 128 tokens", BASE, 128, {}),
    ("the same, beam 5", BASE, 128, BEAM),
    ("6+6 layers, 8 heads, 512 tokens", BASE, 512, {}),
    ("12+12 layers, 16 heads, 512 tokens", LARGE, 512, {}),
    ("the same, beam 5", LARGE, 512, BEAM),
)
HALF, CROSS = {"precision": "float16"}, {"kinds": "cross"}
KEPT: tuple[dict[str, Any], ...] = ({}, HALF, CROSS, HALF | CROSS)


def row(name: str, config: ModelConfig, n_tokens: int, how: dict[str, Any]) -> str:
    """What a run of so many source and target tokens takes: everything, half precision, cross-attention, both; and its peak."""
    # Its shapes alone: no weights take memory.
    with torch.device("meta"):
        model = Transformer(config)
    task = Reverse(max_length=n_tokens - 2, trained_lengths=(1, 1))
    checkpoint = tv.Checkpoint(name, Path(name), model, task, "pre-norm", {}, {}, torch.device("cpu"))
    sizes = [tv.trace_size(checkpoint, "a" * task.max_length, max_length=n_tokens, **how, **kept) for kept in KEPT]
    return f"| {name} | {' | '.join([*(bytes_words(size.total) for size in sizes), bytes_words(sizes[0].peak)])} |"


def table() -> str:
    """As Markdown."""
    titles = ("run", "everything", "half precision", "cross-attention alone", "both", "peak of everything")
    head = f"| {' | '.join(titles)} |\n|---{'|--:' * (len(titles) - 1)}|"
    return "\n".join([head, *(row(*run) for run in RUNS)])


if __name__ == "__main__":
    print(table())
