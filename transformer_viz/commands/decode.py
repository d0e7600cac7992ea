"""Decode a text and print what was written, step by step."""

import argparse

from transformer_viz.commands import _shared

HELP = "decode a text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    parser.add_argument("--strategy", default="greedy", help="greedy (greedy)")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help="the most tokens to write, <end> included (the task's limit + 1)"
    )
    parser.add_argument("--candidates", type=int, default=10, metavar="N", help="how many candidates each step keeps (10)")
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, whatever was written: a wrong answer is an answer."""
    from transformer_viz.checkpoints import load_checkpoint
    from transformer_viz.runs.decode import decode
    from transformer_viz.trace.as_json import summary

    trace = decode(
        load_checkpoint(arguments.checkpoint, arguments.device),
        _shared.read_text(arguments.text),
        strategy=arguments.strategy,
        max_length=arguments.max_length,
        candidates=arguments.candidates,
    )
    if arguments.json:
        _shared.print_json(summary(trace))
        return 0
    print(_shared.visible(trace.text))
    for number, step in enumerate(trace.steps, start=1):
        others = "  ".join(f"{_shared.visible(token)} {p:.4f}" for token, p in step.candidates[1:4])
        print(f"{number:4}  {_shared.visible(step.token):8} {step.probability:.4f}   {others}")
    return 0
