"""The recipe of a checkpoint, as data: its texts, loss, optimizer, schedule, sharpness penalty and seed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from transformer_viz.errors import ConfigError
from transformer_viz.model import variants
from transformer_viz.model.config import MAX_POSITIONS, ModelConfig
from transformer_viz.schema import Range, check_fields, read_value, to_plain

if TYPE_CHECKING:
    from transformer_viz.tasks import Task

Lengths = Literal["growing", "trained", "natural"]
Loss = Literal["cross-entropy", "kl"]
OptimizerName = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "cosine", "one-cycle", "inverse-sqrt"]
Precision = Literal["float32", "bfloat16"]
Leak = Literal["no-causal", "causal-off-by-one"]
_Name = Annotated[str, Range(0, 100)]
_Positive = Annotated[int, Range(1, 10**9)]
_NotNegative = Annotated[float, Range(0)]
_BelowOne = Annotated[float, Range(0, 1, below=True)]
_Share = Annotated[float, Range(0, 1)]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings from which `train` makes the same checkpoint again.

    Raises:
        ConfigError: a setting is out of range; the message says what is possible.
    """

    task: _Name
    variant: _Name
    task_options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    """Settings of the model that differ from the variant's."""
    mix: dict[str, _Share]
    """Shares of the task's sources of texts; they add up to 1."""
    steps: _Positive
    """Batches to train on."""
    batch_size: _Positive
    """Texts in a batch."""
    lengths: Lengths = "trained"
    """growing: one length a batch, ⌈top·u^0.5⌉, `top` growing from 8 to `longest`; trained: the task's lengths, mixed;
    natural: texts as the task has them."""
    longest: Annotated[int, Range(1, MAX_POSITIONS)] = 32
    even_lengths: _Share = 0.15
    """Share of the batches of a growing recipe whose length is drawn evenly."""
    growing_until: _Share = 0.3
    """Share of the steps after which the lengths have grown."""
    sorted_batches: _Positive = 1
    """So many batches of natural texts are drawn at once and sorted by length, so that a batch has little padding."""
    epoch_size: _Positive | None = None
    """Train on this many fixed texts again and again; None draws new ones for every batch."""
    loss: Loss = "cross-entropy"
    """cross-entropy, or the Kullback-Leibler divergence from smoothed targets; padding is left out of both."""
    label_smoothing: _BelowOne = 0.0
    """Probability that the target gives to other tokens (Vaswani et al. 2017, section 5.4)."""
    optimizer: OptimizerName = "adamw"
    learning_rate: Annotated[float, Range(0, above=True)]
    """The highest one of the schedule."""
    betas: tuple[_BelowOne, _BelowOne] = (0.9, 0.98)
    momentum: _BelowOne = 0.0
    """The momentum of sgd."""
    epsilon: _BelowOne = 1e-9
    """The epsilon of adam and adamw."""
    weight_decay: Annotated[float, Range(0, 100, below=True)] = 0.0
    """On matrices."""
    clip: _NotNegative | None = None
    """Largest norm of the gradient; None = no clipping."""
    schedule: Schedule = "constant"
    """constant; cosine to 0; one-cycle (Smith and Topin 2017); inverse-sqrt (Vaswani et al. 2017, section 5.3)."""
    warm_up: _BelowOne = 0.0
    """Share of the steps over which the learning rate rises."""
    sharpness: Annotated[float, Range(0, 10**6)] = 0.0
    """Final weight of the cross-attention's entropy (nats) in the loss. It prefers sharp rows, wherever they point."""
    sharpness_from: _NotNegative = 0.5
    sharpness_until: _NotNegative = 0.8
    precision: Precision = "float32"
    """bfloat16: matrix products in half precision (autocast); weights and optimizer stay float32."""
    patience: _Positive | None = None
    """Stop when the exact match on held-out texts has not improved for so many checks; None = never."""
    mistake: Leak | None = None
    """Train with a mask mistake of `model/mistakes.py`: the decoder reads the tokens that it must write."""
    frozen_embeddings: bool = False
    """Leave the embeddings as they were given (see `make_checkpoint`)."""
    seed: Annotated[int, Range(0, 2**63 - 1)] = 0
    """Decides the first weights and the texts."""

    def __post_init__(self) -> None:
        check_fields(self, ConfigError)
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
            # From a 25th of the rate up to it and down to a 250,000th, both along a cosine: torch's `OneCycleLR`.
            peak, end = (self.warm_up or 0.3) * self.steps - 1, self.steps - 1
            is_rising = step <= peak
            start, stop = self.learning_rate / (25 if is_rising else 1), self.learning_rate / (1 if is_rising else 25e4)
            share = (step / peak if peak > 0 else 1.0) if is_rising else (step - peak) / (end - peak)
            return stop + (start - stop) / 2 * (1 + math.cos(math.pi * share))
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
        """The fields as plain data."""
        return to_plain(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Recipe":
        """The inverse of `to_json`.

        Raises:
            ConfigError: unknown or missing settings, or impossible ones.
        """
        return read_value(cls, data, error=ConfigError)


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
