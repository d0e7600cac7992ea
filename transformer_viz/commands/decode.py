"""The command `decode`."""

from typing import TYPE_CHECKING

from transformer_viz.commands._decoding import DecodingOptions, RecordingOptions
from transformer_viz.commands._shared import Json, ModelChoice, Pair, Text, print_json, print_lines
from transformer_viz.numbers_in_words import number_words
from transformer_viz.text_display import display_text
from transformer_viz.text_table import text_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from transformer_viz.trace.steps import Candidate, Step
    from transformer_viz.trace.trace import Trace

_MOST_FILLS, _MOST_OTHERS = 5, 3
"""Candidates that are printed, of a mask token and beside a token that was written."""


def run(
    text: Text,
    model: ModelChoice,
    decoding: DecodingOptions,
    recording: RecordingOptions,
    pair: Pair = None,
    json: Json = False,
) -> None:
    """Decode a text and print what is written, step by step."""
    text = decoding.read(text, model, pair)

    trace = decoding.decode(decoding.load(model), text, recording)
    if json:
        print_json(summary(trace))
    else:
        print_lines("\n".join(_lines(trace)))


def summary(trace: "Trace") -> "dict[str, Any]":
    """The run as JSON has it, without what belongs to its attention; of a beam search the finished hypotheses, best first."""
    from transformer_viz.trace.store import description

    left_out = ("attentions", "search", "groups", "insides", "attributions")
    plain = {name: part for name, part in description(trace).items() if name not in left_out}
    plain |= {"right": trace.is_right, "first_wrong_step": trace.first_wrong_step}
    plain |= {name: trace.made_by.get(name) for name in ("checkpoint", "device")}
    if trace.search is not None:
        best = [trace.search.nodes[number] for number in trace.search.best]
        plain["hypotheses"] = [
            {"text": n.text, "score": n.score, "log_probability": n.total, "tokens": n.step + 1, "state": n.state} for n in best
        ]
    return plain


def _lines(trace: "Trace") -> "Iterator[str]":
    """The text alone on its line, then how it came about; a prompt is only counted."""
    from transformer_viz.sentences.correctness import hypothesis_answer

    written = trace.steps[trace.written]
    if trace.steps:
        yield display_text(trace.text)
        if trace.is_given(0):
            yield f"after a prompt of {trace.written.start + 1} tokens"
        steps = enumerate(written, start=1)
        rows = [(str(n), display_text(step.token), number_words(step.probability, 4), other_tokens(step)) for n, step in steps]
        yield text_table(("step", "token", "p", "instead"), rows, "><><")
    elif trace.fills:
        rows = [(str(fill.place + 1), _tokens(fill.candidates[:_MOST_FILLS])) for fill in trace.fills]
        yield text_table(("place", "may be"), rows, "><")
    else:
        yield "nothing to fill in: the text holds no mask token of this model"
    if trace.search is not None:
        yield "n-best: score, sum of log-probabilities, text"
        for number in trace.search.best:
            node, answer = trace.search.nodes[number], hypothesis_answer(trace, number)
            yield f"{node.score:9.4f} {node.total:9.4f}  {display_text(node.text)}" + (
                "" if answer is None else f"  ({answer})"
            )
    if remark := trace.made_by.get("remark"):
        yield f"note: {remark}"
    yield "; ".join(filter(None, (answer_line(trace), f"{trace.made_by['checkpoint']} on {trace.made_by['device']}")))


def other_tokens(step: "Step") -> str:
    """The most probable tokens but the one that was written."""
    return _tokens([candidate for rank, candidate in enumerate(step.candidates) if rank != step.rank][:_MOST_OTHERS])


def _tokens(candidates: "Sequence[Candidate]") -> str:
    return "  ".join(f"{display_text(token)} {number_words(probability, 4)}" for token, probability in candidates)


def answer_line(trace: "Trace") -> str:
    """Tells whether the answer is right, and whether it was cut off."""
    from transformer_viz.sentences.correctness import answer_words

    end = "<end>" if "task" in trace.made_by else "an end"
    is_cut = trace.finished != "end" and bool(trace.steps)
    ending = f"stopped after {len(trace.steps[trace.written])} tokens without {end}" if is_cut else ""
    words = "".join(f"“{text}”" if style == "code" else text for style, text in answer_words(trace))
    return "; ".join(filter(None, (ending, words)))
