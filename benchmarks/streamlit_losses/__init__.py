"""Presses that Streamlit 1.67 itself loses, each in twenty lines without this app, for whoever reports them.

`python -m benchmarks.streamlit_losses.one_turn` and `… .old_value`: each prints what was pressed and what the page shows.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks import served


def shown_after(app: str, act: str, at_first: str) -> list[str]:
    """What a page shows, line by line, at rest after a script has pressed something on it.

    Args:
        app: the source of the page.
        act: JavaScript that presses.
        at_first: words of the page before.
    """
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        script = Path(folder) / "app.py"
        script.write_text(app, encoding="utf-8")
        with served.server(script=script, folder=Path(folder)) as server:
            browser = playwright.chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
            page = browser.new_page()
            page.goto(server.url)
            page.get_by_text(at_first).wait_for()
            _rest(page)
            page.wait_for_timeout(500)
            page.evaluate(f"() => {{ {act} }}")
            page.wait_for_timeout(1000)
            _rest(page)
            lines = page.locator("[data-testid=stMarkdown]").all_inner_texts()
            browser.close()
    return lines


def report(what: str, lines: list[str], right: str) -> None:
    """Prints whether a press was lost, and exits with 1 if it was."""
    print(f"{what}: the page shows {lines}; right would be {right!r}: {'kept' if right in lines else 'LOST'}")
    sys.exit(right not in lines)


def _rest(page: Page) -> None:
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
