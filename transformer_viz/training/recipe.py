"""How a checkpoint is made, as data: what is drawn, the optimizer, the schedule, the penalty, the seed."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from transformer_viz.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that `train` needs to make the same checkpoint again."""

    task: str
    variant: str
    task_options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    """Settings of the model that differ from the variant's."""
    mix: dict[str, float]
    """Shares of the task's sources of strings; they add up to 1."""
    steps: int
    batch_size: int
    lengths: Literal["growing", "trained"] = "trained"
    """growing: one length a batch, ⌈top·u^0.5⌉, `top` growing from 8 to `longest`; trained: the task's lengths, mixed."""
    longest: int = 32
    even_lengths: float = 0.15
    """Share of the batches of a growing recipe whose length is drawn evenly."""
    growing_until: float = 0.3
    """Share of the steps after which the lengths have grown."""
    epoch_size: int | None = None
    """Train on this many fixed strings again and again; None draws new ones for every batch."""
    optimizer: Literal["adam", "adamw"] = "adamw"
    learning_rate: float
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip: float | None = None
    """Largest norm of the gradient; None = no clipping."""
    schedule: Literal["constant", "cosine"] = "constant"
    warm_up: float = 0.0
    """Share of the steps over which the learning rate rises."""
    sharpness: float = 0.0
    """Final weight of the cross-attention's entropy (nats) in the loss. It prefers sharp rows, wherever they point."""
    sharpness_from: float = 0.5
    sharpness_until: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch_size < 1:
            raise ConfigError(f"steps={self.steps}, batch_size={self.batch_size}: both must be at least 1")
        if not math.isclose(sum(self.mix.values()), 1.0, abs_tol=1e-6):
            raise ConfigError(f"the shares of the mix add up to {sum(self.mix.values()):g}; they must add up to 1")
        if not 0 <= self.sharpness_from < self.sharpness_until:
            raise ConfigError(
                f"sharpness rises from {self.sharpness_from} to {self.sharpness_until}; the first must be the smaller"
            )
        if self.epoch_size is not None and len(self.mix) != 1:
            raise ConfigError(f"epoch_size={self.epoch_size} needs a mix of one source; this one has {len(self.mix)}")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of step `step`, counted from 0."""
        progress = step / self.steps
        if progress < self.warm_up:
            return self.learning_rate * min(1.0, (step + 1) / (self.warm_up * self.steps))
        if self.schedule == "constant":
            return self.learning_rate
        rest = (progress - self.warm_up) / (1 - self.warm_up)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * rest))

    def sharpness_at(self, step: int) -> float:
        """Weight of the entropy penalty at step `step`."""
        progress = step / self.steps
        ramp = (progress - self.sharpness_from) / (self.sharpness_until - self.sharpness_from)
        return self.sharpness * min(1.0, max(0.0, ramp))

    def top_length_at(self, step: int) -> float:
        """The longest source drawn at step `step`, before rounding up."""
        if self.growing_until == 0:
            return self.longest
        start = min(8, self.longest)
        return start + (self.longest - start) * min(1.0, step / (self.growing_until * self.steps))

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data."""
        return asdict(self)


RECIPES: dict[str, Recipe] = {
    "reverse": Recipe(
        task="reverse",
        variant="pre-norm",
        model={"d_model": 128, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 256, "sinusoid_base": 100.0},
        mix={"uniform": 0.50, "few": 0.27, "palindromes": 0.08, "words": 0.15},
        steps=13_000,
        batch_size=128,
        lengths="growing",
        longest=38,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip=1.0,
        schedule="cosine",
        warm_up=0.08,
        seed=2017,
    ),
    # The published setting: 50,000 random strings of 10-19 letters, 3 epochs of batches of 256.
    "reverse-small": Recipe(
        task="reverse",
        variant="residual-post-norm",
        task_options={"alphabet": "abcdefghijklmnopqrstuvwxyz", "trained_lengths": [10, 19]},
        mix={"uniform": 1.0},
        steps=588,
        batch_size=256,
        epoch_size=50_000,
        optimizer="adam",
        learning_rate=1e-3,
        seed=2024,
    ),
}
