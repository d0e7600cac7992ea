"""How a checkpoint is made, as data: what is drawn, the loss, the optimizer, the schedule, the penalty, the seed."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard, get_args, get_origin, get_type_hints

from transformer_viz.errors import ConfigError, listed, quoted
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.options import Decimal

if TYPE_CHECKING:
    from transformer_viz.tasks import Task

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
    """Batches to train on."""
    batch_size: int
    """Texts in a batch."""
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
    learning_rate: Annotated[float, Decimal(0, is_above=True)]
    """The highest one of the schedule."""
    betas: tuple[float, float] = (0.9, 0.98)
    momentum: float = 0.0
    """Of sgd."""
    epsilon: float = 1e-9
    """Of adam and adamw."""
    weight_decay: float = 0.0
    """On matrices."""
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
    """Decides the first weights and the texts."""

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            _check(name, hint, getattr(self, name))
        if not math.isclose(sum(self.mix.values()), 1.0, abs_tol=1e-8):  # numpy wants it as exactly
            raise ConfigError(f"the shares of the mix add up to {sum(self.mix.values()):.9g}; they must add up to 1")
        if self.sharpness_from >= self.sharpness_until:
            raise ConfigError(
                f"sharpness rises from {self.sharpness_from} to {self.sharpness_until}; the first must be the smaller"
            )
        if self.epoch_size is not None and self.epoch_size < len(self.mix):
            raise ConfigError(
                f"epoch_size={self.epoch_size} is not possible; it is at least {len(self.mix)}, one for each source"
            )

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
        known = {field.name: field for field in fields(cls)}
        if unknown := sorted(set(data) - set(known)):
            raise ConfigError(f"unknown settings of a recipe: {listed(map(quoted, unknown))}; known are {listed(known)}")
        needed = {name for name, field in known.items() if field.default is MISSING and field.default_factory is MISSING}
        if missing := sorted(needed - set(data)):
            raise ConfigError(f"missing settings of a recipe: {listed(missing)}")
        settings = dict(data)
        if isinstance(data.get("betas"), list):  # JSON has no tuples
            settings["betas"] = tuple(data["betas"])
        return cls(**settings)


def model_config(recipe: Recipe, task: "Task", begun: Mapping[str, Any] | None = None) -> ModelConfig:
    """The sizes and switches of a recipe's model.

    Args:
        recipe: says what differs from its variant.
        task: has the vocabularies.
        begun: settings of the model with which a training was begun. They stand in the place of the variant's, which may
            have become others since.

    Raises:
        ConfigError: they cannot be; also where the task's texts would not fit.
    """
    if sizes := [name for name in recipe.model if name.endswith("_vocabulary_size")]:
        raise ConfigError(f"{sizes[0]} is the task's; leave it out of a recipe's model")
    config = ModelConfig.from_json(
        {
            **(variants.settings(recipe.variant) if begun is None else begun),
            **recipe.model,
            "source_vocabulary_size": len(task.source_vocabulary),
            "target_vocabulary_size": len(task.target_vocabulary),
        }
    )
    longest = max(task.evaluated_lengths[-1], task.max_target_length if task.natural_lengths else 0)
    longest = max(longest, recipe.longest if recipe.lengths == "growing" else 0)
    if longest + 2 > config.max_positions:
        raise ConfigError(
            f"max_positions={config.max_positions} is too small for training on {longest} symbols, <start> and <end>; "
            f"give at least {longest + 2}"
        )
    return config


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


_WHOLE = {
    "steps": (1, 10**9),
    "batch_size": (1, 10**9),
    "longest": (1, 4096),
    "epoch_size": (1, 10**9),
    "patience": (1, 10**9),
    "seed": (0, 2**63 - 1),
}
_BELOW = {
    "label_smoothing": 1,
    "betas": 1,
    "momentum": 1,
    "epsilon": 1,
    "warm_up": 1,
    "weight_decay": 100,
    "sharpness": 1e6,
    "growing_until": 1.000001,
    "even_lengths": 1.000001,
    "mix": 1.000001,
}
_LONGEST_NAME = 100


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Recipe)


def _check(name: str, hint: Any, value: object) -> None:
    """Raises a ConfigError unless a field's value is of its type and within its range."""
    may_be_null = get_origin(hint) is UnionType
    if may_be_null and value is None:
        return
    kind, below = get_args(hint)[0] if may_be_null else hint, _BELOW.get(name, math.inf)
    if kind is str:
        allowed, what = isinstance(value, str) and len(value) <= _LONGEST_NAME, "a name"
    elif kind is bool:
        allowed, what = isinstance(value, bool), "true or false"
    elif kind is int:
        least, most = _WHOLE[name]
        allowed, what = _is_number(value, most + 1, int) and value >= least, f"a whole number from {least} to {most}"
    elif kind is float:
        allowed, what = _is_number(value, below), f"a number at least 0 and less than {below:g}"
    elif get_origin(kind) is Literal:
        allowed, what = value in get_args(kind), f"one of {listed(get_args(kind))}"
    elif get_origin(kind) is tuple:
        allowed = isinstance(value, tuple) and len(value) == 2 and all(_is_number(part, below) for part in value)
        what = f"two numbers, each at least 0 and less than {below:g}"
    elif get_args(kind)[1] is float:
        allowed = isinstance(value, dict) and all(isinstance(n, str) and _is_number(v, below) for n, v in value.items())
        what = "shares by the names of the task's sources, each from 0 to 1"
    else:
        allowed, what = isinstance(value, dict) and all(isinstance(n, str) for n in value), "settings by their names"
    if not allowed:
        raise ConfigError(f"{name}={quoted(value)} is not possible; it is {what}" + (", or null" if may_be_null else ""))


def _is_number(value: object, below: float, kind: Any = int | float) -> TypeGuard[float]:
    # Compared, not converted: a whole number may be too large to be a float.
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < min(below, 1e300)
