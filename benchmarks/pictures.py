"""The picture of all heads, 6 layers × 8 heads of all three kinds, against bertviz's model view of the same weights.

Built means: from a Trace (bertviz: from tensors) to the text that travels to the browser. Megabytes are millions of bytes.
Our picture thins maps out where cells outnumber pixels, and says so; the exported page beside it holds every weight.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from benchmarks.measure import Line, Number, Report, Target, in_turns
from benchmarks.random_run import HEADS, LAYERS, random_run
from transformer_viz import export, figures
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

TITLE = f"pictures of {LAYERS} × {HEADS} heads, three kinds"
SIZES = (64, 256)
TARGETS = {"weight": Target("pictures of all heads, 64 and 256 tokens, weigh", "at most", 1, "MB")}
_BUDGET, _OURS = 5.0, "ours"


def measure(report: Report) -> None:
    """Build time and bytes of every size."""
    try:
        bertviz = import_module("bertviz")
    except ImportError:
        bertviz = None
        report.remark("bertviz: skipped: not installed (benchmarks/requirements.txt)")
    for n in SIZES:
        trace = random_run(n)
        works: dict[str, Callable[[], list[str]]] = {
            _OURS: lambda trace=trace: [str(figures.mosaic(trace, kind).to_json()) for kind in KINDS],
            "ours, every weight exact, a page": lambda trace=trace: [export.html(trace, plotlyjs=False)],
        }
        if bertviz is not None:
            works["bertviz model view"] = _model_view(bertviz, trace)
        seconds = in_turns(works, budget=_BUDGET)
        ours, *others = (Number.of(name, [1000 * each for each in taken]) for name, taken in seconds.items())
        small, *large = (Number(name, sum(len(text.encode()) for text in work()) / 1e6) for name, work in works.items())
        report.worst("weight", small.value, "at most")
        for time, weight in zip(others, large, strict=True):
            report.add(Line(f"{n} tokens: all heads, build", ours, time, "ms", len(seconds[_OURS])))
            report.add(Line(f"{n} tokens: all heads, bytes", small, weight, "MB", 1))


def _model_view(bertviz: Any, trace: Trace) -> Callable[[], list[str]]:
    """Bertviz's model view of a run as HTML; its tensors are made before."""
    tensors = {
        kind: [torch.from_numpy(layer[None].copy()) for layer in attention.weights]
        for kind, attention in trace.attentions.items()
    }

    def view() -> list[str]:
        made = bertviz.model_view(
            encoder_attention=tensors["encoder"],
            decoder_attention=tensors["decoder"],
            cross_attention=tensors["cross"],
            encoder_tokens=list(trace.source_tokens),
            decoder_tokens=list(trace.target_tokens),
            html_action="return",
        )
        return [made.data]

    return view
