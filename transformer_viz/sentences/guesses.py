"""The words of *Hide the answer*: the question at a step, what was guessed, and whether it was right."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transformer_viz.language import say
from transformer_viz.numbers_in_words import count_words
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, say_sentence, so_far, top_key_sentences
from transformer_viz.terms import Head, Kind, head_title, place_words
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A guess about a step: the token that is written, or the key that a head looks at most.

    Attributes:
        step: from 0.
        kind: the attention in focus.
        layer: its layer, from 0.
        head: its head, from 0, or `mean` or `max`.
        token: the expected token, or None.
        key: the expected place among the keys of the kind, from 0, or None.
    """

    step: int
    kind: Kind
    layer: int
    head: Head
    token: str | None = None
    key: int | None = None


def is_right(trace: Trace, guess: Guess) -> bool:
    """Tells whether a revealed step is as guessed."""
    if guess.key is None:
        # A space before a word is part of many models' tokens, and hard to guess.
        written = trace.output_tokens[guess.step]
        return guess.token in (written, written.removeprefix(" "))
    row = trace.attentions[guess.kind].row(guess.layer, guess.head, guess.step)
    return bool(row.any()) and int(row.argmax()) == guess.key


def question_words(trace: Trace, kind: Kind, layer: int, head: Head, step: int) -> Sentence:
    """Asks for the guess at a step: ``Step 3 of 6: having written `ol`, where does layer 1 head 2 look, and what …?``"""
    if step >= trace.n_steps:
        return (("strong", say("All steps are revealed.")),)
    begin: Piece = ("strong", say("Step {step} of {n}: ", step=step + 1, n=trace.n_steps))
    fields: dict[str, Any] = {"begin": begin, "so_far": so_far(trace)[step]}
    if kind == "encoder":
        return (
            say_sentence("{begin}{so_far}, what does the model write?", **fields)
            if trace.output_tokens
            else say_sentence("{begin}{so_far}, ?", **fields)
        )
    fields["head"] = head_title(layer, head)
    return (
        say_sentence("{begin}{so_far}, where does {head} look, and what does the model write?", **fields)
        if trace.output_tokens
        else say_sentence("{begin}{so_far}, where does {head} look?", **fields)
    )


def outcome_words(trace: Trace, kind: Kind, layer: int, head: Head, step: int, guess: Guess | None) -> Sentence:
    """Says what a revealed step was, after a guess: ``You guessed `e`; the model wrote `h`, …``"""
    if guess is not None:
        kind, layer, head = guess.kind, guess.layer, guess.head
    looks = top_key_sentences(trace, kind, [(layer, head)])[0][step] if kind != "encoder" else ()
    looked = say_sentence("{head} {looks}", head=head_title(layer, head), looks=looks)
    written = of_run(trace.output_tokens[step]) if trace.output_tokens else None
    if guess is None:
        at = say("At step {step}", step=step + 1)
        if written is None:
            return say_sentence("{looked}.", looked=looked)
        if kind == "encoder":
            return say_sentence("{at} the model wrote {token}.", at=at, token=written)
        return say_sentence("{at} the model wrote {token}, and {looked}.", at=at, token=written, looked=looked)
    guessed = of_run(guess.token or "")
    if guess.key is not None:
        key, place = of_run(trace.attentions[kind].keys[guess.key]), place_words(guess.key)
        guessed = say_sentence("{token} ({place})", token=key, place=place)
    if written is None:
        return (
            say_sentence("You guessed {guess}.", guess=guessed)
            if kind == "encoder"
            else say_sentence("You guessed {guess}; {looked}.", guess=guessed, looked=looked)
        )
    if kind == "encoder":
        return say_sentence("You guessed {guess}; the model wrote {token}.", guess=guessed, token=written)
    return say_sentence(
        "You guessed {guess}; the model wrote {token}, and {looked}.", guess=guessed, token=written, looked=looked
    )


def tally_words(trace: Trace, guesses: Iterable[Guess]) -> str:
    """`3 of 4 guesses right`; empty before the first."""
    right = [is_right(trace, guess) for guess in guesses]
    guessed = count_words(len(right), "guess", "guesses")
    return say("{n} of {guesses} right", n=sum(right), guesses=guessed) if right else ""
