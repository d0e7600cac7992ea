"""What a new browser asks the server for: the first page's scripts are asked for at its beginning, and each once."""

from collections import Counter
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from tests.browser.charts import wait_until_drawn
from transformer_viz.views.server import index

pytestmark = pytest.mark.browser


def test_scripts_are_asked_for_early_and_once(new_page: Page, server: str) -> None:
    page = new_page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.goto(server)
    wait_until_drawn(page)
    early = asked[: asked.index("/_stcore/health")]
    for name in index.FIRST:
        assert any(path.startswith(f"/static/js/{name}.") for path in early), name
    assert max(Counter(path for path in asked if path.startswith("/static/")).values()) == 1
