"""The token strips above a run, as plain data for the step player, and the line that says what rows and columns are."""

from typing import Any

from transformer_viz.analysis.word_pooling import is_by_words, noun
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.sentences.correctness import answer, answer_words
from transformer_viz.sentences.run_sentences import Sentence, source_unit
from transformer_viz.terms import Kind, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS, unit

_ROWS: dict[Kind, str] = {
    "encoder": later("row = the source {unit} that looks"),
    "decoder": later("row = the {unit} being written"),
    "cross": later("row = the {unit} being written"),
}


def legend(trace: Trace, kind: Kind, *, with_marks: bool = True, colour: str = "") -> str:
    """A line that explains rows, columns, colour and rings; tokens are called letters, words (where pooled) or tokens.

    Args:
        trace: the run.
        kind: of the map.
        with_marks: with what colour, rings and grey mean.
        colour: what it means, where no bar beside the map says it.
    """
    is_pooled = is_by_words(trace)
    written = unit(trace.target_tokens) if trace.target_ids is None and not is_pooled else noun(trace)
    read = source_unit(trace)
    row, column = read if kind == "encoder" else written, written if kind == "decoder" else read
    parts = [say(_ROWS[kind], unit=say(row)), say("column = the {unit} looked at", unit=say(column))]
    if with_marks:
        parts.append(colour or say("stronger colour = more"))
    if with_marks and kind == "decoder":
        parts.append(say("grey = masked"))
    has_rings = trace.target_ids is None and any(key is not None for key in trace.alignment)
    if with_marks and kind == "cross" and has_rings:
        parts.append(say("ring = where the {unit} comes from", unit=say(written)))
    if is_pooled:
        parts.append(say("keys summed, queries averaged"))
    if trace.n_given:
        parts.append(say("dotted = given"))
    return " · ".join(parts)


def source_strip(trace: Trace) -> list[dict[str, Any]]:
    """The source beside the strip that one steps through, one cell a token."""
    return _source_tokens(trace) if trace.writes else []


def output_strip(trace: Trace, *, with_answer: bool = True) -> list[dict[str, Any]]:
    """The output strip, one cell a step; where no output is recorded, what was read; of an encoder alone its source."""
    if not trace.writes:
        return _source_tokens(trace)
    return [_output_token(trace, t, with_answer) for t in range(trace.n_steps)]


def strip_labels(trace: Trace) -> dict[str, str]:
    """Labels for screen readers of the strip and of the slider that one steps with."""
    if trace.writes:
        return {"output": say("output tokens, one button a step"), "slider": say("Step")}
    return {"output": say("source tokens, one button a row"), "slider": say("Token")}


def _source_tokens(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "text": display_token(token),
            "title": say(
                "{place}: {token}",
                place=place_words(place, noun(trace)),
                token=_with_id(display_token(token), trace.source_ids, place),
            ),
            "class": _class(token),
        }
        for place, token in enumerate(trace.source_tokens)
    ]


def prompt_token(trace: Trace) -> dict[str, Any] | None:
    """The token that a decoder without an encoder reads first, for before its output: it is a prompt's and was not written."""
    if not trace.prompt:
        return None
    first = display_token(trace.target_tokens[0])
    token = _with_id(first, trace.target_ids, 0)
    return {"text": first, "title": say("{place}: {token}, given", place=place_words(0), token=token)}


def answer_mark(trace: Trace, *, with_answer: bool = True, step_name: str = "step") -> dict[str, Any] | None:
    """The verdict beside the output and its style; None where it is not known whether the output is right."""
    verdict = answer(trace) if with_answer else None
    # Beside a question that somebody has answered `right` alone would be of that answer.
    is_right: Sentence = (("strong", say("what the model wrote is right")),)
    words = is_right if verdict == "right" else answer_words(trace, step_name)
    return None if verdict is None else {"class": verdict.replace(" ", "-"), "words": words}


def _output_token(trace: Trace, t: int, with_answer: bool) -> dict[str, Any]:
    if not trace.output_tokens:
        read = trace.target_tokens[t]
        return {
            "text": display_token(read),
            "title": say("row {row}: has read {token}", row=t + 1, token=display_token(read)),
            "class": _class(read),
        }
    token, true = trace.output_tokens[t], trace.true_token(t)
    is_wrong = with_answer and true is not None and true != token
    p = trace.steps[t].probability if trace.steps else None
    text = display_token(token)
    title = say("step {step}: {token}", step=t + 1, token=_with_id(text, trace.output_ids, t))
    title = say("{token}, given", token=title) if t < trace.n_given else title
    title = title if p is None else say("{token}, probability {p}", token=title, p=probability_words(p, 2))
    if t < trace.n_given:
        return {"text": text, "title": title, "class": "given"}
    return {
        "text": text,
        "title": say("{token}; the right token is {right}", token=title, right=display_token(true)) if is_wrong else title,
        "class": _class(token) + (" wrong" if is_wrong else ""),
        # A probability that is no number (a run with a mistake of masks) has no tint.
        **({} if p is None or p != p else {"tint": round(p, 4)}),
    }


def _with_id(token: str, ids: tuple[int, ...] | None, place: int) -> str:
    """`the (id 262)`, where labels do not tell tokens apart."""
    return token if ids is None else say("{token} (id {number})", token=token, number=ids[place])


def _class(token: str) -> str:
    return "special" if token in SPECIAL_TOKENS else ""
