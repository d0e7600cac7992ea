"""What every hostile file is held to: it ends in a sentence or well, soon, in little memory, and names nothing unasked."""

import contextlib
import io
import time
from collections.abc import Generator
from pathlib import Path

from tests.memory import forget_peak, peak
from transformer_viz.commands import main

MOST_SECONDS, MOST_BYTES = 2.0, 500 * 10**6
"""Of the processor, for one thing that is done with a file; and of memory, above what the process had before."""
MOST_SAID = 2000


class Watch:
    """Holds each file to the limits, and counts what became of them.

    Args:
        secret: a folder whose name nobody gives; no message may say it.
        budget: whether seconds and bytes count, which is for a process of its own.
    """

    def __init__(self, secret: Path, *, budget: bool) -> None:
        self.secret, self.budget = str(secret), budget
        self.name = ""
        self.outcomes: dict[str, int] = {}

    @contextlib.contextmanager
    def use(self, what: str) -> Generator[None]:
        """Around one thing that is done with a file, by a command or a page. Whatever is raised gets the file's name."""
        before, began = forget_peak() if self.budget else 0, time.process_time()
        try:
            yield
        except BaseException as error:
            error.add_note(f"{what}: {self.name}")
            raise
        if self.budget:
            took, grown = time.process_time() - began, peak() - before
            assert took < MOST_SECONDS, f"{what}: {self.name}: {took:.1f} seconds"
            assert grown < MOST_BYTES, f"{what}: {self.name}: {grown / 1e6:.0f} MB"

    def count(self, outcome: str) -> None:
        """One more of these."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def check_said(self, words: str) -> None:
        """One readable sentence."""
        assert words.strip(), "nothing is said"
        assert len(words) < MOST_SAID, f"{len(words)} characters: {words[:300]}"
        for sign in ("\n", self.secret, "Traceback", "fault of this program", " object at 0x", "/dev/fd", "/proc/"):
            assert sign not in words, f"{sign!r} in {words}"

    def command(self, *arguments: str, codes: tuple[int, ...] = (0, 2)) -> tuple[int, str]:
        """Runs the command line here; its exit code and what it printed."""
        out, err = io.StringIO(), io.StringIO()
        with self.use(arguments[0]), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
        assert code in codes, f"{arguments}: exit {code}: {err.getvalue()[-1500:]}"
        if code == 2:
            line = err.getvalue().removesuffix("\n")
            assert line.startswith("transformer_viz: ") and line.isprintable(), line
            self.check_said(line)
        else:
            assert err.getvalue() == "", err.getvalue()[:1000]
        self.count(f"{arguments[0]} {code}")
        return code, out.getvalue()
