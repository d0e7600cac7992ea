"""File locks that the operating system releases when the last process that holds them ends, even when it is killed (flock).

Writing the process's number into a file would not do, since another process may get that number later.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError

_LARGEST = 2**20


class LockHeld(Exception):
    """Somebody else has the lock."""


@contextmanager
def hold_lock(path: Path, *, wait: bool = False, removes: bool = False) -> Generator[IO[str]]:
    """Holds the lock of a file, which is made; gives the open file, with which a child inherits the lock.

    Where the system has no flock (Windows) nothing is locked.

    Args:
        path: the file. It may be removed while it is held; who comes later then locks a new one.
        wait: until it is free, instead of raising.
        removes: the file in the end.

    Raises:
        LockHeld: another process, or another part of this one, has it.
    """
    while True:
        # Without waiting for whoever might be at the other end of a pipe of this name.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666), "w")
        if not _flock(file, "LOCK_EX", wait):
            file.close()
            raise LockHeld
        # Whoever held it may have removed it since it was opened: what is locked then has no name any more.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        file.close()
    with file:
        try:
            yield file
        finally:
            if removes:
                # Windows removes no open file: there it stays.
                with suppress(PermissionError):
                    path.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Tells whether somebody has the lock now."""
    try:
        with untrusted_files.open_file(path, _LARGEST) as file:
            return not _flock(file, "LOCK_SH", wait=False)
    except (FileNotFoundError, FileError):
        return False


def _flock(file: IO[Any], kind: str, wait: bool) -> bool:
    try:
        import fcntl
    except ModuleNotFoundError:
        return True
    try:
        fcntl.flock(file, getattr(fcntl, kind) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
