"""The app while the machine has other work: one endless loop for every core beside it."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report

TITLE = "a busy machine: an endless loop a core beside the app"
TRIES = 20
TARGETS = {}


def measure(report: Report) -> None:
    """Enter and a new browser, beside a bare page under the same load."""
    with browser.browser() as running, served.server() as ours, browser.bare() as bare:
        app, plain = browser.opened(running, ours.url), browser.opened_plain(running, bare.url)
        with busy():
            entered, drawn = [], []
            for number in range(TRIES):
                text = browser.letters(12 + number % 9, number)
                entered.append(browser.enter(app, text)["everything"])
                drawn.append(browser.enter_plain(plain, text))
            steps = [browser.step(app, number) for number in range(TRIES)]
        reference = Number.of(browser.PLAIN_NAME, drawn)
        for what, times in (("Enter until everything is drawn", entered), ("one step", steps)):
            report.add(Line(f"{what}, busy", Number.of("ours", times), reference, "ms", TRIES))


@contextmanager
def busy() -> Generator[None]:
    """One process a core that computes without end."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
