"""Every page under the content policy that the server sends, as a browser obeys it."""

import re

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from tests.browser.conftest import LOOKS, SIZE, put_question_away
from tests.needs import slow
from transformer_viz import views

pytestmark = pytest.mark.browser
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
IS_FORBIDDEN = re.compile("Content Security Policy")


@pytest.mark.parametrize("with_tabs", [False, slow(True)])
def test_no_page_does_what_the_policy_forbids(browser: Browser, server: str, with_tabs: bool) -> None:
    """Nor makes any other error in the console, but that Streamlit looks for its server below the page first.

    That the browser obeys the policy, and tells, is seen at the end: a request to another machine.
    """
    page = browser.new_context(viewport=SIZE, **LOOKS).new_page()
    if with_tabs:
        # Before the first question is answered there are none.
        put_question_away(page)
    forbidden: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        url = message.location.get("url", "")
        is_error = message.type == "error" and not url.endswith(("/_stcore/health", "/_stcore/host-config"))
        if is_error or IS_FORBIDDEN.search(message.text):
            forbidden.append(f"{message.text} {url}")

    page.on("console", hear)
    titles = {views.path(view): view.TITLE for view in views.pages()}
    for name in views.names():
        page.goto(f"{server}/{'' if name == 'explore' else name}")
        expect(page.locator("h1")).to_have_text(titles[name])
        expect(page.locator(IDLE)).to_be_visible()
        if name not in ("train", "learn"):
            expect(page.locator(".chart").first).to_be_attached()
        for tab in page.get_by_role("tab").all() * with_tabs:
            _open(page, tab)
        assert forbidden == [], name
    assert page.evaluate("fetch('http://192.0.2.1/').then(() => 'sent', () => 'refused')") == "refused"
    assert any("connect-src" in text for text in forbidden)
    page.context.close()


def _open(page: Page, tab: Locator) -> None:
    if tab.is_visible():
        tab.click()
        expect(page.locator(IDLE)).to_be_visible()
