"""Each browser is known again, the owner's too, and neither by anything that stands in a link."""

import re
import webbrowser
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import pytest
import streamlit as st
from starlette.responses import HTMLResponse

from tests.views.asgi import ask
from transformer_viz import app_folders, server_settings
from transformer_viz.views.server import opening, visitors
from transformer_viz.views.server.visitors import Visitors

ROOM = "0.0.0.0"


@pytest.fixture
def options(monkeypatch) -> Iterator[dict[str, Any]]:
    """Streamlit's settings of a server that the room can reach."""
    told: dict[str, Any] = {"server.address": ROOM, "server.port": 8501, "server.baseUrlPath": "", "server.sslCertFile": ""}
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: told[name] if name in told else real(name))
    monkeypatch.setenv(app_folders.SHARED_VARIABLE, "1")
    visitors.owner_value.cache_clear()
    yield told
    visitors.owner_value.cache_clear()


@pytest.fixture
def token(options) -> str:
    """That of the link which the terminal shows."""
    (token,) = re.findall(r"[?&]owner=([\w-]{32})$", visitors.owner_link())
    return token


class Browser:
    """Keeps cookies, and goes where it is sent."""

    def __init__(self, scheme: str = "http") -> None:
        self.cookies: dict[str, str] = {}
        self.scheme, self.visited, self.set_cookies = scheme, [], list[str]()
        self.app = Visitors(HTMLResponse("the page"))

    def open(self, url: str, method: str = "GET", accept: str = "text/html,*/*") -> tuple[int, str]:
        self.visited.append(url)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = ask(self.app, url, scheme=self.scheme, method=method, host="viz:8501", accept=accept, cookie=cookie)
        if given := answer.headers.get("set-cookie"):
            self.set_cookies.append(given)
            self.cookies |= {key: morsel.value for key, morsel in SimpleCookie(given).items()}
        to = answer.headers.get("location")
        if to is not None:
            assert urlsplit(to).netloc == "" and not to.startswith("//"), "it leads to another server"
            return self.open(to)
        return answer.status, answer.body.decode()

    @property
    def is_owner(self) -> bool:
        return visitors.is_owner(self.cookies, {"Host": "viz:8501"}, "192.168.1.7")


def test_each_browser_has_a_secret_of_its_own_and_keeps_it(options):
    anna, boris = Browser(), Browser()
    for browser in (anna, boris):
        assert browser.open("/") == (200, "the page")
    tokens = [visitors.token_in(browser.cookies) for browser in (anna, boris)]
    assert None not in tokens and tokens[0] != tokens[1]
    for page in ("/", "/train?job=x", "/masks"):
        anna.open(page)
    assert visitors.token_in(anna.cookies) == tokens[0]
    assert len(anna.set_cookies) == 1
    assert not anna.is_owner


def test_what_is_no_page_gives_no_secret(options):
    """Scripts and checks are asked for without cookies too; a HEAD asks for nothing."""
    browser = Browser()
    browser.open("/static/js/index.js", accept="*/*")
    browser.open("/_stcore/health", accept="")
    browser.open("/", method="POST")
    assert browser.set_cookies == []


@pytest.mark.parametrize("given", ["", "x", "a" * 42, "a" * 44, "ä" * 43, "a b" * 20, "a" * 43 + "\n"])
def test_what_is_no_secret_of_ours_is_replaced(options, given):
    assert visitors.token_in({visitors.COOKIE: given}) is None


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_script_and_no_other_site_can_use_the_cookies(token, scheme):
    """The owner's goes when the browser is closed, at the latest."""
    browser = Browser(scheme)
    browser.open("/")
    browser.open(f"/?owner={token}")
    visitors_own, owners = ({word.strip().lower() for word in told.split(";")} for told in browser.set_cookies)
    for words in (visitors_own, owners):
        assert {"httponly", "samesite=lax", "path=/"} <= words
        assert ("secure" in words) == (scheme == "https")
    assert f"max-age={365 * 86400}" in visitors_own
    assert not any(word.startswith(("max-age", "expires")) for word in owners)


