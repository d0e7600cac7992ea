"""The token strips above a run, as plain data for the step player, and the line that says what rows and columns are."""

from typing import Any

from transformer_viz.analysis.word_pooling import is_by_words, noun
from transformer_viz.numbers_in_words import number_words
from transformer_viz.sentences.correctness import answer, answer_words
from transformer_viz.sentences.run_sentences import source_unit
from transformer_viz.terms import Kind, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS, unit

_LEGENDS: dict[Kind, str] = {
    "encoder": "row = the source {read} that looks · column = the {read} looked at, more where the colour is stronger",
    "decoder": "row = the {written} being written · column = the {written} looked at, of those written so far · grey = masked",
    "cross": "row = the {written} being written · column = the {read} looked at, more where the colour is stronger · "
    "ring = the right token",
}


def legend(trace: Trace, kind: Kind) -> str:
    """A line that explains rows, columns and rings; tokens are called letters, words (where pooled) or tokens."""
    is_pooled = is_by_words(trace)
    written = unit(trace.target_tokens) if trace.target_ids is None and not is_pooled else noun(trace)
    words = _LEGENDS[kind].format(read=source_unit(trace), written=written)
    if trace.target_ids is not None or (is_pooled and not any(key is not None for key in trace.alignment)):
        words = words.partition(" · ring")[0]
    words += " · keys summed, queries averaged" if is_pooled else ""
    return words + (" · dotted = given" if trace.is_given(0) else "")


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
        return {"output": "output tokens, one button a step", "slider": "Step"}
    return {"output": "source tokens, one button a row", "slider": "Token"}


def _source_tokens(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "text": display_token(token),
            "title": f"{place_words(place, noun(trace))}: {display_token(token)}{_id_words(trace.source_ids, place)}",
            "class": _class(token),
        }
        for place, token in enumerate(trace.source_tokens)
    ]


def prompt_token(trace: Trace) -> dict[str, Any] | None:
    """The token that a decoder without an encoder reads first, for before its output: it is a prompt's and was not written."""
    if not trace.prompt:
        return None
    first = display_token(trace.prompt[0])
    return {"text": first, "title": f"{place_words(0)}: {first}{_id_words(trace.target_ids, 0)}, given"}


def answer_mark(trace: Trace, *, with_answer: bool = True, step_name: str = "step") -> dict[str, Any] | None:
    """The verdict beside the output and its style; None where it is not known whether the output is right."""
    verdict = answer(trace) if with_answer else None
    return None if verdict is None else {"class": verdict.replace(" ", "-"), "words": answer_words(trace, step_name)}


def _output_token(trace: Trace, t: int, with_answer: bool) -> dict[str, Any]:
    if not trace.output_tokens:
        read = trace.target_tokens[t]
        return {"text": display_token(read), "title": f"row {t + 1}: has read {display_token(read)}", "class": _class(read)}
    token, true = trace.output_tokens[t], trace.true_token(t)
    is_wrong = with_answer and true is not None and true != token
    p = trace.steps[t].probability if trace.steps else None
    certainty, text = "" if p is None else f", p = {number_words(p, 4)}", display_token(token)
    title = f"step {t + 1}: {text}{_id_words(trace.output_ids, t)}"
    if trace.is_given(t):
        return {"text": text, "title": f"{title}, given{certainty}", "class": "given"}
    return {
        "text": text,
        "title": title + certainty + (f"; the right token is {display_token(true)}" if is_wrong else ""),
        "class": _class(token) + (" wrong" if is_wrong else ""),
        # A probability that is no number (a run with a mistake of masks) has no tint.
        **({} if p is None or p != p else {"tint": round(p, 4)}),
    }


def _id_words(ids: tuple[int, ...] | None, place: int) -> str:
    """` (id 262)`, where labels do not tell tokens apart."""
    return "" if ids is None else f" (id {ids[place]})"


def _class(token: str) -> str:
    return "special" if token in SPECIAL_TOKENS else ""
