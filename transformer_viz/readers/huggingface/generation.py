"""What a model's generation config decides besides the logits, by the logits processors of transformers.

How tokens are chosen (greedy, beam, sampling and their numbers) is for the person to say, whatever that config prefers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Rules, SoFar
from transformer_viz.errors import ModelError, OptionError, quoted
from transformer_viz.model.sizes import Sizes

_DEFAULT_LENGTH = 64
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "encoder_repetition_penalty": (1.0,),
    "repetition_penalty": (1.0,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "bad_words_ids": ([],),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "renormalize_logits": (False,),
}
"""The settings that are served, in the order in which transformers applies them, and values of each that change nothing."""
_OF_SOURCE = frozenset({"encoder_repetition_penalty", "encoder_no_repeat_ngram_size"})
_REFUSED: dict[str, tuple[Any, ...]] = {
    "guidance_scale": (1, 1.0),
    "sequence_bias": ({}, []),
    "exponential_decay_length_penalty": (),
    "watermarking_config": (),
    "stop_strings": ([],),
    "penalty_alpha": (0, 0.0),
    "dola_layers": (),
    "constraints": ([],),
    "force_words_ids": ([],),
    "diversity_penalty": (0, 0.0),
    "num_beam_groups": (1,),
    "token_healing": (False,),
    "forced_decoder_ids": ([],),
}
"""Settings that would change what is written and are not served, and values of each that change nothing."""


@dataclass(frozen=True)
class Generation:
    """The part of a generation config that is looked at.

    Attributes:
        start_id: the first token that the decoder reads; None where there is no encoder beside a decoder.
        end_ids: tokens that end a sentence.
        pad_id: what stands where nothing is.
        settings: those that are in force, by their names in a generation config.
        refused: those that are set and cannot be followed.
        default_max_length: the most tokens that are written unless a person says otherwise.
        default_total_length: likewise with the prompt; None = there is no such limit.
        is_on: whether settings count.
        target: the setting that makes it write a language that a person asked for, and that language's token: in force
            whether settings count or not.
    """

    start_id: int | None
    end_ids: tuple[int, ...]
    pad_id: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    default_max_length: int = _DEFAULT_LENGTH
    default_total_length: int | None = None
    is_on: bool = True
    target: tuple[str, int] | None = None

    @classmethod
    def of(cls, model: Any, tokenizer: Any, sizes: Sizes) -> "Generation":
        """Of a model of these sizes; what neither its generation config nor its config says is the tokenizer's.

        Raises:
            ModelError: its decoder begins with no token that it knows.
        """
        generation, config = getattr(model, "generation_config", None), model.config
        found = {name: _first(getattr(place, name, None) for place in (generation, config, tokenizer)) for name in _IDS}
        # An end that no logit is for is never written.
        ends = tuple(number for number in _listed(found["eos_token_id"]) if _is_id(number, sizes.vocabulary))
        start = _first((found["decoder_start_token_id"], found["bos_token_id"])) if config.is_encoder_decoder else None
        if config.is_encoder_decoder and not _is_id(start, sizes.vocabulary):
            raise ModelError(
                f"A model of the family {config.model_type!r} cannot be run: its decoder begins with the token {quoted(start)} "
                "(decoder_start_token_id in generation_config.json or config.json), which should be a whole number from 0 to "
                f"{sizes.vocabulary - 1}."
            )
        pad, longest, total = found["pad_token_id"], *(_length(generation, name) for name in ("max_new_tokens", "max_length"))
        settings = _set(generation, _NEUTRAL)
        wrong = {name: value for name, value in settings.items() if not _ALLOWED[name][0](value, sizes.vocabulary)}
        return cls(
            start_id=start,
            end_ids=ends,
            pad_id=pad if _is_id(pad, sizes.source_vocabulary or sizes.vocabulary) else ends[0] if ends else 0,
            settings={name: value for name, value in settings.items() if name not in wrong},
            refused=wrong | _set(generation, _REFUSED),
            # What transformers counts as the length of what a decoder reads: its start, or the prompt, first.
            default_max_length=longest or max(1, (total or 0) - 1) if longest or total else _DEFAULT_LENGTH,
            default_total_length=total if not longest and not config.is_encoder_decoder else None,
        )

    @property
    def in_force(self) -> dict[str, Any]:
        """What decides, besides the logits, what is written, as JSON has it."""
        start = {} if self.start_id is None else {"decoder_start_token_id": self.start_id}
        return {**start, "eos_token_id": list(self.end_ids), **self.applied}

    @cached_property
    def applied(self) -> dict[str, Any]:
        """The settings that count."""
        first = dict([self.target] if self.target and self.target[0] in _NEUTRAL else [])
        return {**(self.settings if self.is_on else {}), **first}

    @cached_property
    def rules(self) -> Rules | None:
        """What the settings do to logits, or None.

        Raises:
            OptionError: one is set that cannot be followed.
        """
        if self.refused and self.is_on:
            name, value = next(iter(self.refused.items()))
            why = f"which should be {_ALLOWED[name][1]}" if name in _ALLOWED else "which cannot be followed here"
            raise OptionError(
                f"The generation config of this model sets {name}={quoted(value)}, {why}. "
                "Switch the generation config off: under How it writes on a page, or model.with_generation(False) in Python."
            )
        return _rules(self) if self.applied else None

    def with_target(self, name: str, number: int) -> "Generation":
        """With another language to write: `name` is the setting that its token belongs to."""
        start_id = number if name == "decoder_start_token_id" else self.start_id
        return replace(self, start_id=start_id, target=(name, number))


_IDS = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")


def _is_id(value: Any, n: int) -> bool:
    """Whether it is a token of a vocabulary of n."""
    return type(value) is int and 0 <= value < n


def _are_ids(values: Any, n: int) -> bool:
    return isinstance(values, list) and bool(values) and all(_is_id(value, n) for value in values)


def _is_penalty(value: Any, _: int) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _is_count(value: Any, _: int) -> bool:
    return type(value) is int and 0 < value < 10**9


_ALLOWED: dict[str, tuple[Callable[[Any, int], bool], str]] = {
    "encoder_repetition_penalty": (_is_penalty, "a number above 0"),
    "repetition_penalty": (_is_penalty, "a number above 0"),
    "no_repeat_ngram_size": (_is_count, "a whole number from 0, of at most nine digits"),
    "encoder_no_repeat_ngram_size": (_is_count, "a whole number from 0, of at most nine digits"),
    "bad_words_ids": (
        lambda words, n: isinstance(words, list) and all(_are_ids(word, n) for word in words),
        "lists of tokens, by their ids in its vocabulary",
    ),
    "min_length": (_is_count, "a whole number from 0, of at most nine digits"),
    "min_new_tokens": (_is_count, "a whole number from 0, of at most nine digits"),
    "forced_bos_token_id": (_is_id, "a token, by its id in its vocabulary"),
    "forced_eos_token_id": (
        lambda value, n: _is_id(value, n) or _are_ids(value, n),
        "a token or several, by their ids in its vocabulary",
    ),
    "suppress_tokens": (_are_ids, "a list of tokens, by their ids in its vocabulary"),
    "begin_suppress_tokens": (_are_ids, "a list of tokens, by their ids in its vocabulary"),
    "renormalize_logits": (lambda value, _: value is True, "true or false"),
}
"""Whether a value of a served setting, for a vocabulary of so many, can be followed, and what it should be."""


def _length(generation: Any, name: str) -> int | None:
    """A limit of a generation config; None where it is no whole number from 1."""
    found = getattr(generation, name, None)
    return found if type(found) is int and found > 0 else None


def _first(values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _listed(ids: Any) -> tuple[int, ...]:
    return () if ids is None else (ids,) if isinstance(ids, int) else tuple(ids)


def _set(generation: Any, names: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Those of these settings that change something."""
    found = {name: getattr(generation, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None and value not in names[name]}


def _rules(generation: Generation) -> Rules:
    """The processors in a row. Each sentence is judged alone: padding is not there for them."""

    @lru_cache(maxsize=64)
    def processors(n_opening: int, max_length: int, device: str) -> Any:
        return _processors(generation, n_opening, max_length, device, None)

    def rules(so_far: SoFar, scores: Tensor) -> Tensor:
        reads_source = not _OF_SOURCE.isdisjoint(generation.applied)
        lengths, device, padding = (so_far.n_opening, so_far.max_length), str(scores.device), so_far.source_padding
        if not reads_source and (padding is None or generation.start_id is not None):
            return processors(*lengths, device)(so_far.ids, scores)
        left = torch.empty_like(scores)
        for i, (ids, source) in enumerate(zip(so_far.ids, so_far.source, strict=True)):
            n_left = 0 if padding is None or generation.start_id is not None else int(padding[i].sum())
            real = source if padding is None else source[~padding[i]]
            own = (so_far.n_opening - n_left, so_far.max_length, device)
            applied = _processors(generation, *own, real[None]) if reads_source else processors(*own)
            left[i] = applied(ids[None, n_left:], scores[i : i + 1])[0]
        return left

    return rules


def _processors(generation: Generation, n_opening: int, max_length: int, device: str, source: Tensor | None) -> Any:
    """As `generate` makes them, for a start or prompt of so many tokens and so many that may be written after a source."""
    import transformers as hf

    ends, settings = list(generation.end_ids), generation.applied
    # A first token that is forced stands before those that may not come first.
    begin = n_opening + (n_opening == 1 and "forced_bos_token_id" in settings)
    read: Any = source
    makers: dict[str, Any] = {
        "encoder_repetition_penalty": lambda penalty: hf.EncoderRepetitionPenaltyLogitsProcessor(penalty, read),
        "repetition_penalty": hf.RepetitionPenaltyLogitsProcessor,
        "no_repeat_ngram_size": hf.NoRepeatNGramLogitsProcessor,
        "encoder_no_repeat_ngram_size": lambda n: hf.EncoderNoRepeatNGramLogitsProcessor(n, read),
        "bad_words_ids": lambda words: hf.NoBadWordsLogitsProcessor(words, ends),
        "min_length": lambda n: hf.MinLengthLogitsProcessor(n, ends, device=device),
        "min_new_tokens": lambda n: hf.MinNewTokensLengthLogitsProcessor(n_opening, n, ends, device=device),
        "forced_bos_token_id": hf.ForcedBOSTokenLogitsProcessor,
        "forced_eos_token_id": lambda end: hf.ForcedEOSTokenLogitsProcessor(n_opening + max_length, end, device=device),
        "suppress_tokens": lambda ids: hf.SuppressTokensLogitsProcessor(ids, device=device),
        "begin_suppress_tokens": lambda ids: hf.SuppressTokensAtBeginLogitsProcessor(ids, begin, device=device),
        "renormalize_logits": lambda _: hf.LogitNormalization(),
    }
    # Each of these is about something that may not be there.
    lacking = (set() if ends else {"min_length", "min_new_tokens"}) | (_OF_SOURCE if source is None else set())
    names = [name for name in _NEUTRAL if name in settings and name not in lacking]
    return hf.LogitsProcessorList([makers[name](settings[name]) for name in names])
