"""The beginning: the command's help, and a new browser on a warm server.

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
    "picture": Target("a new browser's first picture: times a bare Streamlit page with one heatmap", "at most", 1.6, "×"),
}
_MARKS = "{ text: () => bench.shows('reversethis'), picture: () => bench.focusRun() !== null }"
_PLAIN = "{ drawn: () => bench.plainRun() !== null }"


def measure(report: Report) -> None:
    """A visit to each server warms it up."""
    helps, pythons = (
        Number.of(name, [_seconds(*command) for _ in range(HELPS)])
        for name, command in (("ours", ("-m", "transformer_viz", "--help")), ("an empty program", ("-c", "")))
    )
    report.values["help"] = report.add(Line("--help", helps, pythons, "s", HELPS)).ours.value
    with browser.browser() as running, served.server() as server, browser.bare() as bare:
        visits, plain = [], []
        for _ in range(VISITS + 1):
            visits.append(browser.visit(running, server.url, _MARKS))
            plain.append(browser.visit(running, bare.url, _PLAIN)["drawn"])
    for mark, words in (("text", "its text is read"), ("picture", "its first picture is drawn")):
        numbers = Number.of("ours", [visit[mark] for visit in visits[1:]]), Number.of(browser.PLAIN_NAME, plain[1:])
        line = report.add(Line(f"a new browser, warm server, until {words}", *numbers, "ms", VISITS))
    report.values["picture"] = line.ours.value / line.other.value


def _seconds(*command: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, cwd=served.ROOT)
    return time.perf_counter() - started
