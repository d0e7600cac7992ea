"""Decode a text, ask how much each token counts for what is written, and save the run with the answers as a file."""

import argparse
from pathlib import Path
from pkgutil import iter_modules

from transformer_viz import attribution
from transformer_viz.commands import _shared

HELP = "decode a text and save the trace with what counts for each token"
_METHODS = Path(attribution.__path__[0], "methods")
"""One file each. Their package imports torch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy, the measures, the file."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    parser.add_argument(
        "--method",
        action="append",
        required=True,
        choices=[module.name for module in iter_modules([str(_METHODS)])],
        metavar="NAME",
        help="occlusion, gradient, rollout or another measure of docs/attribution.md; may be repeated",
    )
    _shared.add_mode(parser, "occlusion: ")
    _shared.add_cause_kind(parser)
    _shared.add_decoding(parser)
    _shared.add_trace_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is written."""
    _shared.check_trace_file(arguments)
    text = _shared.text_to_decode(arguments)

    from transformer_viz.attribution.attribute import attribute
    from transformer_viz.attribution.methods import METHODS
    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    for method in arguments.method:
        has_modes = method not in METHODS or METHODS[method].modes
        trace = trace.with_attribution(
            attribute(model, trace, method, mode=arguments.mode if has_modes else "word", kind=arguments.kind)
        )
    _shared.save_trace(trace, arguments)
    return 0
