"""The picture of all heads, 6 layers × 8 heads of all three kinds, against bertviz's model view of the same weights.

Built means: from a Trace (bertviz: from tensors) to the text that travels to the browser. Megabytes are millions of bytes.
Our picture thins maps out where cells outnumber pixels, and says so; the exported page beside it holds every weight.
bertviz draws with scripts from other hosts, so its time to drawn is not measured; ours is measured against a heatmap a head.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from benchmarks import browser, drawing
from benchmarks.measure import LEAST_RUNS, Line, Number, Report, Skipped, Target, in_turns
from benchmarks.random_run import HEADS, LAYERS, random_run
from transformer_viz import export, figures
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

TITLE = f"pictures of {LAYERS} × {HEADS} heads, three kinds"
SIZES = (20, 64, 256, 512)
TARGETS = {
    "weight 64": Target("all heads at 6 × 8 × 64 tokens weigh", "at most", 1, "MB"),
    "build 64": Target("all heads at 6 × 8 × 64 tokens are built in, median", "at most", 50, "ms"),
    "weight 256": Target("all heads at 6 × 8 × 256 tokens weigh", "at most", 6, "MB"),
}
_MOST_FOR_BERTVIZ, _MOST_FOR_SUBPLOTS = 256, 64
_BUDGET = 5.0
_OURS, _PLAYER, _BERTVIZ = "ours", "one head, every step", "bertviz model view"


def measure(report: Report) -> None:
    """Build time and bytes of every size, then the time to drawn."""
    try:
        bertviz = import_module("bertviz")
    except ImportError:
        bertviz = None
        report.remark("bertviz: skipped: not installed (benchmarks/requirements.txt)")
    base: dict[str, float] = {}
    for n in SIZES:
        _built(report, n, bertviz, base)
    try:
        _drawn(report)
    except Skipped as reason:
        report.remark(f"time to drawn: skipped: {reason}")


def _built(report: Report, n: int, bertviz: Any, base: dict[str, float]) -> None:
    """Bertviz is what a size is compared with, and beyond its sizes our own picture of 20 tokens."""
    trace = random_run(n)
    made: dict[str, int] = {}

    def weighed(name: str, texts: Callable[[], list[str]]) -> Callable[[], None]:
        def work() -> None:
            made[name] = sum(len(text.encode()) for text in texts())

        return work

    works = {
        _OURS: weighed(_OURS, lambda: [str(figures.mosaic(trace, kind).to_json()) for kind in KINDS]),
        _PLAYER: weighed(_PLAYER, lambda: [str(figures.player(trace, "cross", step=n - 1).to_json())]),
    }
    if bertviz is not None and n <= _MOST_FOR_BERTVIZ:
        works[_BERTVIZ] = weighed(_BERTVIZ, _model_view(bertviz, trace))
    seconds = in_turns(works, budget=_BUDGET)
    times = {name: Number.of(name, [1000 * s for s in each]) for name, each in seconds.items()}
    weights = {name: Number(name, size / 1e6) for name, size in made.items()}
    if n == SIZES[0]:
        base.update({"ms": times[_OURS].value, "MB": weights[_OURS].value})
    for what, unit, found in (("build", "ms", times), ("bytes on the wire", "MB", weights)):
        other = found.get(_BERTVIZ, Number(f"ours at {SIZES[0]} tokens", base[unit]))
        runs = len(seconds[_OURS]) if unit == "ms" else 1
        report.add(Line(f"{n} tokens: all heads, {what}", found[_OURS], other, unit, runs))
        report.add(Line(f"{n} tokens: {_PLAYER}, {what}", found[_PLAYER], other, unit, runs))
    if _BERTVIZ in made:
        page = Number("ours, an exported page", len(export.html(trace, plotlyjs=False).encode()) / 1e6)
        report.add(Line(f"{n} tokens: every weight exact, bytes", page, weights[_BERTVIZ], "MB", 1))
    for key, found in (("build", times), ("weight", weights)):
        if f"{key} {n}" in TARGETS:
            report.values[f"{key} {n}"] = found[_OURS].value


def _model_view(bertviz: Any, trace: Trace) -> Callable[[], list[str]]:
    """Bertviz's model view of a run as HTML; its tensors are made before."""
    given: Any = {kind: trace.attentions(kind) for kind in KINDS}
    tensors = {kind: [torch.from_numpy(layer[None].copy()) for layer in given[kind]] for kind in KINDS}

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


def _drawn(report: Report) -> None:
    """From the text of the figures to the frame after the last is drawn; every size as often as the others, in turns."""
    traces = {n: random_run(n) for n in SIZES}
    ours = {n: [str(figures.mosaic(trace, kind).to_json()) for kind in KINDS] for n, trace in traces.items()}
    plain = {n: drawing.subplots(traces[n]) for n in SIZES if n <= _MOST_FOR_SUBPLOTS}
    with browser.browser() as running:
        page = drawing.page(running)
        times: dict[int, list[float]] = {n: [] for n in SIZES}
        others: dict[int, list[float]] = {n: [] for n in plain}
        for attempt in range(1 + 2 * LEAST_RUNS):
            for n in SIZES:
                took = drawing.milliseconds(page, ours[n])
                also = drawing.milliseconds(page, plain[n]) if n in plain and attempt <= LEAST_RUNS else None
                if attempt:  # the first warms up
                    times[n].append(took)
                    others.get(n, []).extend([] if also is None else [also])
    least = Number.of(f"ours at {SIZES[0]} tokens", times[SIZES[0]])
    for n in SIZES:
        other = Number.of("a heatmap a head", others[n]) if n in others else least
        report.add(Line(f"{n} tokens: all heads drawn in Chromium", Number.of(_OURS, times[n]), other, "ms", len(times[n])))
