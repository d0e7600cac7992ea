"""The command `trace`."""

from typing import Annotated

from transformer_viz.addresses import parse_row, row_address
from transformer_viz.commands._decoding import DecodingOptions, RecordingOptions
from transformer_viz.commands._shared import ModelChoice, Pair, Text, TraceFile
from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import Kind


def run(
    text: Text,
    model: ModelChoice,
    decoding: DecodingOptions,
    recording: RecordingOptions,
    file: TraceFile,
    inside: Annotated[
        list[Annotated[tuple[Kind, int, int, int], parse_row]] | None,
        "also save every number inside one head, as in cross.2.3:5 for layer 2, head 3, row 5; may be repeated",
    ] = None,
    pair: Pair = None,
) -> None:
    """Decode a text and save the run as a trace file: all attention and all masks."""
    file.check()
    text = decoding.read(text, model, pair)

    from transformer_viz.inside_head import run as inside_run

    loaded = decoding.load(model)
    trace = decoding.decode(loaded, text, recording)
    for place in dict.fromkeys(inside or ()):
        kind, layer, head, row = place
        if (attention := trace.attentions.get(kind)) is None:
            raise OptionError(
                f"--inside {row_address(place)}: this run has no {kind} attention; it has {join_names(trace.kinds)}"
            )
        if layer not in attention.layers or head >= attention.n_heads or row >= len(attention.queries):
            layers = join_names(number + 1 for number in attention.layers)
            raise OptionError(
                f"--inside {row_address(place)} is not possible; this run's {kind} attention has the layers {layers}, "
                f"heads 1 to {attention.n_heads} and rows 1 to {len(attention.queries)}"
            )
        trace = trace.with_inside(inside_run.inside(loaded, trace, kind, layer, head, row))
    file.save(trace)
