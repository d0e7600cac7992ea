"""The settings of a generation config that are in force, in words."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from transformer_viz.sentences.run_sentences import Sentence, sentence
from transformer_viz.text_display import display_token

_MOST_NAMED = 6
_WORDS: dict[str, str] = {
    "encoder_repetition_penalty": "tokens of the source are {more} probable (factor {0:g})",
    "repetition_penalty": "tokens that are there already are {less} probable (factor {0:g})",
    "no_repeat_ngram_size": "no {0} tokens in a row come twice",
    "encoder_no_repeat_ngram_size": "no {0} tokens in a row come from the source",
    "min_length": "it does not end before {0} tokens, its beginning counted",
    "min_new_tokens": "it does not end before it has written {0} tokens",
    "source_language": "it reads {0}",
    "target_language": "it writes {0}",
    "shortlist": "it writes one of the {0} most frequent tokens, or one that its shortlist has for a token of the source",
    "renormalize_logits": "probabilities are made to add up again",
}
_FACTORS = ("encoder_repetition_penalty", "repetition_penalty")
_TOKENS: dict[str, str] = {
    "decoder_start_token_id": "it begins with",
    "eos_token_id": "it ends with",
    "bad_words_ids": "it never writes",
    "forced_bos_token_id": "its first token is",
    "forced_eos_token_id": "at the limit its last token is",
    "suppress_tokens": "it never writes",
    "begin_suppress_tokens": "it does not begin with",
}


def generation_words(in_force: Mapping[str, Any], label: Callable[[int], str]) -> list[Sentence]:
    """A clause for each setting; one that is not known here stands as it is.

    Args:
        in_force: `LoadedModel.generation`, or `made_by["generation"]` of a trace.
        label: of an id.
    """
    clauses: list[Sentence] = []
    for name, value in in_force.items():
        if value in (None, []):
            continue
        if name in _TOKENS:
            clauses.append(sentence(f"{_TOKENS[name]} ", *_named([value] if isinstance(value, int) else value, label)))
        elif name in _WORDS:
            more, less = ("more", "less") if name in _FACTORS and value > 1 else ("less", "more")
            clauses.append(sentence(_WORDS[name].format(value, more=more, less=less)))
        else:
            clauses.append(sentence(f"{name.replace('_', ' ')}: {value}"))
    return clauses


def _named(tokens: Iterable[Any], label: Callable[[int], str]) -> Sentence:
    """The tokens of ids, or of rows of ids."""
    rows = [[row] if isinstance(row, int) else row for row in tokens]
    named: list[Sentence] = [(("code", display_token("".join(map(label, row)))),) for row in rows[:_MOST_NAMED]]
    if len(rows) > len(named):
        named.append(sentence(f"{len(rows) - len(named):,} more"))
    return sentence(*[piece for place, name in enumerate(named) for piece in ((", ", *name) if place else name)])
