"""A survey against `evaluate` over the same texts, in one process and in all; its peak memory over few and many texts.

`python -m benchmarks.survey 2000` prints the peak of one survey of so many texts, in bytes, of a process of its own.
"""

import json
import os
import sys
import time
from collections.abc import Generator

import transformer_viz as tv
from benchmarks.decoding_memory import bytes_of, in_process, set_mark
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.surveying import processes
from transformer_viz.surveying.block import Block
from transformer_viz.surveying.fingerprint import fingerprint
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.surveying.reading import held_out_of
from transformer_viz.surveying.work import Job, Unit

TITLE = "a survey of held-out texts, without verdicts"
TARGETS = {
    "evaluate": Target("texts a second of a survey as it runs against evaluate's, the worst checkpoint", "at least", 0.7, "×"),
    "processes": Target("texts a second of two processes against those of one", "at least", 1.6, "×"),
    "memory": Target("peak memory over 20,000 texts against that over 2,000", "at most", 1.1, "×"),
}
_NAMES = ("reverse-small", "reverse", "dates")
_TEXTS, _BUDGET, _BLOCKS = 2000, 8.0, 60
_AS_IT_RUNS, _TURNS = 8000, 3
_FEW, _MANY = 2000, 20_000


def measure(report: Report) -> None:
    """All three targets."""
    for name in _NAMES:
        _beside_evaluate(tv.load_checkpoint(name, "cpu"), report)
    if len(os.sched_getaffinity(0)) > 1:
        _scaling(report)
    else:
        report.remark("one processor: two processes are not compared with one")
    try:
        few, many = (in_process("survey", str(n)) for n in (_FEW, _MANY))
    except Skipped as reason:
        report.remark(f"peak memory: {reason}")
        return
    assert few is not None and many is not None
    ours, other = Number(f"{_MANY:,} texts", many[0] / 1e6), Number(f"{_FEW:,} texts", few[0] / 1e6)
    report.add(Line("reverse-small: peak memory of the process", ours, other, "MB", 1))
    report.worst("memory", many[0] / few[0], "at most")


def _beside_evaluate(checkpoint: Checkpoint, report: Report) -> None:
    works = {
        "survey": lambda: tv.survey(checkpoint, held_out=_TEXTS, verdict_texts=0),
        "evaluate": lambda: tv.evaluate(checkpoint, _TEXTS),
    }
    taken = in_turns(works, budget=_BUDGET)
    ours, other = (Number.of(what, [_TEXTS / each for each in taken[what]]) for what in works)
    report.add(Line(f"{checkpoint.name}: {_TEXTS:,} texts", ours, other, "texts/s", len(taken["survey"]), "more"))
    _as_it_runs(checkpoint, report)


def _as_it_runs(checkpoint: Checkpoint, report: Report) -> None:
    """A process for each processor, with the writing and merging of all blocks; `evaluate` has all processors too."""
    rates: dict[str, list[float]] = {"survey": [], "evaluate": []}
    for _ in range(_TURNS):
        rates["survey"].append(_whole_rate(checkpoint.name))
        started = time.perf_counter()
        tv.evaluate(checkpoint, _AS_IT_RUNS)
        rates["evaluate"].append(_AS_IT_RUNS / (time.perf_counter() - started))
    ours, other = (Number.of(f"{what}, all processors", rates[what]) for what in rates)
    report.add(Line(f"{checkpoint.name}: {_AS_IT_RUNS:,} texts", ours, other, "texts/s", _TURNS, "more"))
    report.worst("evaluate", ours.value / other.value, "at least")


def _whole_rate(name: str) -> float:
    """Texts a second from when each process has done a block until all is merged: starting and loading are left out."""
    seen: list[tuple[float, int]] = []
    tv.survey(
        name,
        held_out=_AS_IT_RUNS,
        verdict_texts=0,
        on_progress=lambda progress: seen.append((time.perf_counter(), progress.n_done)),
    )
    ended = time.perf_counter()
    n_workers = len(os.sched_getaffinity(0))
    begun, n_before = next(each for each in seen if each[1] >= 2 * n_workers * 64)
    return (_AS_IT_RUNS - n_before) / (ended - begun)


def _scaling(report: Report) -> None:
    checkpoint = tv.load_checkpoint("reverse", "cpu")
    blocks = list(held_out_of(checkpoint, _BLOCKS * 64, 0).blocks())
    job = Job("reverse", "cpu", fingerprint(checkpoint), SurveyOptions(verdict_texts=0))
    rates: dict[int, list[float]] = {1: [], 2: []}
    for n in (1, 2, 2, 1, 1, 2):
        rates[n].append(_rate(job, blocks, n))
    ours, other = (Number.of(f"{n} processes", rates[n]) for n in (2, 1))
    report.add(Line("reverse: texts a second once all have loaded it", ours, other, "texts/s", len(rates[1]), "more"))
    report.worst("processes", ours.value / other.value, "at least")


def _rate(job: Job, blocks: list[Block], n: int) -> float:
    """Texts a second of all processes, from when each has done a block until there are no more."""
    seen: list[float] = []

    def units() -> Generator[Unit]:
        for block in blocks:
            yield Unit("texts", block, "")
            seen.append(time.perf_counter())

    for _ in processes.run(n, job, units()):
        pass
    # A process takes its next unit when it has done one: those before the 2n-th are the ones that loading made wait.
    return 64 * (len(seen) - 1 - 2 * n) / (seen[-1] - seen[2 * n])


def _main(n: str) -> None:
    checkpoint = tv.load_checkpoint("reverse-small", "cpu")
    tv.survey(checkpoint, held_out=500, verdict_texts=0)
    set_mark()
    tv.survey(checkpoint, held_out=int(n), verdict_texts=0)
    print(json.dumps([bytes_of("VmHWM")]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
