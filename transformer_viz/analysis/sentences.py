"""What a step shows, said in words.

A sentence is a tuple of pieces, (style, text): `plain` words, `code` for a piece of the run itself,
and `strong`. The text is never markup; whoever draws it must draw it literally.
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from transformer_viz.analysis.true_key import best_head
from transformer_viz.analysis.word_pooling import is_by_words, noun
from transformer_viz.errors import shortened
from transformer_viz.numbers_in_words import percent_words, probability_words
from transformer_viz.terms import Head, Kind, head_label, head_title, place_words, visible_text
from transformer_viz.trace.hidden_answer import spelt
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import unit

Style = Literal["plain", "code", "strong"]
Sentence = tuple[tuple[Style, str], ...]
_LONGEST_CODE = 120
"""Signs of a piece of the run."""


def step_sentence(trace: Trace, kind: Kind, layer: int, head: Head, step: int, *, with_answer: bool = True) -> Sentence:
    """Where the focus head looks at a step and what the model writes.

    `Step 3: having written `ol`, layer 1 head 2 looks 96 % at `l` (token 4) and the model writes `l`, p = 0.999.`
    """
    if not trace.writes:
        return shortened_code(_of_encoder_alone(trace, kind, layer, head, step))
    pieces: list[tuple[Style, str]] = [("strong", f"Step {step + 1} of {trace.n_steps}: "), *so_far(trace, step)]
    if kind != "encoder":
        pieces += [("plain", f", {head_title(layer, head)} "), *look(trace, kind, layer, head, step)]
    is_given = step < trace.n_given
    pieces += _given(trace, step) if is_given else _writes(trace, step, joined=", " if kind == "encoder" else " and ")
    if with_answer:
        pieces += _correction(trace, step)
    if kind == "encoder":
        pieces += [("plain", " The encoder read the whole source before the first step: its maps are the same at every step.")]
    return shortened_code(pieces)


def _of_encoder_alone(trace: Trace, kind: Kind, layer: int, head: Head, token: int) -> list[tuple[Style, str]]:
    """Where a token of the source looks, and at a mask token what would stand there."""
    pieces: list[tuple[Style, str]] = [
        ("strong", f"The encoder alone, {place_words(token, noun(trace))} of {len(trace.rows)}: "),
        ("plain", f"{head_title(layer, head)}, "),
        of_run(trace.source_tokens[token]),
        ("plain", " "),
        *look(trace, kind, layer, head, token),
        ("plain", "."),
    ]
    fill = next((fill for fill in trace.fills if fill.place == token), None)
    if fill is None:
        return pieces
    best, probability = fill.candidates[0]
    return [*pieces, ("plain", " Its first guess here: "), of_run(best), ("plain", f", p {probability_words(probability)}.")]


def step_name(trace: Trace) -> str:
    """What one goes through: a `step`, or a `token` of an encoder alone."""
    return "step" if trace.writes else "token"


def shortened_code(pieces: Iterable[tuple[Style, str]]) -> Sentence:
    """A sentence whose pieces of the run are not longer than one can read."""
    return tuple((style, shortened(text, _LONGEST_CODE) if style == "code" else text) for style, text in pieces)


def of_run(text: str) -> tuple[Style, str]:
    """A token or a text of the run as a piece of a sentence, its spaces to be seen."""
    return "code", visible_text(text)


def plain(sentence: Sentence) -> str:
    """The sentence as text, pieces of the run in backquotes."""
    return "".join(f"`{text}`" if style == "code" else text for style, text in sentence)


def best_head_words(trace: Trace) -> str | None:
    """`best cross head: L1 H2, 96 % on the true letter`; None where no step has a true key, or the run no numbers."""
    found = best_head(trace)
    if found is None or not np.isfinite(found[2]):
        return None
    layer, head, mass = found
    return f"best cross head: {head_label(layer, head)}, {percent_words(mass)} on the true {source_unit(trace)}"


def source_unit(trace: Trace) -> str:
    """`letter` where the source is made of them, `word` where pooled, else `token`; what is no part of the text aside."""
    if trace.source_ids is not None or is_by_words(trace):
        return noun(trace)
    own = [token for token, letter in zip(trace.source_tokens, trace.source_letters, strict=True) if letter is not None]
    return unit(own or trace.source_tokens)


def so_far(trace: Trace, step: int) -> list[tuple[Style, str]]:
    """What was written before this step; where that is not recorded, what was read."""
    if not trace.output_tokens:
        return [("plain", "having read "), of_run(trace.target_tokens[step])]
    if trace.n_given:
        return [("plain", "having read "), of_run(_end_of(spelt(trace, trace.target_tokens[: step + 1])))]
    written = _end_of(spelt(trace, trace.output_tokens[:step]))
    return [("plain", "having written "), of_run(written)] if written else [("plain", "having written nothing yet")]


def _given(trace: Trace, step: int) -> list[tuple[Style, str]]:
    """What comes next in a prompt, and what the model would have written there."""
    pieces: list[tuple[Style, str]] = [
        ("plain", "; next comes "),
        of_run(trace.output_tokens[step]),
        ("plain", ", which was given"),
    ]
    if trace.steps and trace.steps[step].candidates:
        guess, probability = trace.steps[step].candidates[0]
        pieces += [("plain", ". The model's own guess: "), of_run(guess), ("plain", f", p {probability_words(probability)}")]
    return [*pieces, ("plain", ".")]


def _end_of(parts: list[str]) -> str:
    """The last part of what these spell: what comes next goes on from there. No more is put together."""
    last: list[str] = []
    length = 0
    while parts and length <= _LONGEST_CODE:
        last.append(parts.pop()[-_LONGEST_CODE - 1 :])
        length += len(last[-1])
    written = "".join(reversed(last))
    return written if length <= _LONGEST_CODE else "…" + written[-_LONGEST_CODE + 1 :]


def _writes(trace: Trace, step: int, joined: str) -> list[tuple[Style, str]]:
    """The written token and its probability, as far as they are recorded."""
    if not trace.output_tokens:
        return [("plain", "; what it writes is not recorded.")]
    token: tuple[Style, str] = of_run(trace.output_tokens[step])
    if not trace.steps:
        return [("plain", f"{joined}what is written is "), token, ("plain", ", its probability not recorded.")]
    return [
        ("plain", f"{joined}the model writes "),
        token,
        ("plain", f", p {probability_words(trace.steps[step].probability)}."),
    ]


def look(trace: Trace, kind: Kind, layer: int, head: Head, step: int) -> list[tuple[Style, str]]:
    """`looks 96 % at `l` (token 4)`: the key with the most weight in a row of the head."""
    attention = trace.attentions[kind]
    row = attention.row(layer, head, step)
    if not np.isfinite(row).all():
        return [("plain", "has no numbers here")]
    if not row.any():
        return [("plain", "may look at nothing")]
    key = int(row.argmax())
    return [
        ("plain", f"looks {percent_words(float(row[key]))} at "),
        of_run(attention.keys[key]),
        ("plain", f" ({place_words(key, noun(trace))})"),
    ]


def _correction(trace: Trace, step: int) -> list[tuple[Style, str]]:
    """The true token, where the model wrote another one."""
    true = trace.true_token(step)
    if true is None or not trace.output_tokens or true == trace.output_tokens[step]:
        return []
    return [("plain", " Expected: "), of_run(true), ("plain", ".")]
