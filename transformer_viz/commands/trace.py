"""Decode a text and save the whole run, every attention and mask, as a file."""

import argparse
from typing import TYPE_CHECKING

from transformer_viz.addresses import parse_row, row_address
from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError, listed

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel
    from transformer_viz.terms import Kind
    from transformer_viz.trace.trace import Trace

    Place = tuple[Kind, int, int, int]

HELP = "decode a text and save the trace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy, the file."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    _shared.add_decoding(parser)
    parser.add_argument(
        "--inside",
        metavar="PLACE",
        action="append",
        type=_place,
        default=[],
        help="keep every number of one head and row too, as cross.2.3:5: layer 2, head 3, row 5, from 1; may be repeated",
    )
    _shared.add_trace_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is written."""
    _shared.check_trace_file(arguments)
    text = _shared.text_to_decode(arguments)

    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    for place in dict.fromkeys(arguments.inside):
        trace = _with_inside(model, trace, place)
    _shared.save_trace(trace, arguments)
    return 0


def _place(text: str) -> "Place":
    try:
        return parse_row(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _with_inside(model: "LoadedModel", trace: "Trace", place: "Place") -> "Trace":
    """The run with the inside of one head and row."""
    from transformer_viz.tracing.inside import inside

    kind, layer, head, row = place
    if (attention := trace.attentions.get(kind)) is None:
        raise OptionError(f"--inside {row_address(place)}: this run has no {kind} attention; it has {listed(trace.kinds)}")
    numbers, n_heads, n_queries = attention.layers, attention.n_heads, len(attention.queries)
    if layer not in numbers or head >= n_heads or row >= n_queries:
        layers = listed(number + 1 for number in numbers)
        raise OptionError(
            f"--inside {row_address(place)} is not possible; this run's {kind} attention has the layers {layers}, "
            f"heads 1 to {n_heads} and rows 1 to {n_queries}"
        )
    return inside(model, trace, kind, layer, head, row).kept_in(trace)
