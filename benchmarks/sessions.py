"""Ten people at once on one server, each in a browser of its own: latency, memory, and that no one sees another's text."""

from playwright.sync_api import Page

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report

TITLE = "ten sessions at once"
SESSIONS, ROUNDS, LENGTH = 10, 3, 14
TARGETS = {}
# Source labels of the focus map, from what the browser holds.
_LABELS = """document.querySelector('.st-key-focus .chart')?.layout?.xaxis.ticktext.join(' ')"""


def measure(report: Report) -> None:
    """One session alone, then all of them; beside them as many sessions of a bare page."""
    with browser.browser() as running, served.server() as server, browser.bare() as bare:
        pages = [browser.opened(running, server.url)]
        alone = [browser.enter(pages[0], _text(0, number))["everything"] for number in range(3 * ROUNDS)]
        first = server.memory()
        pages += [browser.opened(running, server.url, rest_ms=0) for _ in range(SESSIONS - 1)]
        together: list[float] = []
        for number in range(ROUNDS):
            together += _all_at_once(pages, number)
        last = server.memory()
        words = f"Enter until everything is drawn, {SESSIONS} sessions in the same moment"
        report.add(Line(words, Number.of("each of ten", together), Number.of("one alone", alone), "ms", len(together)))
        report.remark(f"{SESSIONS * ROUNDS} texts in {SESSIONS} sessions: each saw its own text, run and labels, no other's")
        for page in pages:
            page.context.close()
        plain = [browser.opened_plain(running, bare.url)]
        before = bare.memory()
        plain += [browser.opened_plain(running, bare.url, rest_ms=0) for _ in range(SESSIONS - 1)]
        for number in range(ROUNDS):
            for place, page in enumerate(plain):
                browser.enter_plain(page, _text(place, number))
        after = bare.memory()
        if first is None or last is None or before is None or after is None:
            report.remark("memory: skipped: the system does not tell a process's memory")
            return
        per_session, per_plain = (_megabytes(late - early) / (SESSIONS - 1) for early, late in ((first, last), (before, after)))
        ours, theirs = Number("ours", per_session), Number("a bare Streamlit page", max(per_plain, 0.01))
        report.add(Line("memory of the server for each further session, its runs included", ours, theirs, "MB", 1))
        whole = Number("ours", _megabytes(last)), Number("a bare Streamlit page", _megabytes(after))
        report.add(Line(f"memory of the server with {SESSIONS} sessions", *whole, "MB", 1))


def _all_at_once(pages: list[Page], number: int) -> list[float]:
    """Everyone types a text of its own and presses Enter; every page must then show its own and nobody else's.

    Raises:
        AssertionError: a page shows something else.
    """
    for place, page in enumerate(pages):
        browser.prepare(page, _text(place, number))
    for page in pages:
        page.keyboard.press("Enter")
    times = [browser.took(page, pause_ms=0)["everything"] for page in pages]
    pages[0].wait_for_timeout(browser.PAUSE_MS)
    runs = {page.evaluate("bench.everyRun()") for page in pages}
    assert len(runs) == len(pages), f"{len(pages)} sessions show {len(runs)} different runs"
    for place, page in enumerate(pages):
        own = _text(place, number)
        source, labels = page.evaluate("bench.part('source').textContent"), page.evaluate(_LABELS)
        assert own in source, f"session {place} typed {own} and reads {source}"
        written = [label.split("·")[-1] for label in labels.split()]
        assert own in "".join(written), f"session {place} typed {own}; its map is labelled {labels}"
    return times


def _text(place: int, number: int) -> str:
    """Another one for every session and round."""
    return browser.letters(LENGTH, 1000 * (place + 1) + number)


def _megabytes(size: int) -> float:
    return size / 2**20
