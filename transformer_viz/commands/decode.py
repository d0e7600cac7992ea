"""Decode a text and print what was written, step by step."""

import argparse
from typing import TYPE_CHECKING

from transformer_viz.commands import _shared
from transformer_viz.terms import visible_text

if TYPE_CHECKING:
    from transformer_viz.trace.trace import Step, Trace

HELP = "decode a text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    _shared.add_decoding(parser)
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, whatever was written: a wrong answer is an answer."""
    text = _shared.read_text(arguments.text)

    from transformer_viz.checkpoints import load_checkpoint
    from transformer_viz.trace.as_json import summary
    from transformer_viz.tracing.decode import decode

    checkpoint = load_checkpoint(arguments.checkpoint, arguments.device)
    trace = decode(checkpoint, text, **_shared.decoding(arguments, checkpoint))
    if arguments.json:
        _shared.print_json(summary(trace))
    else:
        _print_table(trace)
    return 0


def _print_table(trace: "Trace") -> None:
    """The text alone on its line, then how it came about."""
    print(_shared.visible_run(trace.text))
    print(f"{'step':>4}  {'token':8} {'p':6}   instead")
    for number, step in enumerate(trace.steps, start=1):
        print(f"{number:4}  {_shared.visible_run(step.token):8} {step.probability:.4f}   {_others(step)}".rstrip())
    _print_hypotheses(trace)
    print(_shared.visible(f"{_verdict(trace)}; {trace.made_by['checkpoint']} on {trace.made_by['device']}"))


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
    others = [candidate for rank, candidate in enumerate(step.candidates) if rank != step.rank]
    return "  ".join(f"{_shared.visible_run(token)} {probability:.4f}" for token, probability in others[:most])


def _verdict(trace: "Trace") -> str:
    from transformer_viz.analysis.answer import answer_words

    ending = "" if trace.finished == "end" else f"stopped after {len(trace.steps)} tokens without <end>; "
    words = "".join(f"“{text}”" if style == "code" else text for style, text in answer_words(trace))
    return f"{ending}{words}"
