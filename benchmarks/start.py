"""The beginning: the command's help, a new browser on a warm server, and what that fetches.

Times of a visit count from the beginning of the navigation. A new context has nothing cached: the page's scripts are fetched
again every time.
"""

import subprocess
import sys
import time

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "the help, and a new browser"
HELPS, VISITS = 5, 20
TARGETS = {
    "help": Target("--help", "at most", 0.5, "s"),
    "picture": Target("a new browser's first picture: times a bare Streamlit page with one heatmap", "at most", 1.4, "×"),
}


def measure(report: Report) -> None:
    """A visit to each server warms it up."""
    helps, pythons = (
        Number.of(name, [_seconds(*command) for _ in range(HELPS)])
        for name, command in (("ours", ("-m", "transformer_viz", "--help")), ("an empty program", ("-c", "")))
    )
    report.values["help"] = report.add(Line("--help", helps, pythons, "s", HELPS)).ours.value
    with browser.browser() as running, served.server() as server, browser.bare() as bare:
        # All that a new browser fetches, plotly.js too, which comes after the first picture.
        fetched = browser.bytes_of_visit(running, server.url, "bench.focusRun() !== null && Boolean(window.Plotly)")
        its = browser.bytes_of_visit(running, bare.url, "bench.plainRun() !== null")
        visits, plain = [], []
        for _ in range(VISITS + 1):
            visits.append(browser.visit(running, server.url, "bench.focusRun() !== null"))
            plain.append(browser.visit(running, bare.url, "bench.plainRun() !== null"))
    for way, ours, others in zip(("as sent", "unpacked"), fetched, its, strict=True):
        sizes = Number("ours", ours / 1e6), Number(browser.PLAIN_NAME, others / 1e6)
        report.add(Line(f"bytes of a first visit, {way}", *sizes, "MB", 1))
    numbers = Number.of("ours", visits[1:]), Number.of(browser.PLAIN_NAME, plain[1:])
    line = report.add(Line("a new browser, warm server, until its first picture is drawn", *numbers, "ms", VISITS))
    report.values["picture"] = 1 / line.ratio


def _seconds(*command: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, cwd=served.ROOT)
    return time.perf_counter() - started
