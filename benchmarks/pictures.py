"""The picture of all heads, 6 layers × 8 heads of all three kinds, against bertviz's model view of the same weights.

Counted is the text that travels to the browser; megabytes are millions of bytes. Our picture thins maps out where cells
outnumber pixels, and says so; the exported page beside it holds every weight.
"""

from importlib import import_module
from importlib.util import find_spec

import torch

from benchmarks.measure import Line, Number, Report, Target
from benchmarks.random_run import HEADS, LAYERS, random_run
from transformer_viz import export, figures
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

TITLE = f"pictures of {LAYERS} × {HEADS} heads, three kinds"
SIZES = (64, 256)
TARGETS = {"weight": Target("pictures of all heads, 64 and 256 tokens, weigh", "at most", 1, "MB")}


def measure(report: Report) -> None:
    """Bytes of every size."""
    has_bertviz = find_spec("bertviz") is not None
    if not has_bertviz:
        report.remark("bertviz: skipped: not installed (benchmarks/requirements.txt)")
    for n in SIZES:
        trace = random_run(n)
        ours = _megabytes("ours", "".join(str(figures.mosaic(trace, kind).to_json()) for kind in KINDS))
        report.worst("weight", ours.value, "at most")
        others = [_megabytes("ours, every weight exact, a page", export.html(trace, plotlyjs=False))]
        if has_bertviz:
            others.append(_megabytes("bertviz model view", _model_view(trace)))
        for other in others:
            report.add(Line(f"{n} tokens: all heads, bytes", ours, other, "MB", 1))


def _megabytes(name: str, text: str) -> Number:
    return Number(name, len(text.encode()) / 1e6)


def _model_view(trace: Trace) -> str:
    """Bertviz's model view of a run as HTML."""
    bertviz = import_module("bertviz")
    tensors = {
        f"{kind}_attention": [torch.from_numpy(layer[None].copy()) for layer in attention.weights]
        for kind, attention in trace.attentions.items()
    }
    tokens = {"encoder_tokens": list(trace.source_tokens), "decoder_tokens": list(trace.target_tokens)}
    return bertviz.model_view(**tensors, **tokens, html_action="return").data
