"""The beginning: a server that starts, its first visitor, and a new browser on a warm server.

Times of a visit count from the beginning of the navigation. A new context has nothing cached: the page's scripts are fetched
again every time.
"""

from playwright.sync_api import Browser

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "cold start, and a new browser"
STARTS, VISITS = 3, 30
TARGETS = {
    "text": Target("a new browser on a warm server reads its text, median", "at most", 1200, "ms"),
    "picture": Target("a new browser on a warm server sees its first picture, median", "at most", 2300, "ms"),
    "text multiple": Target("… its text, against a bare page drawn", "at most", 1.0, "×"),
    "picture multiple": Target("… its first picture, against a bare page drawn", "at most", 1.6, "×"),
}
_MARKS = """{
  text: () => bench.shows('reversethis'),
  picture: () => bench.focusRun() !== null,
  everything: () => bench.everyRun() !== null,
}"""
_PLAIN = "a bare Streamlit page"


def measure(report: Report) -> None:
    """Cold starts of the app and of a bare page in turns, then visits to servers that are warm."""
    with browser.browser() as running:
        cold: dict[str, list[float]] = {"start": [], "bare start": [], "text": [], "everything": [], "bare visit": []}
        for _ in range(STARTS):
            with served.server() as server:
                cold["start"].append(1000 * server.seconds)
                first = _visit(running, server.url)
                cold["text"].append(first["text"])
                cold["everything"].append(first["everything"])
            with browser.bare() as bare:
                cold["bare start"].append(1000 * bare.seconds)
                cold["bare visit"].append(_visit_plain(running, bare.url))
        _add(report, "server start until it answers", cold["start"], cold["bare start"])
        _add(report, "first visit after the start until the text is read", cold["text"], cold["bare visit"])
        _add(report, "first visit after the start until everything is drawn", cold["everything"], cold["bare visit"])
        with served.server() as server, browser.bare() as bare:
            _visit(running, server.url), _visit_plain(running, bare.url)
            visits, plain = [], []
            for number in range(VISITS):
                visits.append(_visit(running, server.url))
                if number % 3 == 0:
                    plain.append(_visit_plain(running, bare.url))
    for mark, words in (
        ("text", "its text is read"),
        ("picture", "its first picture is drawn"),
        ("everything", "all is drawn"),
    ):
        times = [visit[mark] for visit in visits]
        line = _add(report, f"a new browser, warm server, until {words}", times, plain)
        if mark in TARGETS:
            report.values[mark] = line.ours.value
            report.values[f"{mark} multiple"] = line.ours.value / line.other.value


def _add(report: Report, what: str, ours: list[float], bare: list[float]) -> Line:
    return report.add(Line(what, Number.of("ours", ours), Number.of(_PLAIN, bare), "ms", len(ours)))


def _visit(running: Browser, url: str) -> dict[str, float]:
    return browser.visit(running, url, _MARKS)


def _visit_plain(running: Browser, url: str) -> float:
    return browser.visit(running, url, "{ drawn: () => bench.plainRun() !== null }")["drawn"]
