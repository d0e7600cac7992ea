"""Trainings in processes of their own, started from a page: they survive its reload, can be paused and stopped, are limited.

A job is a few files in `trained/.jobs/`: `NAME.json` (what was asked for), `NAME.events` (a line of JSON for each event),
`NAME.wish` (what the page wishes), `NAME.log` (what the process said), `NAME.start` and `NAME.lock`, which the process holds
while it lives and while it trains, `NAME.end` (how it ended), and `NAME.source.npy` and `NAME.target.npy` (embeddings that
were given). Nothing is kept in the server's memory, so a new server finds its old jobs.

A job belongs to the browser that started it. Everybody may watch; who may do what is decided here, whatever a page shows.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor

from transformer_viz import locks, places, reading, serving
from transformer_viz.checkpoints import LARGEST_CONFIG, is_name, trained_folder
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.schema import read_value, to_plain
from transformer_viz.training import estimate
from transformer_viz.training.embeddings import SIDES, Side
from transformer_viz.training.in_progress import STATE
from transformer_viz.training.loop import Event
from transformer_viz.training.make_checkpoint import ControlSignal
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.visitor import Visitor
from transformer_viz.writing import write_text

State = Literal["starting", "running", "paused", "finished", "failed"]
JobWish = Literal["pause", "stop"]

MOST_RUNNING = 1
MOST_JOBS = 30
"""Folders that a page's visitors can fill; their bytes are `serving.Limits.trained_bytes`."""
MOST_SECONDS = 30 * 60
SNAPSHOTS = 24
SAMPLES = 2_000
AT_WORK = ("running", "starting")
_LONGEST_LOG = 2_000
_MOST_EVENTS = 20_000
_LARGEST = 64 * 2**20
"""Bytes of a job's events, or of its log."""
_KINDS = ("json", "events", "wish", "log", "start", "lock", "end", *(f"{side}.npy" for side in SIDES))


@dataclass(frozen=True, kw_only=True)
class JobDescription:
    """What `NAME.json` holds."""

    recipe: Recipe
    started: float
    """Seconds since 1970."""
    mark: str | None = None
    """That of the browser that started it (`Visitor.mark`); None = only the owner of the server may manage it."""


@dataclass(frozen=True)
class Job:
    """A training that a page started; `place` is the common beginning of its files' names."""

    name: str
    place: Path
    recipe: Recipe
    started: float
    """Seconds since 1970."""
    mark: str | None = None
    """That of the browser that started it (`Visitor.mark`); None = only the owner of the server may manage it."""

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

    def wish(self, wish: JobWish, visitor: Visitor) -> None:
        """Tells the process; it hears it after the step it is at.

        Raises:
            OptionError: the training is somebody else's.
        """
        self.check(visitor)
        write_text(wish, _file(self.place, "wish"))

    def check(self, visitor: Visitor) -> None:
        """Raises an OptionError where the training is somebody else's."""
        if not visitor.may_manage(self.mark):
            raise OptionError(
                f"{self.name} was started in another browser. Only from there, and by the owner of this server, can it be "
                "paused, stopped, resumed or discarded."
            )

    def embeddings(self) -> dict[Side, Path]:
        """The files of the pretrained matrices that it begins with."""
        files = {side: _file(self.place, f"{side}.npy") for side in SIDES}
        return {side: file for side, file in files.items() if file.exists()}

    @property
    def wished(self) -> JobWish | None:
        """What it was told and has not done yet."""
        said = _read(_file(self.place, "wish"))
        return next((wish for wish in get_args(JobWish) if wish == said), None) if self.state in AT_WORK else None

    def _ended(self) -> State:
        return "paused" if _read(_file(self.place, "end")).strip() == "paused" else "failed"


