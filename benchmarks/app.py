"""The app in headless Chromium with software rendering: Enter, an arrow key, another kind, head, pin, a switch of pages.

Times are taken inside the page, from the event to the first frame in which all of it is drawn. Beside each stands the
same text typed into a bare Streamlit page with one heatmap, in turns: it says how slow the machine is in these minutes.
"""

from playwright.sync_api import Page

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "the app, 12 to 20 letters"
TRIES, SWITCHES = 30, 8
THRICE_A_SECOND_MS = 333
CHOICES = ("kind", "head", "pin")
TARGETS = {
    "enter": Target("Enter until all is drawn, median", "at most", 300, "ms"),
    "enter p95": Target("Enter until all is drawn, p95", "at most", 420, "ms"),
    "key": Target("an arrow key, median", "at most", 16, "ms"),
    "key p95": Target("an arrow key, p95", "at most", 33, "ms"),
    "hurried": Target("arrow keys, three a second, median", "at most", 16, "ms"),
    "hurried p95": Target("arrow keys, three a second, p95", "at most", 33, "ms"),
    **{
        f"{what}{p95}": Target(f"another {what}, {p95.strip() or 'median'}", "at most", most, "ms")
        for what in CHOICES
        for p95, most in (("", 16), (" p95", 33))
    },
    "page": Target("a switch of pages until all is drawn, the slowest page, median", "at most", 500, "ms"),
}
_OWN = {"Masks": "lab-header", "Compare": "swap", "Over many texts": "survey-distribution", "Explore": "explore_tab"}
"""The pages, and what only each of them has."""


def measure(report: Report) -> None:
    """All of it on the checkpoint `reverse`, on one page; the first Enters, while scripts are compiled, are not counted."""
    with browser.browser() as running, served.server() as ours, browser.bare() as bare:
        app = browser.opened(running, ours.url, "bench.everyRun()")
        plain = browser.opened(running, bare.url, "bench.plainRun()")
        report.remark(f"Chromium {running.version}, software rendering, {TRIES} tries")
        texts = [browser.letters(12 + number % 9, number) for number in range(TRIES + 5)]
        tries = [(browser.enter(app, text), browser.enter(plain, text, bare=True)) for text in texts]
        entered, drawn = zip(*tries[5:], strict=True)
        reference = Number.of(browser.PLAIN_NAME, drawn)
        steps = [browser.step(app) for _ in range(TRIES)]
        hurried = browser.steps_in_a_row(app, TRIES, THRICE_A_SECOND_MS)
        timed = {
            "enter": ("Enter until all is drawn", entered),
            "key": ("an arrow key", steps),
            "hurried": ("arrow keys, three a second", hurried),
            **{what: (f"another {what}", [browser.chosen(app, what) for _ in range(TRIES)]) for what in CHOICES},
        }
        for key, (what, times) in timed.items():
            number = Number.of("ours", times)
            report.add(Line(what, number, reference, "ms", TRIES))
            assert number.p95 is not None
            report.values[key], report.values[f"{key} p95"] = number.value, number.p95
        switched: dict[str, list[float]] = {name: [] for name in _OWN}
        for _ in range(SWITCHES + 1):  # the first time a page is new to the session
            for name, own in _OWN.items():
                switched[name].append(_switch(app, name, own))
        for name, times in switched.items():
            line = report.add(Line(f"to {name}, until all is drawn", Number.of("ours", times[1:]), reference, "ms", SWITCHES))
            report.worst("page", line.ours.value, "at most")


def _switch(app: Page, name: str, own: str) -> float:
    """Milliseconds from the click until the page's own parts are there and every chart is drawn that is to be seen.

    Beneath the large map lie those of the other kinds, which are drawn ahead when nobody has pressed for a while.
    """
    app.evaluate(
        """(own) => bench.on(document, 'click', () => true, () => () => {
          const isSeen = (chart) => chart.checkVisibility() && !chart.ariaHidden;
          const charts = [...document.querySelectorAll('.stMain .chart')].filter(isSeen);
          const isDone = document.querySelector('[data-test-script-state="notRunning"]');
          const areDrawn = charts.length && charts.every((chart) => chart.__drawn || chart.data);
          return isDone && document.querySelector(`.st-key-${own}`) && areDrawn;
        })""",
        own,
    )
    app.get_by_role("link", name=name).first.click()
    return browser.took(app)
