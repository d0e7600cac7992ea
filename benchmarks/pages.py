"""From page to page by the navigation, as multiples of what a bare Streamlit page takes for a text, in the same run."""

from playwright.sync_api import Page

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "from page to page"
TRIES = 8
_OWN = {"Masks": "lab-header", "Search": "beam", "Compare": "swap", "Survey": "survey-distribution", "Explore": "player-area"}
"""The pages, and what only each of them has."""
TARGETS = {
    "switch": Target("the slowest switch of pages, median, against a bare page's Enter", "at most", 3, "×"),
    "work": Target("the same in processor time of the page's main thread", "at most", 3, "×"),
}


def measure(report: Report) -> None:
    """Round and round; each page is made again, by a session that has been there."""
    with browser.browser() as running, served.server() as ours, browser.bare() as bare:
        app, plain = browser.opened(running, ours.url), browser.opened_plain(running, bare.url)
        work, bare_work = browser.busy(app), browser.busy(plain)
        switched: dict[str, list[tuple[float, float]]] = {name: [] for name in _OWN}
        entered = []
        for number in range(TRIES + 1):
            for name, own in _OWN.items():
                before = work()
                switched[name].append((_switch(app, name, own), work() - before))
            before = bare_work()
            entered.append((browser.enter_plain(plain, browser.letters(12, number)), bare_work() - before))
        drawn, busy = (Number.of(browser.PLAIN_NAME, times) for times in zip(*entered[1:], strict=True))
        for name, both in switched.items():
            taken, spent = (Number.of("ours", times) for times in zip(*both[1:], strict=True))
            report.add(Line(f"to {name}, until it is drawn", taken, drawn, "ms", TRIES))
            report.worst("switch", taken.value / drawn.value, "at most")
            report.add(Line(f"to {name}: processor time of the page's main thread", spent, busy, "ms", TRIES))
            report.worst("work", spent.value / busy.value, "at most")


def _switch(app: Page, name: str, own: str) -> float:
    """Milliseconds from the click until the page's own parts are there and every chart is drawn."""
    app.evaluate(
        """(own) => bench.on(document, 'click', () => true, () => ({ drawn: () => {
          const charts = [...document.querySelectorAll('.stMain .chart')];
          const isDone = document.querySelector('[data-test-script-state="notRunning"]');
          return isDone && document.querySelector(`.st-key-${own}`) && charts.length && charts.every((chart) => chart.__drawn);
        } }))""",
        own,
    )
    app.get_by_role("link", name=name).first.click()
    return browser.took(app)["drawn"]
