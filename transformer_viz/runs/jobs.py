"""Trainings in processes of their own, started from a page: they survive its reload, can be paused and stopped, are limited.

A job is a few files in `trained/.jobs/`: `NAME.json` (what was asked for), `NAME.events` (a line of JSON for each event),
`NAME.wish` (what the page wishes), `NAME.log` (what the process said), `NAME.start` and `NAME.lock`, which the process holds
while it lives and while it trains, `NAME.end` (how it ended), and `NAME.source.npy` and `NAME.target.npy` (embeddings that
were given). Nothing is kept in the server's memory, so a new server finds its old jobs.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from torch import Tensor

from transformer_viz import places, reading
from transformer_viz.checkpoints import LARGEST_CONFIG, is_name, trained_folder
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.runs import locks
from transformer_viz.runs.embeddings import SIDES, Side
from transformer_viz.runs.growing import STATE
from transformer_viz.runs.make_checkpoint import Wish
from transformer_viz.training.loop import Event
from transformer_viz.training.recipe import Recipe
from transformer_viz.writing import write_text

State = Literal["starting", "running", "paused", "finished", "failed"]
JobWish = Literal["go on", "pause", "stop", "discard"]

MOST_RUNNING = 1
MOST_JOBS = 30
"""Folders that a page's visitors can fill."""
MOST_SECONDS = 30 * 60
SNAPSHOTS = 24
SAMPLES = 2_000
_LONGEST_LOG = 2_000
_MOST_EVENTS = 20_000
_LARGEST = 64 * 2**20
"""Bytes of a job's events, or of its log."""
_KINDS = ("json", "events", "wish", "log", "start", "lock", "end", *(f"{side}.npy" for side in SIDES))


@dataclass(frozen=True)
class Job:
    """A training that a page started; `place` is the common beginning of its files' names."""

    name: str
    place: Path
    recipe: Recipe
    started: float
    """Seconds since 1970."""

    @property
    def folder(self) -> Path:
        """Where the checkpoint grows."""
        return self.place.parent.parent / self.name

    @property
    def state(self) -> State:
        """What the files say now."""
        if locks.is_held(_file(self.place, "lock")):
            return "running"
        if _file(self.place, "end").exists():
            is_whole = (self.folder / "config.json").exists() and not (self.folder / STATE).exists()
            return "finished" if is_whole else self._ended()
        return "starting" if locks.is_held(_file(self.place, "start")) else "failed"

    def events(self) -> list[dict[str, Any]]:
        """All events so far, as rows. A training that was killed goes on from before its last events: they did not happen."""
        rows: list[dict[str, Any]] = []
        for row in _lines(_file(self.place, "events")):
            while rows and rows[-1]["step"] >= row["step"]:
                rows.pop()
            rows.append(row)
        return rows[-_MOST_EVENTS:]

    def words(self) -> str:
        """The end of what the process said."""
        return _read(_file(self.place, "log"))[-_LONGEST_LOG:].strip()

    def wish(self, wish: JobWish) -> None:
        """Tells the process; it hears it after the step it is at."""
        write_text(wish, _file(self.place, "wish"))

    def embeddings(self) -> dict[Side, Path]:
        """The files of the pretrained matrices that it begins with."""
        files = {side: _file(self.place, f"{side}.npy") for side in SIDES}
        return {side: file for side, file in files.items() if file.exists()}

    def discard(self) -> None:
        """Removes what there is of it. A running one must be stopped first."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for kind in _KINDS:
            _file(self.place, kind).unlink(missing_ok=True)

    def _ended(self) -> State:
        return "paused" if _read(_file(self.place, "end")).strip() == "paused" else "failed"


def start(recipe: Recipe, name: str, embeddings: Mapping[Side, Tensor] = MappingProxyType({})) -> Job:
    """Starts a training in a process of its own.

    Args:
        recipe: what to make.
        name: of the checkpoint.
        embeddings: pretrained matrices (token, d_model) that it begins with.

    Raises:
        OptionError: too many are running or kept, or the name is taken.
    """
    parent = trained_folder()
    known = jobs()
    if not is_name(name):
        raise OptionError(f"{name!r} is no name for a checkpoint: letters, figures, dot, dash and underscore, 1 to 100 of them")
    if (parent / name).exists() or any(job.name == name for job in known):
        raise OptionError(f"There is a checkpoint {name} already. Choose another name.")
    if len(known) >= MOST_JOBS:
        raise OptionError(f"{len(known)} trainings are kept here, and no more can be. Discard one first.")
    _check_free(known)
    (parent / ".jobs").mkdir(parents=True, exist_ok=True)
    place = parent / ".jobs" / name
    job = Job(name, place, recipe, time.time())
    for side, matrix in embeddings.items():
        np.save(_file(place, f"{side}.npy"), matrix.numpy())
    write_text(json.dumps({"recipe": recipe.to_json(), "started": job.started}), _file(place, "json"))
    _launch(job)
    return job


def go_on(job: Job) -> None:
    """Resumes a paused training, or one whose process was killed."""
    _check_free(jobs())
    _launch(job)


def jobs() -> list[Job]:
    """All jobs, the newest first; what is damaged is left out."""
    found = []
    for path in (trained_folder() / ".jobs").glob("*.json"):
        name = path.name.removesuffix(".json")
        with suppress(OSError, ValueError, TypeError, LookupError, OverflowError, TransformerVizError):
            data = reading.json_of(path, LARGEST_CONFIG)
            if is_name(name):
                found.append(Job(name, path.with_name(name), Recipe.from_json(data["recipe"]), float(data["started"])))
    return sorted(found, key=lambda job: -job.started)


class Reporter:
    """The other end: what the training's process writes and hears.

    Args:
        place: `Job.place`.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ends_at = time.monotonic() + MOST_SECONDS

    @contextmanager
    def alive(self) -> Generator[None]:
        """Holds the lock, and leaves a word at the end."""
        _file(self.place, "end").unlink(missing_ok=True)
        # A page that looks whether it is held holds it for a moment itself.
        with locks.held(_file(self.place, "lock"), wait=True):
            try:
                yield
            except BaseException:
                write_text("failed", _file(self.place, "end"))
                raise
            write_text("paused" if self.wish() == "pause" else "done", _file(self.place, "end"))

    def report(self, event: Event) -> None:
        """One line."""
        with _file(self.place, "events").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**event.row(), "at": round(time.time(), 2)}) + "\n")

    def wish(self) -> Wish:
        """What the page wishes; to stop, once the time is over."""
        said = _read(_file(self.place, "wish"))
        if said in ("pause", "discard"):
            return "pause"
        return "stop" if said == "stop" or time.monotonic() > self.ends_at else "go on"


