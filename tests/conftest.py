"""Shared fixtures: tiny random models in float64, so that no test needs a trained checkpoint.

Sizes are different primes wherever they can be, so that a swapped axis cannot pass.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from safetensors.torch import load_file, save_file

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.stepwise import stepwise
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.tasks.task import Task
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.vocabulary import END_ID

settings.register_profile("tests", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("tests")
torch.set_num_threads(1)

ALPHABET = "helo abcd"
MAX_LENGTH = 11

SIZES: dict[str, Any] = {
    "source_vocabulary_size": 4 + len(ALPHABET),
    "target_vocabulary_size": 4 + len(ALPHABET),
    "d_model": 22,
    "n_heads": 5,
    "d_k": 3,
    "d_v": 7,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "d_ff": 17,
    "max_positions": 41,
    "sinusoid_base": 100.0,
}


def build_model(seed: int = 0, **changes: Any) -> Transformer:
    """A float64 model in eval mode. Every parameter is random, norms and biases too, so that none can be mistaken."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        model = Transformer(ModelConfig(**{**SIZES, **changes}))
    finally:
        torch.set_default_dtype(before)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        # These scales make a model whose next token depends on the last one, so that runs differ in length.
        random = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = random * (3.0 if "embedding" in name else 0.3) + name.endswith("norm.weight")
    return model.eval().requires_grad_(False)


def build_checkpoint(model: Transformer, task: Task | None = None) -> Checkpoint:
    task = task or Reverse(ALPHABET, MAX_LENGTH, (1, MAX_LENGTH))
    return Checkpoint("tiny", Path("tiny"), model, task, "pre-norm", {}, {}, torch.device("cpu"))


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Transformer]:
    """`make_model(seed, **settings)`: a random float64 model."""
    return build_model


@pytest.fixture(scope="session")
def make_tiny() -> Callable[..., Checkpoint]:
    """`make_tiny(model, task)`: a checkpoint around a model, never on disk."""
    return build_checkpoint


def write_snapshots(folder: Path, steps: tuple[int, ...] = (0, 1, 3, 8, 22)) -> None:
    """Snapshots for a saved checkpoint without any training: straight from random weights to its own."""
    weights = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(7)
    start = {name: torch.randn(tensor.shape, generator=generator) * 0.7 for name, tensor in weights.items()}
    (folder / "snapshots").mkdir()
    for place, step in enumerate(steps):
        share = place / (len(steps) - 1)
        mixed = {name: (share * weights[name] + (1 - share) * start[name]).half() for name in weights}
        save_file(mixed, folder / "snapshots" / f"step-{step:06d}.safetensors")


@pytest.fixture(scope="session")
def make_snapshots() -> Callable[..., None]:
    """`make_snapshots(folder, steps)`: see `write_snapshots`."""
    return write_snapshots


@pytest.fixture(scope="session")
def tiny() -> Checkpoint:
    """A random float64 checkpoint that ends `hello` after 5 or 11 steps (never 7, the source's length)."""
    for seed in (38, *range(2000)):  # the first that does, where torch draws the same numbers
        checkpoint = build_checkpoint(build_model(seed))
        ids = checkpoint.task.source_vocabulary.encode(checkpoint.task.frame("hello"))
        decoded = stepwise(checkpoint.network, TokenBatch.of(checkpoint.network, [ids]), max_length=MAX_LENGTH + 1)
        n_steps = int(decoded.lengths[0])
        if decoded.ids[0, n_steps - 1] == END_ID and n_steps in (5, 11) and len(set(decoded.ids[0].tolist())) >= 4:
            return checkpoint
    raise AssertionError("no seed gives a model that ends")


@pytest.fixture(scope="session")
def hello(tiny: Checkpoint) -> Trace:
    """The trace of `hello` by the tiny checkpoint."""
    return decode(tiny, "hello")


@pytest.fixture(scope="session")
def ids() -> Callable[..., torch.Tensor]:
    """`ids(seed, batch, length)`: random symbol ids, no special ones."""

    def random_ids(seed: int, batch: int, length: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(4, SIZES["target_vocabulary_size"], (batch, length), generator=generator)

    return random_ids
