"""Every page under the content policy that the server sends, as a browser obeys it."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from transformer_viz import views

pytestmark = pytest.mark.browser
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
IS_FORBIDDEN = re.compile("Content Security Policy")


@pytest.mark.parametrize("with_tabs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_page_does_what_the_policy_forbids(browser: Browser, server: str, with_tabs: bool) -> None:
    """That the browser obeys the policy, and tells, is seen at the end: a request to another machine."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    forbidden: list[str] = []
    page.on("console", lambda message: forbidden.append(message.text) if IS_FORBIDDEN.search(message.text) else None)
    for name in views.names():
        page.goto(f"{server}/{'' if name == 'explore' else name}")
        expect(page.locator(IDLE)).to_be_visible()
        if name not in ("open", "train"):
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
