"""The command `trace`."""

from typing import Annotated

from transformer_viz.addresses import HeadAddress, find_head, parse_row, row_address
from transformer_viz.commands._decoding import DecodingOptions, RecordingOptions
from transformer_viz.commands._shared import ModelChoice, Pair, Text, TraceFile
from transformer_viz.errors import OptionError


def run(
    text: Text,
    model: ModelChoice,
    decoding: DecodingOptions,
    recording: RecordingOptions,
    file: TraceFile,
    inside: Annotated[
        list[Annotated[tuple[HeadAddress, int], parse_row]] | None,
        "also save every number inside one head, as in cross.2.3:5 for layer 2, head 3, row 5; may be repeated",
    ] = None,
    pair: Pair = None,
) -> None:
    """Decode a text and save the run as a trace file: all attention and all masks."""
    file.check()
    text = decoding.read(text, model, pair)

    from transformer_viz.inside_head.run import inspect_head

    loaded = decoding.load(model)
    trace = decoding.decode(loaded, text, recording)
    for head, row in dict.fromkeys(inside or ()):
        n_rows = len(trace.attentions[find_head(head, trace.grid, what="--inside").kind].queries)
        if row >= n_rows:
            raise OptionError(f"--inside {row_address(head, row)}: this run's {head.kind} attention has rows 1 to {n_rows}")
        trace = trace.with_inside(inspect_head(loaded, trace, head, row))
    file.save(trace)
