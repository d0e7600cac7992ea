"""Texts and targets as ids, and the most of them that a model reads and writes."""

from collections.abc import Sequence

from transformer_viz.decoding.token_batch import n_given_of
from transformer_viz.errors import InputError, ModelError, OptionError
from transformer_viz.language import say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import whole_number
from transformer_viz.terms import ModelKind
from transformer_viz.vocabulary import END, START

LONGEST = 512

Target = str | tuple[str | int, ...]
"""A target as text, or as tokens without the end; an id stands for its token."""


def framed_sources(model: LoadedModel, texts: Sequence[str]) -> list[list[int]]:
    """The ids that the model reads of each text, special tokens included.

    Raises:
        InputError: a text that cannot be read, or that is too long for the model.
        ModelError: a tokenizer of another model.
    """
    reader = model.network
    rows = [model.tokenizer.encode_source(text) for text in texts]
    longest, most = max(map(len, rows)), longest_source(model)
    if longest > most:
        if model.task is None:
            raise InputError(
                say("The text makes {n} tokens; this model reads at most {most}. Shorten it.", n=longest, most=most)
            )
        raise InputError(
            say(
                "The text makes {n} tokens with {start} and {end}; this model reads at most {most}. Shorten it.",
                n=longest,
                most=most,
                start=START,
                end=END,
            )
        )
    known = reader.sizes.source_vocabulary
    if model.task is None and any(number >= known for row in rows for number in row):
        raise ModelError(
            f"The tokenizer of {model.name} makes ids that its model, with {known:,} embeddings, does not have. "
            "They do not belong together: copy both from one place."
        )
    return rows


def longest_source(model: LoadedModel) -> int:
    """The most tokens that may be read of a text. A decoder alone needs one more position for what it writes."""
    kind, longest = model.network.kind, model.network.sizes.longest_source
    return longest if kind is ModelKind.ENCODER_DECODER else min(LONGEST, longest) - (kind is ModelKind.DECODER)


def framed_targets(model: LoadedModel, targets: Sequence[Target], n_tokens: int) -> list[list[int]]:
    """Frames targets: each target and its end, after texts of at most so many tokens."""
    reader = model.network
    if not reader.kind.writes:
        raise OptionError(f"{model.name} is an encoder alone, which writes nothing: leave the target out")
    rows = [[*ids_of_target(model, target), *reader.end_ids[:1]] for target in targets]
    longest, most = max(map(len, rows)), longest_target(model, n_tokens)
    if longest > most:
        raise InputError(f"The target makes {longest} tokens with {END}; this model writes at most {most}. Shorten it.")
    return rows


def longest_target(model: LoadedModel, n_tokens: int) -> int:
    """The most tokens that may be written after a text of so many."""
    return min(LONGEST, model.network.sizes.longest_target) - n_given_of(model.network.kind, n_tokens)


def most_written(model: LoadedModel, given: int | None, n_tokens: int) -> int:
    """The `max_length` that was given, or the default, for a text of so many tokens.

    Raises:
        OptionError: it is not possible.
    """
    most = longest_target(model, n_tokens)
    if given is not None:
        return whole_number("max_length", given, 1, most)
    total = model.default_total_length
    left = most if total is None else max(1, total - n_given_of(model.network.kind, n_tokens) - 1)
    return min(most, model.default_max_length, left)


def ids_of_target(model: LoadedModel, target: Target) -> list[int]:
    """Without the end."""
    tokenizer = model.tokenizer
    return tokenizer.encode_target(target) if isinstance(target, str) else tokenizer.ids_of("Target token", target)
