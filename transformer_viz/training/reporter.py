"""The training process's side of a job: it writes its state and its events into a folder, and reads requests from there.

The program that started the training, as the page Train does, reads and writes the same files: `state` and `request` hold one
word, `events` a line of JSON for each event.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformer_viz import untrusted_files
from transformer_viz.atomic_files import write_text
from transformer_viz.errors import TransformerVizError
from transformer_viz.schema import read_value, to_plain
from transformer_viz.training.make_checkpoint import ControlSignal
from transformer_viz.training.result import Event
from transformer_viz.training.saved_state import STATE

State = Literal["starting", "running", "paused", "finished", "failed"]
Request = Literal["pause", "stop"]
_LARGEST = 64 * 2**20
"""Bytes of a job's events, or of its log."""


@dataclass(frozen=True, kw_only=True)
class JobEvent(Event):
    """A line of a job's events."""

    at: float
    """When, in seconds since 1970."""


class Reporter:
    """Reports a training to the folder of its job.

    Args:
        folder: the folder.
        most_seconds: after which the training stops and keeps what it has learned; None = no limit.
    """

    def __init__(self, folder: Path, most_seconds: int | None = None) -> None:
        self.folder = folder
        self._ends_at = None if most_seconds is None else time.monotonic() + most_seconds

    @contextmanager
    def running(self, checkpoint: Path) -> Generator[None]:
        """Writes the state: `running`, and at the end how it ended, which the checkpoint's folder tells."""
        write_text("running", self.folder / "state")
        try:
            yield
        except BaseException:
            write_text("failed", self.folder / "state")
            raise
        write_text("paused" if (checkpoint / STATE).exists() else "finished", self.folder / "state")

    def report(self, event: Event) -> None:
        """Appends a line to the events."""
        with (self.folder / "events").open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_plain(JobEvent(**vars(event), at=round(time.time(), 2)))) + "\n")

    def control(self) -> ControlSignal:
        """The request, if there is one; to stop, once the time is over."""
        word = read_word(Request, self.folder / "request")
        if word == "pause":
            return "pause"
        is_late = self._ends_at is not None and time.monotonic() > self._ends_at
        return "stop" if word == "stop" or is_late else "go on"


def read_text(path: Path) -> str:
    """Reads a file of a job; empty where there is none, or something that no job has written."""
    try:
        return untrusted_files.read_bytes(path, _LARGEST).decode("utf-8", errors="replace")
    except (OSError, TransformerVizError):
        return ""


def read_word(kind: Any, path: Path) -> Any:
    """Reads the word in a file of a job; None where it is none of the kind."""
    with suppress(TransformerVizError):
        return read_value(kind, read_text(path))
    return None
