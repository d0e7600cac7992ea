"""The settings of a generation config that are in force, in words."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from transformer_viz.language import later, say
from transformer_viz.sentences.run_sentences import Sentence, say_sentence, sentence
from transformer_viz.text_display import display_token

_MOST_NAMED = 6
_WORDS: dict[str, str] = {
    "no_repeat_ngram_size": later("no {value} tokens in a row come twice"),
    "encoder_no_repeat_ngram_size": later("no {value} tokens in a row come from the source"),
    "min_length": later("it does not end before {value} tokens, its beginning counted"),
    "min_new_tokens": later("it does not end before it has written {value} tokens"),
    "source_language": later("it reads {value}"),
    "target_language": later("it writes {value}"),
    "shortlist": later(
        "it writes one of the {value} most frequent tokens, or one that its shortlist has for a token of the source"
    ),
    "renormalize_logits": later("probabilities are made to add up again"),
}
_FACTORS: dict[str, tuple[str, str]] = {
    "encoder_repetition_penalty": (
        later("tokens of the source are more probable (factor {value:g})"),
        later("tokens of the source are less probable (factor {value:g})"),
    ),
    "repetition_penalty": (
        later("tokens that are there already are less probable (factor {value:g})"),
        later("tokens that are there already are more probable (factor {value:g})"),
    ),
}
"""Above 1, and below."""
_TOKENS: dict[str, str] = {
    "decoder_start_token_id": later("it begins with {tokens}"),
    "eos_token_id": later("it ends with {tokens}"),
    "bad_words_ids": later("it never writes {tokens}"),
    "forced_bos_token_id": later("its first token is {tokens}"),
    "forced_eos_token_id": later("at the limit its last token is {tokens}"),
    "suppress_tokens": later("it never writes {tokens}"),
    "begin_suppress_tokens": later("it does not begin with {tokens}"),
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
            tokens = _named([value] if isinstance(value, int) else value, label)
            clauses.append(say_sentence(_TOKENS[name], tokens=tokens))
        elif name in _FACTORS:
            clauses.append(sentence(say(_FACTORS[name][value <= 1], value=value)))
        elif name in _WORDS:
            clauses.append(sentence(say(_WORDS[name], value=value)))
        else:
            clauses.append(sentence(f"{name.replace('_', ' ')}: {value}"))
    return clauses


def _named(tokens: Iterable[Any], label: Callable[[int], str]) -> Sentence:
    """The tokens of ids, or of rows of ids."""
    rows = [[row] if isinstance(row, int) else row for row in tokens]
    named: list[Sentence] = [(("code", display_token("".join(map(label, row)))),) for row in rows[:_MOST_NAMED]]
    if len(rows) > len(named):
        named.append(sentence(say("{n:,} more", n=len(rows) - len(named))))
    listed: Sentence = named[0] if named else ()
    for name in named[1:]:
        listed = say_sentence("{names}, {name}", names=listed, name=name)
    return listed
