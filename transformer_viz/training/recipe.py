"""How a checkpoint is made, as data: what is drawn, the loss, the optimizer, the schedule, the penalty, the seed."""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from transformer_viz.errors import ConfigError, listed

Lengths = Literal["growing", "trained", "natural"]
Loss = Literal["cross-entropy", "kl"]
OptimizerName = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "cosine", "one-cycle", "inverse-sqrt"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that `train` needs to make the same checkpoint again.

    Raises:
        ConfigError: a setting is out of range; the message says what is possible.
    """

    task: str
    variant: str
    task_options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    """Settings of the model that differ from the variant's."""
    mix: dict[str, float]
    """Shares of the task's sources of texts; they add up to 1."""
    steps: int
    batch_size: int
    lengths: Lengths = "trained"
    """growing: one length a batch, ⌈top·u^0.5⌉, `top` growing from 8 to `longest`; trained: the task's lengths, mixed;
    natural: texts as the task has them."""
    longest: int = 32
    even_lengths: float = 0.15
    """Share of the batches of a growing recipe whose length is drawn evenly."""
    growing_until: float = 0.3
    """Share of the steps after which the lengths have grown."""
    epoch_size: int | None = None
    """Train on this many fixed texts again and again; None draws new ones for every batch."""
    loss: Loss = "cross-entropy"
    """cross-entropy, or the Kullback-Leibler divergence from smoothed targets; padding is left out of both."""
    label_smoothing: float = 0.0
    """Probability that the target gives to other tokens (Vaswani et al. 2017, section 5.4)."""
    optimizer: OptimizerName = "adamw"
    learning_rate: float
    """The highest one of the schedule."""
    betas: tuple[float, float] = (0.9, 0.98)
    momentum: float = 0.0
    """Of sgd."""
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip: float | None = None
    """Largest norm of the gradient; None = no clipping."""
    schedule: Schedule = "constant"
    """constant; cosine to 0; one-cycle (Smith and Topin 2017); inverse-sqrt (Vaswani et al. 2017, section 5.3)."""
    warm_up: float = 0.0
    """Share of the steps over which the learning rate rises."""
    sharpness: float = 0.0
    """Final weight of the cross-attention's entropy (nats) in the loss. It prefers sharp rows, wherever they point."""
    sharpness_from: float = 0.5
    sharpness_until: float = 0.8
    precision: Precision = "float32"
    """bfloat16: matrix products in half precision (autocast); weights and optimizer stay float32."""
    compiled: bool = False
    """The model's passes compiled first (`torch.compile`), which pays on a GPU; not those of steps with a sharpness weight."""
    patience: int | None = None
    """Stop when the exact match on held-out texts has not improved for so many checks; None = never."""
    frozen_embeddings: bool = False
    """Leave the embeddings as they were given (see `make_checkpoint`)."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_choices()
        if self.steps < 1 or self.batch_size < 1:
            raise ConfigError(f"steps={self.steps}, batch_size={self.batch_size}: both must be at least 1")
        if not math.isclose(sum(self.mix.values()), 1.0, abs_tol=1e-6):
            raise ConfigError(f"the shares of the mix add up to {sum(self.mix.values()):g}; they must add up to 1")
        if not 0 <= self.sharpness_from < self.sharpness_until:
            raise ConfigError(
                f"sharpness rises from {self.sharpness_from} to {self.sharpness_until}; the first must be the smaller"
            )
        if self.epoch_size is not None and self.epoch_size < len(self.mix):
            raise ConfigError(
                f"epoch_size={self.epoch_size} is not possible; it is at least {len(self.mix)}, one for each source"
            )
        for name, least, below in _RANGES:
            value = getattr(self, name)
            if not least <= value < below:
                raise ConfigError(f"{name}={value!r} is not possible; it is at least {least:g} and less than {below:g}")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"patience={self.patience} is not possible; it is at least 1, or None")

    def _check_choices(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name}={getattr(self, name)!r} is not known; choose one of {listed(allowed)}")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of step `step`, counted from 0."""
        if self.schedule == "one-cycle":
            return self._one_cycle(step)
        progress = step / self.steps
        if progress < self.warm_up:
            return self.learning_rate * min(1.0, (step + 1) / (self.warm_up * self.steps))
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "inverse-sqrt":
            # From the end of the warm-up on, in steps; without one from the first step.
            start = max(1.0, self.warm_up * self.steps)
            return self.learning_rate * min(1.0, math.sqrt(start / (step + 1)))
        rest = (progress - self.warm_up) / (1 - self.warm_up)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * rest))

    def _one_cycle(self, step: int) -> float:
        """From a 25th of the rate up to it and down to a 250,000th, both along a cosine: torch's `OneCycleLR`."""
        rise = self.warm_up or 0.3
        low, high, last = self.learning_rate / 25, self.learning_rate, self.learning_rate / 25e4
        peak, end = rise * self.steps - 1, self.steps - 1
        if step <= peak:
            return _along_cosine(low, high, step / peak if peak > 0 else 1.0)
        return _along_cosine(high, last, (step - peak) / (end - peak))

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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Recipe":
        """The inverse of `to_json`.

        Raises:
            ConfigError: unknown or missing settings, or impossible ones.
        """
        if unknown := sorted(set(data) - {f.name for f in fields(cls)}):
            raise ConfigError(f"unknown settings of a recipe: {listed(unknown)}")
        settings: dict[str, Any] = {**data, "betas": tuple(data.get("betas", (0.9, 0.98)))}
        try:
            return cls(**settings)
        except (TypeError, AttributeError) as error:
            raise ConfigError(f"this is not a recipe: {error}") from error


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


_CHOICES = {
    "lengths": get_args(Lengths),
    "loss": get_args(Loss),
    "optimizer": get_args(OptimizerName),
    "schedule": get_args(Schedule),
    "precision": get_args(Precision),
}
_RANGES = (
    ("label_smoothing", 0, 1),
    ("momentum", 0, 1),
    ("warm_up", 0, 1),
    ("weight_decay", 0, 100),
    ("sharpness", 0, 1e6),
    ("learning_rate", 0, math.inf),
    ("growing_until", 0, 1.000001),
    ("even_lengths", 0, 1.000001),
)
