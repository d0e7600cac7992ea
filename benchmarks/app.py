"""The app in headless Chromium with software rendering: Enter, a step, a click on a small map, another checkpoint.

Times are taken inside the page, from the event to the frame after the last chart holds the new run. Beside each stands the
same text typed into a bare Streamlit page with one heatmap, try by try in turns: what Streamlit takes as it comes. The same
page with the settings of this project (`.streamlit/config.toml`) has a line of its own.
"""

from statistics import median

from playwright.sync_api import Page

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "the app, 12 to 20 letters"
TRIES = 30
EARLY = 8
"""Tries on a page just opened, while the browser is still compiling its scripts; a line of their own."""
TARGETS = {
    "focus": Target("Enter until tokens and focus map are drawn, p95", "at most", 350, "ms"),
    "everything": Target("Enter until everything is drawn, p95", "at most", 500, "ms"),
    "step": Target("one step, p95", "at most", 70, "ms"),
    "multiple": Target("Enter until everything is drawn, median, against a bare page as Streamlit comes", "at most", 2, "×"),
    "work": Target("the same in processor time of the page's main thread", "at most", 2, "×"),
    "hover": Target("a pointer over the large map until the frame after it, processor time, p95", "at most", 16, "ms"),
    "tile": Target("a click on a small map until it is the focus map, p95", "at most", 300, "ms"),
}


def measure(report: Report) -> None:
    """All of it on the checkpoint `reverse`, on one page."""
    with (
        browser.browser() as running,
        served.server() as ours,
        browser.bare() as bare,
        browser.bare(settings=served.ROOT) as with_our_settings,
    ):
        app, plain = browser.opened(running, ours.url), browser.opened_plain(running, bare.url)
        tuned = browser.opened_plain(running, with_our_settings.url)
        report.remark(f"Chromium {running.version}, software rendering, {TRIES} tries")
        entered, drawn, drawn_tuned, parts, spent = _enters(app, plain, tuned)
        early = Number.of("ours", [each["everything"] for each in entered[:EARLY]])
        what = f"the first {EARLY} times on a page: Enter until everything is drawn"
        report.add(Line(what, early, Number.of(browser.PLAIN_NAME, drawn[:EARLY]), "ms", EARLY))
        asked, answered = (median(times) for times in zip(*parts[EARLY:], strict=True))
        report.remark(
            f"Enter: the browser asks after {asked:.0f} ms, has the server's last answer after {answered:.0f} ms, then draws"
        )
        ours_busy, bare_busy = (
            Number.of(name, each[EARLY:]) for name, each in zip(("ours", browser.PLAIN_NAME), spent, strict=True)
        )
        report.add(Line("Enter: processor time of the page's main thread", ours_busy, bare_busy, "ms", TRIES))
        report.values["work"] = ours_busy.value / bare_busy.value
        whole = Number.of("ours", [each["everything"] for each in entered[EARLY:]])
        settings = Number.of("the bare page with our settings", drawn_tuned[EARLY:])
        report.add(Line("Enter until everything is drawn", whole, settings, "ms", TRIES))
        entered, reference = entered[EARLY:], Number.of(browser.PLAIN_NAME, drawn[EARLY:])
        lines = {
            "Enter until tokens and focus map are drawn": ("focus", [each["focus"] for each in entered]),
            "Enter until everything is drawn": ("everything", [each["everything"] for each in entered]),
            "one step": ("step", [browser.step(app, number) for number in range(TRIES)]),
            "a click on a small map until it is the focus": ("tile", _tiles(app)),
            "a pointer over the large map of 31 letters: processor time": ("hover", _hovers(app)),
            "another checkpoint until everything is drawn": ("checkpoint", _switches(app)),
        }
        for words, (key, times) in lines.items():
            ours_number = Number.of("ours", times)
            report.add(Line(words, ours_number, reference, "ms", len(times)))
            if key == "everything":
                report.values["multiple"] = ours_number.value / reference.value
            if key in TARGETS and ours_number.p95 is not None:
                report.values[key] = ours_number.p95


def _enters(
    app: Page, plain: Page, tuned: Page
) -> tuple[list[dict[str, float]], list[float], list[float], list[tuple[float, float]], tuple[list[float], list[float]]]:
    """Times of the app and of both bare pages in turns, the parts of the app's, and how long the main thread was busy.

    The last is of the app and of the first bare page.
    """
    entered, drawn, drawn_tuned, parts = [], [], [], []
    readers, spent = [browser.busy(page) for page in (app, plain)], ([], [])
    for number in range(EARLY + TRIES):
        text = browser.letters(12 + number % 9, number)
        before = [read() for read in readers]
        entered.append(browser.enter(app, text))
        parts.append(browser.parts(app))
        drawn.append(browser.enter_plain(plain, text))
        for each, read, start in zip(spent, readers, before, strict=True):
            each.append(read() - start)
        drawn_tuned.append(browser.enter_plain(tuned, text))
    return entered, drawn, drawn_tuned, parts, spent


def _tiles(app: Page) -> list[float]:
    """Half of the tries with 12 letters, half with 20."""
    times = []
    for length in (12, 20):
        browser.enter(app, browser.letters(length, -1))
        times += [browser.click_tile(app, number) for number in range(1, TRIES // 2 + 1)]
    return times


def _hovers(app: Page) -> list[float]:
    """On the longest text that the checkpoint reads well."""
    browser.enter(app, browser.letters(31, -1))
    app.evaluate("document.querySelector('.st-key-focus').scrollIntoView({ block: 'center', behavior: 'instant' })")
    read = browser.busy(app)
    times = [browser.hover(app, read, number) for number in range(2 * TRIES)]
    # A list that opens in a page that scrolls closes again.
    app.evaluate("document.querySelector('.stMain').scrollTo({ top: 0, behavior: 'instant' })")
    return times


def _switches(app: Page) -> list[float]:
    """Each with a text that was typed before, so that its run by the other checkpoint is not known yet."""
    times = []
    for number in range(TRIES):
        text = browser.letters(12, 100 + number)
        browser.enter(app, text)
        name = ("reverse-small", "reverse")[number % 2]
        times.append(browser.switch_checkpoint(app, name, text)["everything"])
    return times
