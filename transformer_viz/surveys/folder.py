"""The folder of a survey in progress: a file for each finished block, so that a survey can be resumed.

A folder belongs to one survey, which `survey.json` names. Other files in it are left alone; a block's file that is damaged, or
was made from other lines, is computed again.
"""

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from transformer_viz import locks, untrusted_files
from transformer_viz.atomic_files import PARTIAL, write_bytes
from transformer_viz.errors import FileError, OptionError, SurveyError, join_names

IDENTITY = "survey.json"
PARTS = ("blocks", "verdicts")
_LOCK = ".lock"
_LARGEST_IDENTITY = 2**16


class Folder:
    """A survey's folder; `opened_folder` gives one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Makes it the folder of one survey.

        Args:
            identity: what decides its numbers, by the names that people know, as plain data.

        Raises:
            OptionError: it is the folder of another survey, or of something else.
            SurveyError: nothing can be written there.
        """
        try:
            begun = untrusted_files.read_json(self.path / IDENTITY, _LARGEST_IDENTITY)
        except FileNotFoundError:
            if others := [path.name for path in untrusted_files.list_folder(self.path) if path.name != _LOCK]:
                raise OptionError(
                    f"{self.path} is in use for {others[0][:40]!r}; give an empty folder, or a new one."
                ) from None
            self.write(IDENTITY, json.dumps(identity, indent=1) + "\n")
            begun = identity
        except FileError as error:
            raise OptionError(f"{self.path / IDENTITY} is not read: {error}. Give another folder.") from error
        begun = begun if isinstance(begun, Mapping) else {}
        if different := [name for name in {**identity, **begun} if identity.get(name) != begun.get(name)]:
            raise OptionError(
                f"{self.path} holds a survey that was begun with another {join_names(different)}. "
                "Give the same again to go on, or another folder."
            )
        for folder in (self.path / name for name in PARTS):
            if folder.is_symlink():
                raise OptionError(
                    f"{folder} is a link; a survey writes into folders of its own. Take it away, or give another folder."
                )
            with _disk_errors(self.path):
                folder.mkdir(exist_ok=True)
            for left in folder.glob(f".*{PARTIAL}"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)

    def write(self, name: str, content: str | bytes) -> None:
        """A file in it, whole or not at all.

        Raises:
            SurveyError: the disk is full, or takes nothing.
        """
        with _disk_errors(self.path):
            write_bytes(content.encode() if isinstance(content, str) else content, self.path / name)


@contextmanager
def opened_folder(path: Path) -> Generator[Folder]:
    """A survey's folder, which is made, and in which nobody else writes meanwhile.

    Raises:
        OptionError: something else has the name, or another survey writes there.
        SurveyError: nothing can be written there.
    """
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise OptionError(f"{path} is no folder. Give another name.")
    with ExitStack() as stack:
        try:
            with _disk_errors(path):
                path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locks.hold_lock(path / _LOCK, removes=True))
        except locks.LockHeld:
            raise OptionError(f"Another survey is writing to {path}. Wait until it ends, or give another folder.") from None
        yield Folder(path)


@contextmanager
def _disk_errors(path: Path) -> Generator[None]:
    """Turns an error of a full or read-only disk into a SurveyError that says what it means for the survey."""
    try:
        yield
    except OSError as error:
        raise SurveyError(
            f"{path} cannot be written: {error.filename or 'a file'}: {error.strerror or error}. What is done is kept: make "
            "room, or let it be written to, and the same survey goes on."
        ) from error
