"""A page whose server is gone, and another one, which has never seen it, takes over: the same view, and nothing typed is lost.

To a page that does not say which session was its own, its server is another one.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import wait_until_drawn
from tests.browser.test_links import settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FORGETS = """() => {
  window.sockets = new Set();
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (message) {
    window.sockets.add(this);
    return send.call(this, message);
  };
  window.WebSocket = class extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols.slice(0, 2));
    }
  };
}"""


def type_in(page: Page, text: str) -> None:
    box = page.get_by_label("Source text")
    box.fill(text)
    box.press("Enter")
    expect(page.locator("[data-part=source]")).to_contain_text(text)


def test_cut_off_from_its_server_it_comes_back_to_the_same_view(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&kind=decoder&layer=2&head=3")
    wait_until_drawn(page)
    page.evaluate(FORGETS)
    type_in(page, "before")
    before, link = settled(page), page.url
    page.evaluate("[...window.sockets][0].close()")
    page.wait_for_function("window.sockets.size === 2")
    assert (settled(page), page.url) == (before, link)
    type_in(page, "again")
