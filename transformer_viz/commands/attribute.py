"""The command `attribute`."""

from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

from transformer_viz import attribution
from transformer_viz.commands._decoding import DecodingOptions, RecordingOptions
from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import CauseKind, Mode, ModelChoice, Text, TraceFile
from transformer_viz.schema import Choice

# One file each. Their package imports torch.
_METHODS = tuple(module.name for module in iter_modules([str(Path(attribution.__path__[0], "methods"))]))


def run(
    text: Text,
    model: ModelChoice,
    method: Annotated[
        list[Annotated[str, Choice(_METHODS)]],
        "how to measure what counts; docs/attribution.md explains the methods; may be repeated",
        Option("--method"),
    ],
    decoding: DecodingOptions,
    recording: RecordingOptions,
    file: TraceFile,
    mode: Mode = "word",
    kind: CauseKind = None,
) -> None:
    """Decode a text and save the trace, with how much each token counts for the output."""
    file.check()
    text = decoding.read(text, model)

    from transformer_viz.attribution.attribute import attribute
    from transformer_viz.attribution.methods import METHODS

    loaded = decoding.load(model)
    trace = decoding.decode(loaded, text, recording)
    for name in method:
        has_modes = name not in METHODS or METHODS[name].modes
        trace = trace.with_attribution(attribute(loaded, trace, name, mode=mode if has_modes else "word", kind=kind))
    file.save(trace)
