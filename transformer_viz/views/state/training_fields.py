"""The settings in the form of the page Train: their labels and limits."""

import math
from typing import Any, get_type_hints

from transformer_viz.model.config import ModelConfig
from transformer_viz.training.recipe import Recipe

SIZES = {
    "n_encoder_layers": ("Encoder", 1, 12),
    "n_decoder_layers": ("Decoder", 1, 12),
    "n_heads": ("Heads", 1, 32),
    "d_model": ("d_model", 2, 1024),
    "d_ff": ("d_ff", 1, 4096),
}
SWITCHES = {
    "norm": "Norm placement",
    "position": "Positions",
    "embedding_scale": "Embeddings × √d_model",
    "tied_embeddings": "Tied embeddings",
    "activation": "Activation",
    "initialization": "Initialization",
    "dropout_in": "Dropout acts on",
    "final_norm": "Final norms",
    "norm_affine": "Norms learn weight and bias",
    "shared_norm": "One norm a block",
    "embedding_norm": "Norm on embeddings",
    "attention_bias": "Biases in attention",
    "feed_forward_bias": "Biases in feed-forward",
    "output_bias": "Bias in the output",
}
NUMBERS = {
    "steps": ("Steps", 1, 100_000),
    "batch_size": ("Batch size", 1, 1024),
    "learning_rate": ("Learning rate", 0.0, 10.0),
    "warm_up": ("Warm-up, share of steps", 0.0, 0.99),
    "label_smoothing": ("Label smoothing", 0.0, 0.99),
    "weight_decay": ("Weight decay", 0.0, 10.0),
    "sharpness": ("Sharpness penalty", 0.0, 100.0),
    "seed": ("Seed", 0, 2**31),
}
CHOICES = {"optimizer": "Optimizer", "schedule": "Schedule", "loss": "Loss"}
FLOATS = {"dropout": ("Dropout", 0.0, 0.99), "sinusoid_base": ("Sinusoid base", 1.01, 1e6)}
MODEL = (*SIZES, *SWITCHES, *FLOATS)
FIELDS = (*MODEL, *NUMBERS, *CHOICES, "frozen_embeddings")
HINTS = {**get_type_hints(ModelConfig), **get_type_hints(Recipe)}


def written(value: Any) -> str:
    """The value as text, with `true` and `false` as in files of settings."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def same(value: Any, other: Any) -> bool:
    """Whether two values of a setting are equal, floats up to rounding."""
    return math.isclose(value, other) if isinstance(value, float) and isinstance(other, int | float) else value == other
