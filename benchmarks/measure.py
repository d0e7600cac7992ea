"""What all groups of measurements share: timing in turns, a line of the table, a target and its verdict.

Every line is a ratio against something else that was measured in the same run, so it means the same on a slow machine.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any, Literal

import torch

from benchmarks import table

LEAST_RUNS = 3


class Skipped(Exception):
    """A group cannot be measured here; the text says what is missing."""


@dataclass(frozen=True)
class Number:
    """Something measured several times.

    Attributes:
        name: whose it is, as in `Hugging Face, traced`.
        value: the median.
        p95: the 95th percentile of 20 values and more.
    """

    name: str
    value: float
    p95: float | None = None

    @classmethod
    def of(cls, name: str, values: Iterable[float]) -> "Number":
        known = sorted(values)
        return cls(name, median(known), quantiles(known, n=20)[-1] if len(known) >= 20 else None)


@dataclass(frozen=True)
class Line:
    """One line of the table: ours and something else, in one unit."""

    what: str
    ours: Number
    other: Number
    unit: str
    runs: int
    better: Literal["less", "more"] = "less"

    @property
    def ratio(self) -> float:
        """How many times better ours is: as fast, as small. Below 1 it is worse."""
        mine, theirs = self.ours.value, self.other.value
        return theirs / mine if self.better == "less" else mine / theirs

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, the ratio too."""
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True)
class Target:
    """What a number has to be."""

    words: str
    bound: Literal["at least", "at most"]
    limit: float
    unit: str

    def is_held(self, value: float) -> bool:
        """Whether a measured value is within the limit."""
        return value >= self.limit if self.bound == "at least" else value <= self.limit

    def to_json(self, value: float | None) -> dict[str, Any]:
        """The target and what was measured; None where nothing was."""
        return {**asdict(self), "value": value, "held": None if value is None else self.is_held(value)}


@dataclass
class Report:
    """What a group found: lines, the values of its targets by their keys, and remarks."""

    lines: list[Line] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, line: Line) -> Line:
        """Keeps a line and prints it at once: a whole run takes minutes."""
        self.lines.append(line)
        print(table.row(line.to_json()), flush=True)
        return line

    def remark(self, text: str) -> None:
        """Keeps a remark and prints it."""
        self.remarks.append(text)
        print(f"  {text}", flush=True)

    def worst(self, key: str, value: float, bound: Literal["at least", "at most"]) -> None:
        """Keeps the value that is furthest from holding the target, of all that are reported under its key."""
        pick = min if bound == "at least" else max
        self.values[key] = pick(self.values.get(key, value), value)


def in_turns(
    works: Mapping[str, Callable[[], object]],
    *,
    budget: float,
    least: int = LEAST_RUNS,
    most: int = 15,
) -> dict[str, list[float]]:
    """Seconds of every work, taken in turns, so that another program on the machine disturbs all alike.

    Each work is done once before, to warm up. Every other round goes backwards: a work that always came after a large one
    would always find the processor's caches full of something else.

    Args:
        works: what to do, by name.
        budget: seconds within which a further round is begun.
        least: rounds that are made whatever they take.
        most: the most rounds.
    """

    # What was asked of a GPU is waited for.
    synchronize = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None

    def seconds(work: Callable[[], object]) -> float:
        synchronize()
        started = time.perf_counter()
        work()
        synchronize()
        return time.perf_counter() - started

    for work in works.values():
        seconds(work)
    end = time.monotonic() + budget
    taken: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for done in range(most):
        if done >= least and time.monotonic() >= end:
            break
        for name in names if done % 2 == 0 else names[::-1]:
            taken[name].append(seconds(works[name]))
    return taken
