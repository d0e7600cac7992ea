"""The address while messages overtake each other: what the page before was told last arrives when somebody has gone back."""

import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.until import until

pytestmark = pytest.mark.browser


class Late:
    """What the server says of the address is held back until the browser has asked for another page."""

    def __init__(self) -> None:
        self.held: list[str | bytes] = []
        self.is_holding = False

    def route(self, to_page: WebSocketRoute) -> None:
        to_server = to_page.connect_to_server()

        def from_server(message: str | bytes) -> None:
            if self.is_holding and (self.held or _is_address(message)):
                self.held.append(message)
            else:
                to_page.send(message)

        def from_page(message: str | bytes) -> None:
            to_server.send(message)
            if self.held:
                self.is_holding = False
                for each in self.held:
                    to_page.send(each)
                self.held.clear()

        to_server.on_message(from_server)
        to_page.on_message(from_page)


def _is_address(message: str | bytes) -> bool:
    return isinstance(message, bytes) and ForwardMsg.FromString(message).WhichOneof("type") == "page_info_changed"


def test_a_page_that_somebody_went_back_to_has_its_own_address(new_page: Page, server: str) -> None:
    page, late = new_page, Late()
    page.route_web_socket(re.compile("_stcore/stream"), late.route)
    page.goto(f"{server}/masks?sources=ab%0Acd&checkpoint=reverse-small")
    expect(page.get_by_role("tab", name="Mistakes")).to_be_visible()
    late.is_holding = True
    page.locator(".st-key-pages").get_by_role("link", name="Compare").click()
    expect(page).to_have_url(re.compile("/compare"))
    until(lambda: page.evaluate("true") and bool(late.held))
    page.go_back()
    expect(page.get_by_role("tab", name="Mistakes")).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page).to_have_url(re.compile(r"/masks\?"))
    expect(page).not_to_have_url(re.compile("[?&](b_|text=)"))
    expect(page).to_have_url(re.compile("sources=ab%0Acd"))
