"""Applies the rules of a model's generation config to the logits, with the logits processors of transformers.

How tokens are chosen (greedy, beam, sampling and their numbers) is for the person to say, whatever that config prefers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import DecodingState, Rules
from transformer_viz.errors import ModelError, OptionError, short_repr
from transformer_viz.model.sizes import Sizes

_DEFAULT_LENGTH = 64


def _is_id(value: Any, n: int) -> bool:
    """Tells whether it is a token of a vocabulary of n."""
    return type(value) is int and 0 <= value < n


def _are_ids(values: Any, n: int) -> bool:
    return isinstance(values, list) and bool(values) and all(_is_id(value, n) for value in values)


def _is_penalty(value: Any, _: int) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _is_count(value: Any, _: int) -> bool:
    return type(value) is int and 0 < value < 10**9


_COUNT = _is_count, "a whole number from 0, of at most nine digits"
_PENALTY = _is_penalty, "a number above 0"
_TOKENS = _are_ids, "a list of tokens, by their ids in its vocabulary"
_TOKEN = _is_id, "a token, by its id in its vocabulary"
_ENDS = lambda x, n: _is_id(x, n) or _are_ids(x, n), "a token or several, by their ids in its vocabulary"
_WORDS = (
    lambda words, n: isinstance(words, list) and all(_are_ids(word, n) for word in words),
    "lists of tokens, by their ids in its vocabulary",
)
_SERVED: dict[str, tuple[tuple[Any, ...], tuple[Callable[[Any, int], bool], str]]] = {
    "encoder_repetition_penalty": ((1.0,), _PENALTY),
    "repetition_penalty": ((1.0,), _PENALTY),
    "no_repeat_ngram_size": ((0,), _COUNT),
    "encoder_no_repeat_ngram_size": ((0,), _COUNT),
    "bad_words_ids": (([],), _WORDS),
    "min_length": ((0,), _COUNT),
    "min_new_tokens": ((0,), _COUNT),
    "forced_bos_token_id": ((), _TOKEN),
    "forced_eos_token_id": ((), _ENDS),
    "suppress_tokens": (([],), _TOKENS),
    "begin_suppress_tokens": (([],), _TOKENS),
    "renormalize_logits": ((False,), (lambda value, _: value is True, "true or false")),
}
"""The settings that are applied: the values of each that change nothing, whether a value can be applied, for a vocabulary of so
many tokens, and the possible ones in words."""
_OF_SOURCE = frozenset({"encoder_repetition_penalty", "encoder_no_repeat_ngram_size"})
_OF_ENDS = frozenset({"min_length", "min_new_tokens"})
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
"""Settings that would change the output and cannot be followed, with the values of each that change nothing."""


@dataclass(frozen=True)
class Generation:
    """The settings of a generation config that decoding uses.

    Attributes:
        start_id: the first token that the decoder reads; None where there is no encoder beside a decoder.
        end_ids: tokens that end a sentence.
        pad_id: the id that fills the rows of shorter sentences.
        settings: those that are in force, by their names in a generation config.
        refused: those that are set and cannot be followed.
        default_max_length: the most tokens that are written by default.
        default_total_length: the most tokens of a prompt and its output together; None = no such limit.
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
        """The generation of a model of these sizes; what neither its generation config nor its config says is the tokenizer's.

        Raises:
            ModelError: its decoder begins with no token that it knows.
        """
        generation, config = getattr(model, "generation_config", None), model.config

        def first_set(name: str) -> Any:
            values = (getattr(place, name, None) for place in (generation, config, tokenizer))
            return next((value for value in values if value is not None), None)

        def settings(neutral: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
            """The settings that are set and change something."""
            values = {name: getattr(generation, name, None) for name in neutral}
            return {name: value for name, value in values.items() if value is not None and value not in neutral[name]}

        end, pad, start = first_set("eos_token_id"), first_set("pad_token_id"), None
        # An end that no logit is for is never written.
        listed = () if end is None else (end,) if isinstance(end, int) else end
        ends = tuple(number for number in listed if _is_id(number, sizes.vocabulary))
        if config.is_encoder_decoder:
            start = first_set("decoder_start_token_id")
            start = first_set("bos_token_id") if start is None else start
            if not _is_id(start, sizes.vocabulary):
                raise ModelError(
                    f"A model of the family {config.model_type!r} cannot be run: its decoder begins with the token "
                    f"{short_repr(start)} (decoder_start_token_id in generation_config.json or config.json), which should be a "
                    f"whole number from 0 to {sizes.vocabulary - 1}."
                )
        lengths = (getattr(generation, name, None) for name in ("max_new_tokens", "max_length"))
        longest, total = (length if _is_count(length, 0) else None for length in lengths)
        served = settings({name: neutral for name, (neutral, _) in _SERVED.items()})
        wrong = {name: value for name, value in served.items() if not _SERVED[name][1][0](value, sizes.vocabulary)}
        return cls(
            start_id=start,
            end_ids=ends,
            pad_id=pad if _is_id(pad, sizes.source_vocabulary or sizes.vocabulary) else ends[0] if ends else 0,
            settings={name: value for name, value in served.items() if name not in wrong},
            refused=wrong | settings(_REFUSED),
            # What transformers counts as the length of what a decoder reads: its start, or the prompt, first.
            default_max_length=longest or max(1, (total or 0) - 1) if longest or total else _DEFAULT_LENGTH,
            default_total_length=total if not longest and not config.is_encoder_decoder else None,
        )

    @property
    def in_force(self) -> dict[str, Any]:
        """The start token, the ends and the rules that are in force, as JSON has them."""
        start = {} if self.start_id is None else {"decoder_start_token_id": self.start_id}
        return {**start, "eos_token_id": list(self.end_ids), **self.applied}

    @cached_property
    def applied(self) -> dict[str, Any]:
        """The settings that count."""
        first = dict([self.target] if self.target and self.target[0] in _SERVED else [])
        return {**(self.settings if self.is_on else {}), **first}

    @cached_property
    def rules(self) -> Rules | None:
        """The change of logits by the settings, or None.

        Raises:
            OptionError: one is set that cannot be followed.
        """
        if self.refused and self.is_on:
            name, value = next(iter(self.refused.items()))
            why = f"which should be {_SERVED[name][1][1]}" if name in _SERVED else "which cannot be followed here"
            raise OptionError(
                f"The generation config of this model sets {name}={short_repr(value)}, {why}. "
                "Switch the generation config off: under How it writes on a page, or model.with_generation(False) in Python."
            )
        return _rules(self) if self.applied else None

    def with_target(self, name: str, number: int) -> "Generation":
        """With another language to write: `name` is the setting that its token belongs to."""
        start_id = number if name == "decoder_start_token_id" else self.start_id
        return replace(self, start_id=start_id, target=(name, number))


def _rules(generation: Generation) -> Rules:
    """The processors in a row, as `generate` makes them. Each sentence is judged alone: padding is not there for them."""
    import transformers as hf

    ends, settings = list(generation.end_ids), generation.applied
    reads_source = not _OF_SOURCE.isdisjoint(settings)

    def processors(n_opening: int, max_length: int, device: str, source: Any = None) -> Any:
        # A first token that is forced stands before those that may not come first.
        begin = n_opening + (n_opening == 1 and "forced_bos_token_id" in settings)
        # In the order in which transformers applies them.
        makers: dict[str, Callable[[Any], Any]] = {
            "encoder_repetition_penalty": lambda x: hf.EncoderRepetitionPenaltyLogitsProcessor(x, source),
            "repetition_penalty": hf.RepetitionPenaltyLogitsProcessor,
            "no_repeat_ngram_size": hf.NoRepeatNGramLogitsProcessor,
            "encoder_no_repeat_ngram_size": lambda x: hf.EncoderNoRepeatNGramLogitsProcessor(x, source),
            "bad_words_ids": lambda x: hf.NoBadWordsLogitsProcessor(x, ends),
            "min_length": lambda x: hf.MinLengthLogitsProcessor(x, ends, device=device),
            "min_new_tokens": lambda x: hf.MinNewTokensLengthLogitsProcessor(n_opening, x, ends, device=device),
            "forced_bos_token_id": hf.ForcedBOSTokenLogitsProcessor,
            "forced_eos_token_id": lambda x: hf.ForcedEOSTokenLogitsProcessor(n_opening + max_length, x, device=device),
            "suppress_tokens": lambda x: hf.SuppressTokensLogitsProcessor(x, device=device),
            "begin_suppress_tokens": lambda x: hf.SuppressTokensAtBeginLogitsProcessor(x, begin, device=device),
            "renormalize_logits": lambda _: hf.LogitNormalization(),
        }
        lacking = (frozenset() if ends else _OF_ENDS) | (_OF_SOURCE if source is None else frozenset())
        names = [name for name in makers if name in settings and name not in lacking]
        return hf.LogitsProcessorList([makers[name](settings[name]) for name in names])

    remembered = lru_cache(maxsize=64)(processors)

    def rules(so_far: DecodingState, scores: Tensor) -> Tensor:
        device, padding = str(scores.device), so_far.source_padding
        if not reads_source and (padding is None or generation.start_id is not None):
            return remembered(so_far.n_opening, so_far.max_length, device)(so_far.ids, scores)
        left = torch.empty_like(scores)
        for i, (ids, source) in enumerate(zip(so_far.ids, so_far.source, strict=True)):
            n_left = 0 if padding is None or generation.start_id is not None else int(padding[i].sum())
            own = (so_far.n_opening - n_left, so_far.max_length, device)
            if reads_source:
                real = source if padding is None else source[~padding[i]]
                applied = processors(*own, real[None])
            else:
                applied = remembered(*own)
            left[i] = applied(ids[None, n_left:], scores[i : i + 1])[0]
        return left

    return rules
