"""The words of *Hide the answer*: the question at a step, what was guessed, and whether it was right."""

from collections.abc import Iterable
from dataclasses import dataclass

from transformer_viz.numbers_in_words import count_words
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, sentence, so_far, top_key_sentences
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
        return (("strong", "All steps are revealed."),)
    asked = []
    if kind != "encoder":
        asked.append(f"where does {head_title(layer, head)} look")
    if trace.output_tokens:
        asked.append("what does the model write")
    begin: Piece = ("strong", f"Step {step + 1} of {trace.n_steps}: ")
    return sentence(begin, *so_far(trace)[step], f", {', and '.join(asked)}?")


def outcome_words(trace: Trace, kind: Kind, layer: int, head: Head, step: int, guess: Guess | None) -> Sentence:
    """Says what a revealed step was, after a guess: ``You guessed `e`; the model wrote `h`, …``"""
    if guess is not None:
        kind, layer, head = guess.kind, guess.layer, guess.head
    pieces: list[str | Piece] = []
    if guess is not None and guess.key is None:
        pieces = ["You guessed ", of_run(guess.token or "")]
    elif guess is not None and guess.key is not None:
        pieces = ["You guessed ", of_run(trace.attentions[kind].keys[guess.key]), f" ({place_words(guess.key)})"]
    if trace.output_tokens:
        begins = "; the model wrote " if guess else f"At step {step + 1} the model wrote "
        pieces += [begins, of_run(trace.output_tokens[step])]
    if kind != "encoder":
        begins = "" if not pieces else ", and " if trace.output_tokens else "; "
        pieces += [f"{begins}{head_title(layer, head)} ", *top_key_sentences(trace, kind, [(layer, head)])[0][step]]
    return sentence(*pieces, ".")


def tally_words(trace: Trace, guesses: Iterable[Guess]) -> str:
    """`3 of 4 guesses right`; empty before the first."""
    right = [is_right(trace, guess) for guess in guesses]
    return f"{sum(right)} of {count_words(len(right), 'guess', 'guesses')} right" if right else ""
