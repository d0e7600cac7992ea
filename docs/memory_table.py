"""Prints the table of `memory.md`: `python -m docs.memory_table`. Nothing is run but the prediction."""

from dataclasses import replace

from transformer_viz.decoding.beam import Beam
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import sizes_of
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import Kind
from transformer_viz.tracing.trace_size import Plan, RecordingOptions, predicted

SHIPPED = ModelConfig(
    source_vocabulary_size=99, target_vocabulary_size=99, n_heads=4, n_encoder_layers=2, n_decoder_layers=2
)  # fmt: skip
BASE = ModelConfig(
    source_vocabulary_size=10_000, target_vocabulary_size=10_000, d_model=512, n_heads=8, n_encoder_layers=6,
    n_decoder_layers=6, d_ff=2048,
)  # fmt: skip
LARGE = replace(BASE, d_model=1024, n_heads=16, d_ff=4096, n_encoder_layers=12, n_decoder_layers=12)
RUNS: tuple[tuple[str, ModelConfig, int, Beam | None], ...] = (
    ("2+2 layers, 4 heads (as shipped), 34 tokens", SHIPPED, 34, None),
    ("the same, beam 5", SHIPPED, 34, Beam(size=5)),
    ("6+6 layers, 8 heads, 128 tokens", BASE, 128, None),
    ("the same, beam 5", BASE, 128, Beam(size=5)),
    ("6+6 layers, 8 heads, 512 tokens", BASE, 512, None),
    ("12+12 layers, 16 heads, 512 tokens", LARGE, 512, None),
    ("the same, beam 5", LARGE, 512, Beam(size=5)),
)


def row(name: str, config: ModelConfig, n_tokens: int, beam: Beam | None) -> str:
    """What a run of so many source and target tokens takes: everything, half precision, cross-attention, both; and its peak."""
    sizes = sizes_of(config)
    alone: dict[Kind, tuple[int, ...]] = {"cross": sizes.layers["cross"]}
    plan = Plan(
        sizes=sizes,
        recording=RecordingOptions(sizes.layers),
        n_sources=[n_tokens],
        n_steps=[n_tokens],
        n_candidates=10,
        beam=beam,
    )
    keeps = (
        plan.recording,
        RecordingOptions(sizes.layers, "float16"),
        RecordingOptions(alone),
        RecordingOptions(alone, "float16"),
    )
    cells = [bytes_words(predicted(replace(plan, recording=keep)).total) for keep in keeps]
    return f"| {name} | {' | '.join([*cells, bytes_words(predicted(plan).peak)])} |"


def table() -> str:
    """As Markdown."""
    titles = ("run", "everything", "half precision", "cross-attention alone", "both", "peak of everything")
    head = f"| {' | '.join(titles)} |\n|---{'|--:' * (len(titles) - 1)}|"
    return "\n".join([head, *(row(*run) for run in RUNS)])


if __name__ == "__main__":
    print(table())
