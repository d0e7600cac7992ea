"""Trainings that are started from a page. Each is a process of its own: it survives a reload, and can be paused and stopped.

A job is a folder `trained/.jobs/NAME`, beside which its checkpoint grows in `trained/NAME`:

| file                         | what is in it                                                                            |
|------------------------------|------------------------------------------------------------------------------------------|
| `job.json`                   | the recipe, when it was started, and whose it is                                         |
| `state`                      | one word, `State`; what it says of a process that works holds while `lock` is held       |
| `lock`                       | locked from before the process begins until it ends, however it does                     |
| `request`                    | `pause` or `stop`, from a page                                                           |
| `events`                     | a line of JSON for each event                                                            |
| `log`                        | what the process printed                                                                 |

Nothing is kept in the server's memory, so a new server finds its old jobs.

A job belongs to the browser that started it. Everybody may watch it; who may do more is checked here, whatever a page shows.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from transformer_viz import app_folders, locks, server_settings, untrusted_files
from transformer_viz.atomic_files import write_text
from transformer_viz.checkpoints import LARGEST_CONFIG, is_name
from transformer_viz.errors import ConfigError, OptionError, TransformerVizError
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.schema import read_value, to_plain
from transformer_viz.training import estimate
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.reporter import JobEvent, Request, State, read_text, read_word
from transformer_viz.training.result import Row
from transformer_viz.training.saved_state import snapshot_steps

MOST_RUNNING = 1
MOST_JOBS = 30
"""Folders that a page's visitors can fill; their bytes are `server_settings.Limits.trained_bytes`."""
MOST_PARAMETERS = 60_000_000
"""The most parameters of a model that is trained from a page."""
MOST_SECONDS = 30 * 60
SNAPSHOTS = 24
SAMPLES = 2_000
AT_WORK = ("running", "starting")
_LONGEST_LOG = 2_000
_MOST_EVENTS = 20_000
WORDS_BYTES = 4 * 2**20
"""Bytes that a training writes besides tensors: names of tensors, the history, the events."""


@dataclass(frozen=True)
class Visitor:
    """A browser that wants to change a training, known by a secret cookie, or the owner of the server.

    Attributes:
        token: the secret that this browser keeps. It is never shown or written anywhere.
        is_owner: whether it is that of whoever runs the server, who may do everything.
    """

    token: str = field(repr=False)
    is_owner: bool = False

    @property
    def mark(self) -> str:
        """The SHA-256 of the token, which is what gets stored; the 256 random bits cannot be computed from it."""
        return hashlib.sha256(self.token.encode()).hexdigest()

    def may_manage(self, mark: str | None) -> bool:
        """Tells whether this visitor is the browser with this mark, or the owner. A training without a mark is the owner's."""
        return self.is_owner or mark == self.mark


OWNER = Visitor("", is_owner=True)
"""The visitor who runs the program itself."""


@dataclass(frozen=True, kw_only=True)
class JobDescription:
    """The contents of `job.json`."""

    recipe: Recipe
    started: float
    """Seconds since 1970."""
    mark: str | None = None
    """That of the browser that started it (`Visitor.mark`); None = only the owner of the server may manage it."""


@dataclass(frozen=True, kw_only=True)
class Job(JobDescription):
    """A training that a page started."""

    folder: Path
    """The folder of the job's own files."""

    @property
    def name(self) -> str:
        """The name of the job and of its checkpoint."""
        return self.folder.name

    @property
    def checkpoint(self) -> Path:
        """The folder in which the checkpoint grows."""
        return self.folder.parent.parent / self.name

    @property
    def state(self) -> State:
        """The state that the files say now."""
        # First the lock: the process writes its last word before it lets go.
        is_held = locks.is_locked(self.folder / "lock")
        word = read_word(State, self.folder / "state")
        is_true = is_held if word in AT_WORK else word != "finished" or (self.checkpoint / "config.json").exists()
        return word if word and is_true else "failed"

    def events(self) -> list[Row]:
        """The events so far, as rows. A training that was killed goes on from before its last events: they did not happen."""
        events: list[JobEvent] = []
        for line in read_text(self.folder / "events").splitlines():
            with suppress(TransformerVizError):  # the last line may be half-written
                event = read_value(JobEvent, untrusted_files.parse_json(line))
                while events and events[-1].step >= event.step:
                    events.pop()
                events.append(event)
        return [event.row() for event in events[-_MOST_EVENTS:]]

    def log(self) -> str:
        """The end of what the process printed."""
        return read_text(self.folder / "log")[-_LONGEST_LOG:].strip()

    def request(self, request: Request, visitor: Visitor) -> None:
        """Tells the process, which looks after every step.

        Raises:
            OptionError: the training is somebody else's.
        """
        self.check_visitor(visitor)
        write_text(request, self.folder / "request")

    @property
    def requested(self) -> Request | None:
        """The request that the process was told and has not met yet."""
        return read_word(Request, self.folder / "request") if self.state in AT_WORK else None

    def check_visitor(self, visitor: Visitor) -> None:
        """Raises an OptionError where the training is somebody else's."""
        if not visitor.may_manage(self.mark):
            raise OptionError(
                f"{self.name} was started in another browser. Only from there, and by the owner of this server, can it be "
                "paused, stopped, resumed or discarded."
            )


