"""Processes of this machine: each loads the model once, and is given the next unit when it has done its last one.

They are spawned, so that none inherits threads or locks. One that is killed costs its unit only, which is tried again by a new
one. They end with this process, however it ends.
"""

import os
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait

from transformer_viz.errors import SurveyError, TransformerVizError
from transformer_viz.surveying.work import MOST_TRIES, Job, Unit, Worker, lost

_CONTEXT = get_context("spawn")


def run(n_workers: int, job: Job, units: Iterator[Unit]) -> Generator[tuple[Unit, bytes]]:
    """An engine of so many processes; see `work.Engine`.

    Raises:
        SurveyError: a unit cannot be run, or its process was ended again and again.
    """
    n_ended: Counter[Unit] = Counter()
    processes: list[_Process] = []
    try:
        for unit in islice(units, n_workers):
            processes.append(_Process(job, unit))
        while processes:
            for process in _ready(processes):
                unit, found = process.unit, process.found()
                if found is None:
                    n_ended[unit] += 1
                    if n_ended[unit] == MOST_TRIES:
                        raise lost(unit, process.how_it_ended())
                    process.start()
                    continue
                if (following := next(units, None)) is None:
                    processes.remove(process)
                    process.end()
                else:
                    process.give(following)
                yield unit, found
    finally:
        for process in processes:
            process.end()


def _ready(processes: "list[_Process]") -> "list[_Process]":
    """Those that have something to say, or have ended."""
    said = wait([process.connection for process in processes])
    return [process for process in processes if process.connection in said]


class _Process:
    """A worker in a process of its own, and the unit that it has in hand."""

    def __init__(self, job: Job, unit: Unit) -> None:
        self._job, self.unit = job, unit
        self.start()

    def start(self) -> None:
        """A new process, with the same unit."""
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, self._job), daemon=True)
        with _deaf_to_interrupts():
            self._process.start()
        theirs.close()
        self.give(self.unit)

    def give(self, unit: Unit) -> None:
        """The next unit."""
        self.unit = unit
        with suppress(BrokenPipeError):  # it was killed, which is seen when it is asked
            self.connection.send(unit)

    def found(self) -> bytes | None:
        """What it leaves; None where the process has ended.

        Raises:
            SurveyError: what went wrong there.
        """
        try:
            found = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        if isinstance(found, bytes):
            return found
        raise found

    def how_it_ended(self) -> str:
        """For people."""
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """At once: it has nothing to clean up."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection, job: Job) -> None:
    """What the process does until nobody asks any more."""
    # A Ctrl-C in a terminal reaches all processes; the one that reads and writes decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        worker = Worker.loaded(job)
        while True:
            connection.send(worker.run(connection.recv()))
    except (EOFError, BrokenPipeError):
        return
    except TransformerVizError as error:
        connection.send(SurveyError(str(error)))
    except Exception:
        connection.send(RuntimeError(traceback.format_exc()))


def _end_with_parent() -> None:
    """Also where that was killed while a unit runs, which may take minutes."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _deaf_to_interrupts() -> Generator[None]:
    """What is started here ignores Ctrl-C from its first moment, when it cannot say so itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
