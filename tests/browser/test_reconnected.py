"""A page that is cut off comes back to the same view, and nothing typed is lost.

To a page that does not say which session was its own, its server is another one, which has never seen it.
"""

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.charts import wait_until_drawn
from tests.browser.test_links import settled
from transformer_viz.views.server.messages import TOO_MANY, WHY

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEEPS_SOCKETS = """() => {
  window.sockets = new Set();
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (message) {
    window.sockets.add(this);
    return send.call(this, message);
  };
}"""
FORGETS = """() => {
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
    page.evaluate(KEEPS_SOCKETS)
    page.evaluate(FORGETS)
    type_in(page, "before")
    expect(page.locator(".stMain")).to_contain_text("for 7 steps")
    before, link = settled(page), page.url
    page.evaluate("[...window.sockets][0].close()")
    page.wait_for_function("window.sockets.size === 2")
    # The new session has read the address of before, and hears of what was typed since.
    expect(page.locator(".stMain")).to_contain_text("for 7 steps")
    assert page.url == link
    now = settled(page)
    for name, value in before.items():
        assert now[name] == value, name
    type_in(page, "again")


def test_cut_off_for_too_many_messages_it_comes_back_to_the_same_view(page: Page, server: str) -> None:
    page.goto(f"{server}/?text=hello&kind=decoder&layer=2&head=3")
    wait_until_drawn(page)
    page.evaluate(KEEPS_SOCKETS)
    type_in(page, "before")
    before, link = settled(page), page.url
    message = [*BackMsg(app_heartbeat=True).SerializeToString()]
    page.evaluate(
        """(message) => {
          const [socket] = window.sockets;
          socket.addEventListener("close", ({ code, reason }) => (window.ended = { code, reason }));
          for (let n = 0; n < 10_000; n++) socket.send(new Uint8Array(message));
        }""",
        message,
    )
    page.wait_for_function("window.sockets.size === 2")
    assert page.evaluate("window.ended") == {"code": TOO_MANY, "reason": WHY}
    assert (settled(page), page.url) == (before, link)
    type_in(page, "again")