def start(recipe: Recipe, name: str, visitor: Visitor) -> Job:
    """Starts a training in a process of its own.

    Args:
        recipe: what to make.
        name: of the checkpoint.
        visitor: whose it will be.

    Raises:
        OptionError: training is closed here, too many are running or kept, the name is taken, or there is no room for it.
        ConfigError: the recipe cannot work, or not on this machine.
    """
    check_open()
    if not is_name(name):
        raise OptionError(f"{name!r} cannot be a checkpoint's name; use 1 to 100 letters, digits, dots, dashes and underscores")
    needed = estimate.estimate(recipe)
    if needed.parameters > MOST_PARAMETERS:
        raise ConfigError(
            f"this model has {needed.parameters:,} parameters; from the page at most {MOST_PARAMETERS:,} can be trained. "
            "Take smaller widths or fewer layers, or train it from the command line"
        )
    estimate.check_memory(needed)
    with one_at_a_time() as folder:
        known = jobs()
        if (app_folders.trained() / name).exists() or any(job.name == name for job in known):
            raise OptionError(f"There is a checkpoint {name} already. Choose another name.")
        count = len(known) + len(list(trash_folder().glob("*")))
        if count >= MOST_JOBS:
            raise OptionError(
                f"{count} trainings are kept here, the trash included; that is the most. Remove one for good first."
            )
        _check_room(known, folder_bytes(needed, recipe))
        about = JobDescription(recipe=recipe, started=time.time(), mark=visitor.mark)
        job = Job(folder=folder / name, **vars(about))
        shutil.rmtree(job.folder, ignore_errors=True)  # of a damaged job, which is not among them
        job.folder.mkdir()
        write_text(json.dumps(to_plain(about)), job.folder / "job.json")
        _launch(job)
    return job


def resume(job: Job, visitor: Visitor) -> None:
    """Resumes a paused training, or one whose process was killed.

    Raises:
        OptionError: training is closed here, this one is somebody else's, another is running, or there is no room for it.
    """
    check_open()
    job.check_visitor(visitor)
    needed = folder_bytes(estimate.estimate(job.recipe), job.recipe)
    with one_at_a_time():
        _check_room(jobs(), needed - bytes_in(job.checkpoint))
        _launch(job)


def check_open() -> None:
    """Raises an OptionError where the server was started with --no-training, and on Windows."""
    if not server_settings.CAN_PASS_LOCKS_ON:
        raise OptionError("On Windows this page cannot train. The command can: python -m transformer_viz train --help")
    if not server_settings.trains():
        raise OptionError(
            "Training is closed on this server: whoever runs it has started it with --no-training. On a machine of your own "
            "this page trains, and so does the command train."
        )


@contextmanager
def one_at_a_time() -> Generator[Path]:
    """The folder of the jobs, locked: otherwise two people could start a training when there is room for one."""
    folder = app_folders.trained() / ".jobs"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # what people typed and the marks of their browsers are not for other users of the machine
    with locks.hold_lock(folder / ".starting", wait=True):
        yield folder


def jobs(folder: Path | None = None) -> list[Job]:
    """Lists the jobs of a folder, `trained` by default, the newest first; what is damaged is left out."""
    known = []
    for path in ((folder or app_folders.trained()) / ".jobs").glob("*/job.json"):
        with suppress(OSError, TransformerVizError):
            about = read_value(JobDescription, untrusted_files.read_json(path, LARGEST_CONFIG))
            if is_name(path.parent.name):
                known.append(Job(folder=path.parent, **vars(about)))
    return sorted(known, key=lambda job: -job.started)


def trash_folder() -> Path:
    """The folder of discarded trainings (`trash.py`); on the same disk as the others, so that a rename moves them."""
    return app_folders.trained() / ".trash"


def folder_bytes(needed: estimate.Estimate, recipe: Recipe) -> int:
    """The most bytes that a training's folder has at any moment: the model, the state, the snapshots in half precision, and
    once more the largest of them, since a file is made beside the one that it replaces."""
    model = estimate.BYTES * needed.parameters
    state = (estimate.COPIES[recipe.optimizer] - 1) * model
    return model + 2 * state + len(snapshot_steps(recipe, SNAPSHOTS)) * model // 2 + WORDS_BYTES


def bytes_in(folder: Path) -> int:
    """Counts the bytes of all files in a folder and in those inside it; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


def _check_room(known: Sequence[Job], more: int) -> None:
    """Raises an OptionError where one of the jobs runs already, or where so many more bytes would be too many."""
    running = [job.name for job in known if job.state in AT_WORK]
    if len(running) >= MOST_RUNNING:
        raise OptionError(f"{running[0]} is being trained; one training can run at a time. Wait, pause it or stop it.")
    most, used = server_settings.limits().trained_bytes, bytes_in(app_folders.trained())
    if used + more > most:
        raise OptionError(
            f"Trainings may take {bytes_words(most)} here; there are {bytes_words(used)}, and this one would write up to "
            f"{bytes_words(more)} more. Remove one for good, or take a smaller model. Whoever runs the server sets the limit "
            "with --max-trained-bytes."
        )


def _launch(job: Job) -> None:
    # The lock too: the process that wrote "paused" may be ending still, with the old file's lock in its hand.
    for name in ("request", "lock"):
        (job.folder / name).unlink(missing_ok=True)
    command = [sys.executable, "-m", "transformer_viz", "train", "--recipe-file", str(job.folder / "job.json")]
    command += ["-o", str(job.checkpoint), "--resume", "--snapshots", str(SNAPSHOTS), "--samples", str(SAMPLES)]
    command += ["--job", str(job.folder), "--job-seconds", str(MOST_SECONDS)]
    # Half of the cores at most: the page must stay quick.
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    # The child inherits the lock: it is held from before its first moment until it ends.
    with (job.folder / "log").open("wb") as log, locks.hold_lock(job.folder / "lock") as lock:
        write_text("starting", job.folder / "state")
        subprocess.Popen(
            command,
            pass_fds=[lock.fileno()],
            cwd=app_folders.ROOT,
            env={**os.environ, "OMP_NUM_THREADS": threads},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
