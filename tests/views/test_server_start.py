"""What begins as the server starts: the app gets ready, and the browser of who started it opens."""

import asyncio
import gzip
import threading
import webbrowser
from unittest.mock import Mock

import plotly
import pytest
import streamlit as st
from starlette.applications import Starlette

from tests.test_imports import python
from tests.views.asgi import ask
from transformer_viz import views
from transformer_viz.viewer import plotly_js
from transformer_viz.views import server
from transformer_viz.views.server import lifespan, opening, unknown_pages, warm_up


@pytest.fixture
def options(monkeypatch):
    """Streamlit's settings, as somebody gave them."""
    given = {"server.headless": False, "server.address": "localhost"}
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: given.get(name, real(name)))
    return given


@pytest.fixture
def opens(monkeypatch) -> Mock:
    """Opens no browser, at once; nothing else is done as the server starts."""
    opens = Mock()
    monkeypatch.setattr(webbrowser, "open", opens)
    monkeypatch.setattr(opening, "DELAY_S", 0)
    monkeypatch.setattr(warm_up, "begin", Mock())
    return opens


def lives() -> None:
    """A server that starts, and ends when all that it has put off until later is done."""

    async def life():
        async with lifespan(None):
            later = asyncio.Event()
            asyncio.get_running_loop().call_later(opening.DELAY_S, later.set)
            await later.wait()

    before = set(threading.enumerate())
    asyncio.run(life())
    for thread in set(threading.enumerate()) - before:
        thread.join(20)


@pytest.mark.parametrize("address", ["localhost", "0.0.0.0"])
def test_the_browser_opens_on_this_machine_if_somebody_sits_there(options, opens, address):
    options["server.address"] = address
    # In a thread, where any other error would fail the test, as any warning does.
    opens.side_effect = FileNotFoundError("xdg-open")
    lives()
    opens.assert_called_once_with("http://localhost:8501/")
    options["server.headless"] = True
    lives()
    opens.assert_called_once()


@pytest.mark.slow
def test_what_it_gets_ready_is_what_a_page_needs():
    """And the server itself begins without any of it. (Streamlit imports plotly itself.)"""
    heavy = ("torch", "pandas", "transformer_viz.checkpoints", "transformer_viz.views.explore.page")
    seen = python(f"""
import sys
from transformer_viz.views import server
from transformer_viz.views.server import warm_up
def there(): return [name in sys.modules for name in {heavy!r}]
before = there()
warm_up.begin(); warm_up.wait()
print(any(before), all(there()))
""")
    assert seen == "False True"


def test_what_is_never_ready_holds_up_no_page_for_good(monkeypatch):
    go_on, order = threading.Event(), []
    monkeypatch.setattr(views, "pages", lambda: (go_on.wait(20), order.append("ready")))
    warm_up.begin()
    with monkeypatch.context() as patch:
        patch.setattr(warm_up, "LONGEST", 0.01)
        warm_up.wait()
    order.append("page")
    go_on.set()
    warm_up.wait()
    assert order == ["page", "ready"]


def test_every_page_of_the_app_has_its_address():
    """Guards a page whose title and folder differ: a link to it would lead nowhere."""
    assert sorted(views.path(page) for page in views.pages()) == sorted(views.names())


@pytest.mark.parametrize("base", ["", "viz"])
@pytest.mark.parametrize("encoding", ["gzip, br", ""])
def test_plotly_is_the_bundle_and_a_browser_fetches_it_once(options, base, encoding):
    options["server.baseUrlPath"] = base
    path = f"/{base}/plotly-cartesian-{plotly.__version__}.js".replace("//", "/")
    answer = ask(Starlette(routes=server.routes()), path, accept_encoding=encoding)
    assert answer.status == 200
    assert (gzip.decompress(answer.body) if encoding else answer.body) == plotly_js.BUNDLE.read_bytes()
    assert answer.headers.get("content-encoding", "") == encoding[:4]
    assert answer.headers["cache-control"].endswith("immutable, max-age=31536000")
    assert answer.headers["content-type"].startswith("text/javascript")


def opened(path: str, accept: str = "text/html,*/*") -> tuple[int, str | None]:
    answer = ask(unknown_pages.UnknownPages(Starlette()), path, accept=accept)
    return answer.status, answer.headers.get("location")


def test_an_address_of_no_page_opens_the_first_one_and_its_query_stays(monkeypatch):
    assert opened("/nosuch") == (303, "/?page=nosuch")
    assert all(opened(path)[1] is None for path in ("/", "/masks", "/static/x", "/favicon.png", "/_stcore/health"))
    assert opened("/nosuch", accept="*/*")[1] is None
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: "see" if name == "server.baseUrlPath" else real(name))
    assert opened("/see/nosuch") == (303, "/see/?page=nosuch")
    assert opened("/see/masks")[1] is None