def _check_free(known: list[Job]) -> None:
    running = [job.name for job in known if job.state in ("running", "starting")]
    if len(running) >= MOST_RUNNING:
        raise OptionError(f"{running[0]} is being trained; one training can run at a time. Wait, pause it or stop it.")


def _launch(job: Job) -> None:
    # Of the lock too: the process that wrote "paused" may be leaving still, with the old file's lock in its hand.
    for kind in ("wish", "end", "start"):
        _file(job.place, kind).unlink(missing_ok=True)
    recipe_file = _file(job.place, "json")
    # Half of the cores at most: the page must stay quick.
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    command = [sys.executable, "-m", "transformer_viz", "train", "--recipe-file", str(recipe_file), "-o", str(job.folder)]
    command += ["--resume", "--snapshots", str(SNAPSHOTS), "--samples", str(SAMPLES), "--job", str(job.place)]
    for side, matrix in job.embeddings().items():
        command += [f"--{side}-embedding", str(matrix)]
    # The child inherits the lock: it is held from before its first moment until it ends, however it does.
    with _file(job.place, "log").open("wb") as log, locks.held(_file(job.place, "start")) as held:
        subprocess.Popen(
            command,
            pass_fds=[held.fileno()],
            cwd=places.ROOT,
            env={**os.environ, "OMP_NUM_THREADS": threads},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _file(place: Path, kind: str) -> Path:
    # Not with_suffix: a name may have a dot.
    return place.with_name(f"{place.name}.{kind}")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file that is still being written."""
    for line in _read(path).splitlines():
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("step"), int):
                yield row


def _read(path: Path) -> str:
    """A file of a job; nothing where there is none, or something that no job has written."""
    try:
        return reading.bytes_of(path, _LARGEST).decode("utf-8", errors="replace")
    except (OSError, TransformerVizError):
        return ""
