"""The sentence above a picture: what a step shows, in words.

A sentence is a tuple of pieces, (style, text): `plain` words, `code` for a piece of the run itself,
and `strong`. The text is never markup; whoever draws it must draw it literally.
"""

import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from string import Formatter
from typing import Any, Literal, cast

import numpy as np

from transformer_viz import language
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.analysis.word_pooling import is_by_words, noun
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import percent_words, probability_words
from transformer_viz.terms import Head, Kind, head_label, head_title, place_words
from transformer_viz.text_display import display_text, shorten
from transformer_viz.trace.hidden_answer import spelt
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import unit

Style = Literal["plain", "code", "strong"]
Piece = tuple[Style, str]
Sentence = tuple[Piece, ...]
_LONGEST_CODE = 120
"""Signs of a piece of the run."""


def step_sentences(
    trace: Trace, kind: Kind, heads: Sequence[tuple[int, Head]], *, with_answer: bool = True
) -> list[list[Sentence]]:
    """For each head, at each step, where it looks and what the model writes.

    `Step 3: having written `ol`, layer 1 head 2 looks 96 % at `l` (token 4) and the model writes `l` (probability over 99 %).`

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        heads: layer and head of each. Beside a decoder the encoder's sentences name none.
        with_answer: with the right token where the model wrote another one.

    Raises:
        OptionError: the run has no such kind, layer or head.
    """
    writes, kept = trace.writes, _frames.setdefault(trace, {})
    key = (kind, with_answer, language.current())
    if key not in kept:
        kept[key] = _of_decoder(trace, kind, with_answer) if writes else _of_encoder_alone(trace)
    begins, ends = kept[key]
    if not trace.is_stepped(kind):
        return [[(*begin, *end) for begin, end in zip(begins, ends, strict=True)]] * len(heads)
    sentences: list[list[Sentence]] = []
    for (layer, head), looks in zip(heads, top_key_sentences(trace, kind, heads), strict=True):
        title, of_head = head_title(layer, head), []
        for begin, look, end in zip(begins, looks, ends, strict=True):
            if writes:
                of_head.append(say_sentence("{begin}, {head} {look}{end}", begin=begin, head=title, look=look, end=end))
            else:
                where, token = begin
                fields: dict[str, Any] = {"where": where, "head": title, "token": token, "look": look, "end": end}
                of_head.append(say_sentence("{where}{head}, {token} {look}{end}", **fields))
        sentences.append(of_head)
    return sentences


_frames: weakref.WeakKeyDictionary[Trace, dict[tuple[Kind, bool, str], tuple[list[Sentence], list[Sentence]]]]
_frames = weakref.WeakKeyDictionary()
"""Beginnings and ends of a run's sentences, which all heads share: of a long run browsers ask for one head after the other."""


def _of_decoder(trace: Trace, kind: Kind, with_answer: bool) -> tuple[list[Sentence], list[Sentence]]:
    """The beginnings of the steps' sentences, with what was read, and their ends, with what is written, if recorded."""
    ends: list[Sentence] = []
    for step in range(trace.n_steps):
        written = trace.output_tokens[step] if trace.output_tokens else None
        token: Piece = of_run(written or "")
        if step < trace.n_given:
            if trace.steps and trace.steps[step].candidates:
                guess, p = trace.steps[step].candidates[0]
                end = say_sentence(
                    "; next comes {token}, which was given. The model's own guess: {guess} (probability {p}).",
                    token=token,
                    guess=of_run(guess),
                    p=probability_words(p),
                )
            else:
                end = say_sentence("; next comes {token}, which was given.", token=token)
        elif written is None:
            end = say_sentence("; what it writes is not recorded.")
        elif not trace.steps and kind == "encoder":
            end = say_sentence(", what is written is {token}, its probability not recorded.", token=token)
        elif not trace.steps:
            end = say_sentence(" and what is written is {token}, its probability not recorded.", token=token)
        else:
            words = probability_words(trace.steps[step].probability)
            end = (
                say_sentence(", the model writes {token} (probability {p}).", token=token, p=words)
                if kind == "encoder"
                else say_sentence(" and the model writes {token} (probability {p}).", token=token, p=words)
            )
        true = trace.true_token(step) if with_answer and written is not None else None
        if true is not None and true != written:
            end = say_sentence("{end} The right token: {token}.", end=end, token=of_run(true))
        if kind == "encoder":
            end = say_sentence(
                "{end} The encoder read the whole source before the first step: its maps are the same at every step.", end=end
            )
        ends.append(end)
    begins: list[Sentence] = [
        (("strong", say("Step {step} of {n}: ", step=step, n=trace.n_steps)), *read)
        for step, read in enumerate(so_far(trace), 1)
    ]
    return begins, ends


