"""The switchboard on the command line: one option for every setting of the model and of a recipe, made from their types."""

import argparse
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from transformer_viz.commands import _shared

Words = Mapping[str, str]
"""Setting -> what its option says in the help."""

MODEL: Words = {
    "d_model": "width of the residual stream",
    "n_heads": "heads per attention; must divide the width",
    "d_k": "width of one head's queries and keys (width / heads)",
    "d_v": "width of one head's values (as d_k)",
    "n_encoder_layers": "layers of the encoder",
    "n_decoder_layers": "layers of the decoder",
    "d_ff": "width of the feed-forward layer",
    "dropout": "share of numbers dropped in training",
    "dropout_in": "where dropout acts",
    "activation": "of the feed-forward layer",
    "norm": "where the norms stand: x + f(norm(x)), norm(x + f(x)) or x + norm(f(x))",
    "final_norm": "a norm after each stack",
    "norm_affine": "norms with weight and bias",
    "shared_norm": "one norm for all sublayers of a block",
    "embedding_norm": "a norm on the embeddings",
    "attention_bias": "biases in query, key, value and output projections",
    "feed_forward_bias": "biases in the feed-forward layer",
    "output_bias": "a bias in the projection onto the vocabulary",
    "embedding_scale": "which embeddings are multiplied by the root of the width",
    "tied_embeddings": "output: the output projection is the target embedding; all: the source embedding too",
    "position": "how positions are told",
    "sinusoid_base": "base of the sinusoid's wavelengths",
    "max_positions": "the longest sequence, special tokens included",
    "initialization": "of the weights",
}
RECIPE: Words = {
    "steps": "batches to train on",
    "batch_size": "texts in a batch",
    "epoch_size": "train on this many fixed texts again and again, instead of new ones",
    "loss": "what is made small",
    "label_smoothing": "probability that the target gives to other tokens",
    "optimizer": "which",
    "learning_rate": "the highest one of the schedule",
    "momentum": "of sgd",
    "epsilon": "of adam and adamw",
    "weight_decay": "on matrices",
    "clip": "largest norm of the gradient",
    "schedule": "of the learning rate",
    "warm_up": "share of the steps over which the learning rate rises",
    "sharpness": "final weight of the cross-attention's entropy in the loss",
    "precision": "of matrix products",
    "patience": "stop when held-out texts have not come out better for N checks (30 checks a training)",
    "seed": "decides the first weights and the texts",
}


def add(parser: argparse._ArgumentGroup, of: type, words: Words) -> None:
    """An option for each setting in `words`; what is not given is None, and the variant's or the recipe's holds."""
    hints = get_type_hints(of)
    for name, said in words.items():
        parser.add_argument(flag(name), dest=name, default=None, **_kind(name, hints[name], said))


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The settings that were given."""
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def flag(name: str) -> str:
    """`n_heads` is `--heads`."""
    return "--" + name.removeprefix("n_").replace("_", "-")


def _kind(name: str, hint: Any, said: str) -> dict[str, Any]:
    kinds = [kind for kind in _members(hint) if kind is not type(None)]
    if get_origin(kinds[0]) is Literal:
        choices = get_args(kinds[0])
        return {"choices": choices, "metavar": "|".join(choices), "help": said}
    if kinds[0] is bool:
        return {"action": argparse.BooleanOptionalAction, "help": said}
    if kinds[0] is int:
        limits = (0, _shared.LARGEST_SEED) if name == "seed" else (1, 10**9)
        return {"type": _shared.whole(*limits), "metavar": "N", "help": said}
    return {"type": _shared.decimal(0, or_equal=name != "learning_rate"), "metavar": "X", "help": said}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