@pytest.mark.parametrize(
    ("url", "after"),
    [
        ("/?owner={}", "/"),
        ("/train?job=mine&owner={}&text=a%20b%26c", "/train?job=mine&text=a+b%26c"),
        ("/train?owner=wrong&owner={}", "/train"),
        ("//evil.example/?owner={}", "/evil.example/"),
        ("/%5cevil.example?owner={}", "/%5Cevil.example"),
        ("/a%25b/?owner={}", "/a%25b/"),
    ],
)
def test_the_owners_address_loses_its_token_before_there_is_a_page(token, url, after):
    browser = Browser()
    assert browser.open(url.format(token))[0] == 200
    assert browser.visited[1:] == [after]
    assert browser.is_owner
    assert token not in str(browser.cookies)
    browser.open("/")
    assert browser.is_owner


def test_a_token_works_once_and_the_terminal_shows_the_next(token, capsys):
    """Guards what the history of a browser and the process table of the machine still show."""
    first, second = Browser(), Browser()
    first.open(f"/?owner={token}")
    (following,) = re.findall(r"owner=([\w-]{32})", capsys.readouterr().out)
    status, said = second.open(f"/?owner={token}")
    assert (status, "works once" in said, second.cookies) == (403, True, {})
    assert first.open(f"/?owner={token}")[0] == 200, "the owner's own browser may go back to it"
    assert capsys.readouterr().out == ""
    assert second.open(f"/masks?owner={following}")[0] == 200
    assert first.is_owner and second.is_owner


def test_to_look_whether_a_page_is_there_uses_no_token(token):
    browser = Browser()
    browser.open(f"/?owner={token}", method="HEAD")
    assert browser.cookies == {}
    browser.open(f"/?owner={token}")
    assert browser.is_owner


@pytest.mark.parametrize("given", ["", "x", "{}x", "x{}", "ä", "%00"])
def test_a_wrong_token_makes_no_owner(token, given):
    browser = Browser()
    status, said = browser.open(f"/?owner={given.format(token)}")
    assert status == 403
    assert "the terminal shows the one" in said
    assert browser.cookies == {}
    for value in (given, token):
        assert not visitors.is_owner({visitors.owner_cookie(): value}, {}, "192.168.1.7")


def test_another_start_and_another_port_have_another_owner(token, options):
    browser = Browser()
    browser.open(f"/?owner={token}")
    assert browser.is_owner
    options["server.port"] = 8502
    assert not browser.is_owner
    options["server.port"] = 8501
    visitors.owner_value.cache_clear()
    assert not browser.is_owner


HERE = {"Host": "localhost:8501"}


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "::1"])
def test_on_a_server_for_this_machine_whoever_sits_here_is_the_owner(options, monkeypatch, address):
    monkeypatch.delenv(app_folders.SHARED_VARIABLE)
    server_settings.share_if_reachable(address)
    for host in ("localhost:8501", "127.0.0.1:8501", "[::1]:8501"):
        assert visitors.is_owner({}, {"Host": host}, None)


FORWARDED = [("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https"), ("Forwarded", "for=127.0.0.1"), ("Via", "1.1 x")]


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        *[({}, None), ({"Host": "viz.example"}, None), ({"Host": "192.168.1.5:8501"}, None), (HERE, "192.168.1.7")],
        *[({**HERE, name: value}, None) for name, value in (*FORWARDED, ("X-Real-Ip", "127.0.0.1"))],
    ],
    ids=str,
)
def test_who_may_come_through_a_proxy_is_not(options, monkeypatch, headers, address):
    monkeypatch.delenv(app_folders.SHARED_VARIABLE)
    assert not visitors.is_owner({}, headers, address)


@pytest.mark.parametrize(
    ("address", "host", "said"),
    [("0.0.0.0", "", ""), ("", "", ""), ("192.168.1.5", "", ""), ("localhost", "viz.example", ""), ("localhost", "", "1")],
)
def test_as_soon_as_others_are_asked_in_sitting_here_is_not_enough(options, monkeypatch, address, host, said):
    monkeypatch.setenv(app_folders.SHARED_VARIABLE, said)
    monkeypatch.setenv(server_settings.HOSTS_VARIABLE, host)
    server_settings.share_if_reachable(address)
    assert not visitors.is_owner({}, HERE, None)


def test_the_first_browser_is_told_no_secret(options, monkeypatch):
    """What it is started with, other users of the machine read: `ps`."""
    assert visitors.owner_link().startswith("http://localhost:8501/?owner=")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    opening._open()
    monkeypatch.setenv(server_settings.OPENS_VARIABLE, "mine/a b")
    opening._open()
    assert opened == ["http://localhost:8501/", "http://localhost:8501/?checkpoint=mine%2Fa+b"]
    assert visitors.owner_link().startswith("http://localhost:8501/?checkpoint=mine%2Fa+b&owner=")