def _of_encoder_alone(trace: Trace) -> tuple[list[Sentence], list[Sentence]]:
    """The beginnings of the sentences, with place and label of each source token, and their ends: the fills of mask tokens."""
    n, word = len(trace.source_tokens), noun(trace)
    guesses = {fill.place: fill.candidates[0] for fill in trace.fills}
    begins: list[Sentence] = []
    ends: list[Sentence] = []
    for place, token in enumerate(trace.source_tokens):
        where = say("The encoder alone, {place} of {n}: ", place=place_words(place, word), n=n)
        begins.append((("strong", where), of_run(token)))
        if place in guesses:
            best, p = guesses[place]
            words = probability_words(p)
            ends.append(say_sentence(". Its first guess here: {token} (probability {p}).", token=of_run(best), p=words))
        else:
            ends.append(say_sentence("."))
    return begins, ends


def so_far(trace: Trace) -> list[Sentence]:
    """Says what was written before each step; where that is not recorded, what was read."""
    if not trace.output_tokens:
        return [say_sentence("having read {text}", text=of_run(token)) for token in trace.target_tokens]
    # What comes next goes on from the end of the text: of a long one no more than that is put together.
    last = 1 if trace.n_given else 0
    parts = spelt(trace, trace.target_tokens if trace.n_given else trace.output_tokens)
    sentences: list[Sentence] = []
    for step in range(trace.n_steps):
        text, place = "", step + last
        while place and len(text) <= _LONGEST_CODE:
            place -= 1
            text = parts[place] + text
        text = text if len(text) <= _LONGEST_CODE else "…" + text[-_LONGEST_CODE + 1 :]
        if trace.n_given:
            sentences.append(say_sentence("having read {text}", text=of_run(text)))
        elif not text:
            sentences.append(say_sentence("having written nothing yet"))
        else:
            sentences.append(say_sentence("having written {text}", text=of_run(text)))
    return sentences


def top_key_sentences(trace: Trace, kind: Kind, heads: Sequence[tuple[int, Head]]) -> list[list[Sentence]]:
    """`looks 96 % at `l` (token 4)`: for each head, of each row the key with the most weight."""
    attention, word = trace.attentions[kind], noun(trace)
    keys: list[Sentence] = [
        say_sentence("{token} ({place})", token=of_run(token), place=place_words(key, word))
        for key, token in enumerate(attention.keys)
    ]
    sentences: list[list[Sentence]] = []
    for layer, head in heads:
        looks: list[Sentence] = []
        for row in attention.head(layer, head):
            if not np.isfinite(row).all():
                looks.append(say_sentence("has no numbers here"))
            elif not row.any():
                looks.append(say_sentence("may look at nothing"))
            else:
                key = int(row.argmax())
                share = percent_words(float(row[key]))
                looks.append(say_sentence("looks {share} at {key}", share=share, key=keys[key]))
        sentences.append(looks)
    return sentences


def step_name(trace: Trace) -> str:
    """The word for a row that a player steps through: `step`, or `token` for an encoder alone."""
    return later("step") if trace.writes else later("token")


def of_run(text: str, most: int = _LONGEST_CODE) -> Piece:
    """A token or a text of the run as a piece of a sentence: its spaces to be seen, and no longer than one can read."""
    return "code", shorten(display_text(text), most)


def say_sentence(template: str, /, **fields: str | Piece | Sentence) -> Sentence:
    """`say` of `transformer_viz.language` for a sentence.

    Args:
        template: the English text.
        fields: what goes into its places: plain words, a piece, or several.
    """
    pieces: list[Piece] = []
    for before, place in _parts(template, language.current()):
        if before:
            pieces.append(("plain", before))
        if place is not None:
            field = fields[place]
            if isinstance(field, str):
                pieces.append(("plain", field))
            elif field and isinstance(field[0], str):
                pieces.append(cast(Piece, field))
            else:
                pieces += field
    return tuple(_joined(pieces))


@cache
def _parts(template: str, now: str) -> list[tuple[str, str | None]]:
    """A template in a language: text, and the place after it."""
    said = language.translation(template, now) or template
    return [(before, place) for before, place, _, _ in Formatter().parse(said)]


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Pieces, of which plain words that follow each other are one."""
    for style, group in groupby(pieces, key=itemgetter(0)):
        if style == "plain":
            if text := "".join(text for _, text in group):
                yield "plain", text
        else:
            yield from group


def sentence(*pieces: str | Piece) -> Sentence:
    """A sentence of pieces, of which those without a style are plain words."""
    return tuple([("plain", piece) if isinstance(piece, str) else piece for piece in pieces])


def plain(sentence: Sentence) -> str:
    """The sentence as text, pieces of the run in backquotes."""
    return "".join(f"`{text}`" if style == "code" else text for style, text in sentence)


def best_head_words(trace: Trace) -> str | None:
    """`best cross head: L1 H2, 96 % on the right token`; None where no step has a true key, or the run no numbers."""
    best = best_head(trace)
    if best is None or not np.isfinite(best[2]):
        return None
    layer, head, mass = best
    head_name, share = head_label(layer, head), percent_words(mass)
    return say("best cross head: {head}, {share} on the right token", head=head_name, share=share)


def source_unit(trace: Trace) -> str:
    """The word for a source token, special ones left out: `letter` where all are letters, `word` where pooled, else `token`."""
    if trace.source_ids is not None or is_by_words(trace):
        return noun(trace)
    own = [token for token, letter in zip(trace.source_tokens, trace.source_letters, strict=True) if letter is not None]
    return unit(own or trace.source_tokens)
