"""Discarded trainings: kept for a day, from where they can be put back.

The trash is the folder `trained/.trash`, in which each has a folder of its own, called by the nanosecond in which it came, with
the job's files and the checkpoint as they lie in `trained`. It counts among what trainings may take, in number and bytes:
nobody fills a disk by discarding.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer_viz import locks
from transformer_viz.errors import OptionError
from transformer_viz.training import jobs
from transformer_viz.training.in_progress import lock_of
from transformer_viz.training.jobs import Job
from transformer_viz.training.visitor import Visitor

SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Discarded:
    """A training in the trash."""

    job: Job
    since: float
    """Seconds since 1970."""

    @property
    def seconds_left(self) -> float:
        """Until it is removed for good."""
        return self.since + SECONDS - time.time()

    @property
    def _folder(self) -> Path:
        return self.job.place.parent.parent

    def put_back(self, visitor: Visitor) -> None:
        """Makes it a training like the others again.

        Raises:
            OptionError: it is somebody else's, or its name has been taken since.
        """
        self.job.check(visitor)
        with jobs.one_at_a_time():
            if (jobs.trained_folder() / self.job.name).exists() or any(job.name == self.job.name for job in jobs.jobs()):
                raise OptionError(f"There is another checkpoint {self.job.name} now. Discard that one, then put this one back.")
            _move(self.job, jobs.trained_folder())
            self._remove()

    def remove(self, visitor: Visitor) -> None:
        """Removes it for good.

        Raises:
            OptionError: it is somebody else's.
        """
        self.job.check(visitor)
        with jobs.one_at_a_time():
            self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def discard(job: Job, visitor: Visitor) -> None:
    """Puts a training into the trash.

    Raises:
        OptionError: it is somebody else's, or still running.
    """
    job.check(visitor)
    with jobs.one_at_a_time():
        if job.state in jobs.AT_WORK or locks.is_held(lock_of(job.folder)):
            raise OptionError(f"{job.name} is being trained. Stop it first.")
        now = time.time_ns()
        (jobs.trash_folder() / str(now) / ".jobs").mkdir(0o700, parents=True)
        _move(job, jobs.trash_folder() / str(now))


def discarded() -> list[Discarded]:
    """What is in the trash, the newest first. What has been there for a day is removed."""
    found = sorted(_found(), key=lambda entry: -entry.since)
    if any(entry.seconds_left <= 0 for entry in found):
        with jobs.one_at_a_time():
            for entry in found:
                if entry.seconds_left <= 0:
                    entry._remove()
    return [entry for entry in found if entry.seconds_left > 0]


def _found() -> Iterator[Discarded]:
    for folder in jobs.trash_folder().glob("*"):
        if folder.name.isdecimal() and folder.name.isascii():
            yield from (Discarded(job, int(folder.name[:30]) / 1e9) for job in jobs.jobs(folder))


def _move(job: Job, to: Path) -> None:
    """The checkpoint and the job's files; the one that makes it a job comes last."""
    if job.folder.exists():
        job.folder.rename(to / job.name)
    for file in jobs.files(job):
        file.rename(to / ".jobs" / file.name)
