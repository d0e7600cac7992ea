"""Discarded trainings: kept for a day, from where they can be put back.

The trash is the folder `trained/.trash`. Each discarded training has a folder there, named by the nanosecond in which it came,
with the job and its checkpoint as they lay in `trained`. The trash counts towards the limits on number and bytes of trainings,
so that nobody can fill a disk by discarding.
"""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from transformer_viz import app_folders, locks
from transformer_viz.errors import OptionError
from transformer_viz.training.saved_state import lock_of
from transformer_viz.views.server import jobs
from transformer_viz.views.server.jobs import Job, Visitor

SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Discarded:
    """A training in the trash."""

    folder: Path
    job: Job

    @property
    def since(self) -> float:
        """Seconds since 1970."""
        return int(self.folder.name[:30]) / 1e9

    @property
    def seconds_left(self) -> float:
        """Until it is removed for good."""
        return self.since + SECONDS - time.time()

    def put_back(self, visitor: Visitor) -> None:
        """Makes it a training like the others again.

        Raises:
            OptionError: it is somebody else's, or its name has been taken since.
        """
        self.job.check_visitor(visitor)
        with jobs.one_at_a_time():
            if (app_folders.trained() / self.job.name).exists() or any(job.name == self.job.name for job in jobs.jobs()):
                raise OptionError(f"There is another checkpoint {self.job.name} now. Discard that one, then put this one back.")
            _move(self.job, app_folders.trained())
            shutil.rmtree(self.folder, ignore_errors=True)

    def remove(self, visitor: Visitor) -> None:
        """Removes it for good.

        Raises:
            OptionError: it is somebody else's.
        """
        self.job.check_visitor(visitor)
        with jobs.one_at_a_time():
            shutil.rmtree(self.folder, ignore_errors=True)


def discard(job: Job, visitor: Visitor) -> None:
    """Puts a training into the trash.

    Raises:
        OptionError: it is somebody else's, or still running.
    """
    job.check_visitor(visitor)
    with jobs.one_at_a_time():
        if job.state in jobs.AT_WORK or locks.is_locked(lock_of(job.checkpoint)):
            raise OptionError(f"{job.name} is being trained. Stop it first.")
        folder = jobs.trash_folder() / str(time.time_ns())
        (folder / ".jobs").mkdir(0o700, parents=True)
        _move(job, folder)


def discarded() -> list[Discarded]:
    """Lists what is in the trash, the newest first. What has been there for a day is removed."""
    folders = [folder for folder in jobs.trash_folder().glob("*") if folder.name.isdecimal() and folder.name.isascii()]
    entries = [Discarded(folder, job) for folder in folders for job in jobs.jobs(folder)]
    for entry in entries:
        if entry.seconds_left <= 0:
            shutil.rmtree(entry.folder, ignore_errors=True)
    return sorted((entry for entry in entries if entry.seconds_left > 0), key=lambda entry: -entry.since)


def _move(job: Job, to: Path) -> None:
    """The checkpoint, and then the folder that makes it a job."""
    if job.checkpoint.exists():
        job.checkpoint.rename(to / job.name)
    job.folder.rename(to / ".jobs" / job.name)
