"""Two real servers behind nginx, and a real browser: the server that has its page is killed, and the other one goes on."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks import served
from tests.browser.charts import wait_until_drawn
from tests.browser.test_links import settled
from tests.deploy import proxy
from tests.needs import needs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.xdist_group("two servers"),
    *map(needs, ("nginx", "chromium", "fonts-dejavu-core", "libatomic1")),
]
COOKIE = "transformer_viz_server"
PATIENCE_MS = 60_000


@pytest.fixture
def servers() -> Iterator[dict[str, served.Server]]:
    with ExitStack() as stack:
        both = [stack.enter_context(served.server(address="127.0.0.1")) for _ in range(2)]
        yield {str(urlsplit(each.url).port): each for each in both}


@pytest.fixture
def page(servers: dict[str, served.Server]) -> Iterator[Page]:
    with sync_playwright() as playwright, proxy.nginx([int(port) for port in servers]) as running:
        browser = playwright.chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
        page = browser.new_context(base_url=running.url, bypass_csp=True).new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()


def cookie(page: Page, name: str) -> str:
    return next(kept["value"] for kept in page.context.cookies() if kept["name"] == name)


def test_the_other_server_goes_on_with_the_same_view(page: Page, servers: dict[str, served.Server]) -> None:
    """And with the same visitor, who may stop a training there."""
    page.goto("/?text=hello&kind=decoder&layer=2&head=3&step=4")
    wait_until_drawn(page)
    before, link, first = settled(page), page.url, cookie(page, COOKIE)
    kept = {one["name"]: one["value"] for one in page.context.cookies() if one["name"].startswith("transformer_viz_")}
    with page.expect_websocket(timeout=PATIENCE_MS) as another:
        os.kill(servers[first].pid, signal.SIGKILL)
    another.value.wait_for_event("framereceived")
    assert (settled(page), page.url) == (before, link)
    (other,) = set(servers) - {first}
    after = {one["name"]: one["value"] for one in page.context.cookies() if one["name"] in kept}
    assert after == {**kept, COOKIE: other}
    box = page.get_by_label("Source text")
    box.fill("again")
    box.press("Enter")
    expect(page.locator("[data-part=source]")).to_contain_text("again", timeout=PATIENCE_MS)
