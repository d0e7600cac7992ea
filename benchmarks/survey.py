"""A survey of held-out texts as the command makes it: 2,000 texts, and 20,000 with one worker and with two."""

import os
import time

import transformer_viz as tv
from benchmarks.measure import Line, Number, Report, Target

TITLE = "a survey of held-out texts"
TARGETS = {
    "seconds": Target("a survey of 2,000 short texts", "at most", 15, "s"),
    "workers": Target("20,000 texts with two workers: times as fast as with one", "at least", 1.6, "×"),
}
_NAME, _TURNS = "reverse-small", 3


def measure(report: Report) -> None:
    """Verdicts included for the short one, as by default; starting and loading included for both."""
    taken = [_seconds(2000, verdict_texts=300) for _ in range(_TURNS)]
    evaluated = [_evaluated(2000) for _ in range(_TURNS)]
    numbers = Number.of("a survey", taken), Number.of("exact match alone (evaluate)", evaluated)
    report.values["seconds"] = report.add(Line(f"{_NAME}: 2,000 texts", *numbers, "s", _TURNS)).ours.value
    if len(os.sched_getaffinity(0)) < 2:
        report.remark("one processor: two workers are not compared with one")
        return
    both: dict[int, list[float]] = {2: [], 1: []}
    for workers in (2, 1, 1, 2):
        both[workers].append(_seconds(20_000, workers=workers, verdict_texts=0))
    two, one = (Number.of(f"{workers} workers", seconds) for workers, seconds in both.items())
    report.values["workers"] = report.add(Line(f"{_NAME}: 20,000 texts, no verdicts", two, one, "s", 2)).ratio


def _seconds(n: int, *, verdict_texts: int, workers: int | None = None) -> float:
    started = time.perf_counter()
    tv.survey(_NAME, held_out=n, workers=workers, verdict_texts=verdict_texts, device="cpu")
    return time.perf_counter() - started


def _evaluated(n: int) -> float:
    started = time.perf_counter()
    tv.evaluate(tv.load_checkpoint(_NAME, "cpu"), n)
    return time.perf_counter() - started
