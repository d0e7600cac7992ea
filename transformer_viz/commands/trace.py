"""Decode a text and save the whole run, every attention and mask, as a file."""

import argparse

from transformer_viz.commands import _shared

HELP = "decode a text and save the trace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy, the file."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    _shared.add_decoding(parser)
    _shared.add_trace_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is written."""
    _shared.check_trace_file(arguments)
    text = _shared.read_text(arguments.text)

    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    _shared.save_trace(trace, arguments)
    return 0