def start(recipe: Recipe, name: str, visitor: Visitor, embeddings: Mapping[Side, Tensor] = MappingProxyType({})) -> Job:
    """Starts a training in a process of its own.

    Args:
        recipe: what to make.
        name: of the checkpoint.
        visitor: whose it will be.
        embeddings: pretrained matrices (token, d_model) that it begins with.

    Raises:
        OptionError: training is closed here, too many are running or kept, the name is taken, or there is no room for it.
        ConfigError: the recipe cannot work, or not on this machine.
    """
    check_open()
    if not is_name(name):
        raise OptionError(f"{name!r} is no name for a checkpoint: letters, figures, dot, dash and underscore, 1 to 100 of them")
    needed = estimate.estimate(recipe)
    estimate.check_parameters(needed)
    estimate.check_memory(needed)
    with one_at_a_time() as folder:
        known = jobs()
        if (trained_folder() / name).exists() or any(job.name == name for job in known):
            raise OptionError(f"There is a checkpoint {name} already. Choose another name.")
        kept = len(known) + len(list(trash_folder().glob("*")))
        if kept >= MOST_JOBS:
            raise OptionError(f"{kept} trainings are kept here, with the trash, and no more can be. Remove one for good first.")
        _check_free(known)
        _check_room(estimate.folder_bytes(needed, recipe, SNAPSHOTS) + sum(matrix.nbytes for matrix in embeddings.values()))
        job = Job(name, folder / name, recipe, time.time(), visitor.mark)
        for side, matrix in embeddings.items():
            np.save(_file(job.place, f"{side}.npy"), matrix.numpy())
        about = JobDescription(recipe=recipe, started=job.started, mark=job.mark)
        write_text(json.dumps(to_plain(about)), _file(job.place, "json"))
        _launch(job)
    return job


def go_on(job: Job, visitor: Visitor) -> None:
    """Resumes a paused training, or one whose process was killed.

    Raises:
        OptionError: training is closed here, this one is somebody else's, another is running, or there is no room for it.
    """
    check_open()
    job.check(visitor)
    needed = estimate.folder_bytes(estimate.estimate(job.recipe), job.recipe, SNAPSHOTS)
    with one_at_a_time():
        _check_free(jobs())
        _check_room(needed - _bytes_in(job.folder))
        _launch(job)


def check_open() -> None:
    """Raises an OptionError where whoever runs the server wants no trainings."""
    if not serving.trains():
        raise OptionError(
            "Training is closed on this server: whoever runs it has started it with --no-training. On a machine of your own "
            "this page trains, and so does the command train."
        )


@contextmanager
def one_at_a_time() -> Generator[Path]:
    """The folder of the jobs, in which nobody else starts one meanwhile: two could find that there is room for one."""
    folder = trained_folder() / ".jobs"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # what people typed and the marks of their browsers are not for other users of the machine
    with locks.held(folder / ".starting", wait=True):
        yield folder


def _check_room(more: int) -> None:
    """Raises an OptionError where so many more bytes would be too many."""
    most, used = serving.limits().trained_bytes, _bytes_in(trained_folder())
    if used + more > most:
        raise OptionError(
            f"Trainings may take {bytes_words(most)} here; there are {bytes_words(used)}, and this one would write up to "
            f"{bytes_words(more)} more. Remove one for good, or take a smaller model. Whoever runs the server sets the limit "
            "with --max-trained-bytes."
        )


def _bytes_in(folder: Path) -> int:
    """Of all files in a folder and in those inside it; links are not followed."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += (Path(place) / name).lstat().st_size
    return found


def jobs(folder: Path | None = None) -> list[Job]:
    """All jobs of a folder, `trained` by default, the newest first; what is damaged is left out."""
    found = []
    for path in ((folder or trained_folder()) / ".jobs").glob("*.json"):
        name = path.name.removesuffix(".json")
        with suppress(OSError, TransformerVizError):
            about = read_value(JobDescription, reading.json_of(path, LARGEST_CONFIG))
            if is_name(name):
                found.append(Job(name, path.with_name(name), about.recipe, about.started, about.mark))
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

    def wish(self) -> ControlSignal:
        """What the page wishes; to stop, once the time is over."""
        said = _read(_file(self.place, "wish"))
        if said == "pause":
            return "pause"
        return "stop" if said == "stop" or time.monotonic() > self.ends_at else "go on"


def _check_free(known: list[Job]) -> None:
    running = [job.name for job in known if job.state in AT_WORK]
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


def trash_folder() -> Path:
    """Where discarded trainings are (`trash.py`); beside the others, so that to move one is to rename it."""
    return trained_folder() / ".trash"


def files(job: Job) -> list[Path]:
    """The job's files that are there, without its checkpoint; the one that makes it a job is the last."""
    return [file for kind in reversed(_KINDS) if (file := _file(job.place, kind)).exists()]


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
