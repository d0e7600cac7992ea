"""Decode a text and print what was written, step by step."""

import argparse
from typing import TYPE_CHECKING

from transformer_viz.commands import _shared
from transformer_viz.terms import visible_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformer_viz.trace.trace import Candidate, Step, Trace

HELP = "decode a text"
_MOST = 5
"""Candidates of a mask token that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    _shared.add_decoding(parser)
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, whatever was written: a wrong answer is an answer."""
    text = _shared.text_to_decode(arguments)

    from transformer_viz.trace.as_json import summary
    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    if arguments.json:
        _shared.print_json(summary(trace))
    else:
        _print_table(trace)
    return 0


def _print_table(trace: "Trace") -> None:
    """The text alone on its line, then how it came about."""
    (_print_steps if trace.steps else _print_fills)(trace)
    where = f"{trace.made_by['checkpoint']} on {trace.made_by['device']}"
    print(_shared.visible("; ".join(filter(None, (_verdict(trace), where)))))


def _print_steps(trace: "Trace") -> None:
    """What was written; a prompt is only counted."""
    print(_shared.visible_run(trace.text))
    if trace.n_given:
        print(f"after a prompt of {trace.n_given + 1} tokens")
    print(f"{'step':>4}  {'token':8} {'p':6}   instead")
    for number, step in enumerate(_written(trace), start=1):
        print(f"{number:4}  {_shared.visible_run(step.token):8} {step.probability:.4f}   {_others(step)}".rstrip())
    _print_hypotheses(trace)


def _print_fills(trace: "Trace") -> None:
    """Of an encoder alone: what may stand in the place of each mask token."""
    if not trace.fills:
        print("nothing to fill in: the text holds no mask token of this model")
        return
    print(f"{'place':>5}  may be")
    for fill in trace.fills:
        print(f"{fill.place + 1:5}  {_each(fill.candidates[:_MOST])}")


def _written(trace: "Trace") -> "tuple[Step, ...]":
    return trace.steps[trace.n_given :]


def _print_hypotheses(trace: "Trace") -> None:
    """The finished hypotheses of a beam search, best first."""
    if trace.search is None:
        return
    from transformer_viz.analysis.answer import hypothesis_answer

    print("n-best: score, sum of log-probabilities, text")
    for number in trace.search.best:
        node = trace.search.nodes[number]
        found = hypothesis_answer(trace, number)
        print(
            _shared.visible(f"{node.score:9.4f} {node.total:9.4f}  {visible_text(node.text)}")
            + ("" if found is None else f"  ({found})")
        )


def _others(step: "Step", most: int = 3) -> str:
    return _each([candidate for rank, candidate in enumerate(step.candidates) if rank != step.rank][:most])


def _each(candidates: "Sequence[Candidate]") -> str:
    return "  ".join(f"{_shared.visible_run(token)} {probability:.4f}" for token, probability in candidates)


def _verdict(trace: "Trace") -> str:
    from transformer_viz.analysis.answer import answer_words

    end = "<end>" if "task" in trace.made_by else "an end"
    is_cut = trace.finished != "end" and bool(trace.steps)
    ending = f"stopped after {len(_written(trace))} tokens without {end}" if is_cut else ""
    words = "".join(f"“{text}”" if style == "code" else text for style, text in answer_words(trace))
    return "; ".join(filter(None, (ending, words)))
