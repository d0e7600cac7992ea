"""Each browser is known again, the owner's too, and neither by anything that stands in a link."""

import asyncio
import re
import webbrowser
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import streamlit as st
from starlette.responses import HTMLResponse

from transformer_viz import serving
from transformer_viz.errors import OptionError
from transformer_viz.views.server import greeting, opening, owner, visitors
from transformer_viz.views.server.visitors import Visitors

SECRET = "an-owners-secret_2026"
ROOM = "0.0.0.0"


@pytest.fixture
def options(monkeypatch) -> Iterator[dict[str, Any]]:
    """Streamlit's settings of a server that the room can reach."""
    told: dict[str, Any] = {"server.address": ROOM, "server.port": 8501, "server.baseUrlPath": "", "server.sslCertFile": ""}
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: told[name] if name in told else real(name))
    for name in (serving.HOSTS_VARIABLE, serving.OWNER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    owner.secret.cache_clear()
    yield told
    owner.secret.cache_clear()


@pytest.fixture
def secret(options, monkeypatch) -> str:
    monkeypatch.setenv(serving.OWNER_VARIABLE, SECRET)
    return SECRET


class Browser:
    """Keeps cookies, and goes where it is sent."""

    def __init__(self, scheme: str = "http") -> None:
        self.cookies: dict[str, str] = {}
        self.scheme, self.visited, self.set_cookies = scheme, [], list[str]()
        self.app = Visitors(HTMLResponse("the page"))

    def open(self, url: str, method: str = "GET", accept: str = "text/html,*/*") -> tuple[int, str]:
        self.visited.append(url)
        path, _, query = url.partition("?")
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"host": "viz:8501", "accept": accept, **({"cookie": cookie} if cookie else {})}
        scope = {
            **{
                "type": "http",
                "method": method,
                "scheme": self.scheme,
                "path": unquote(path),
                "query_string": query.encode(),
            },
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []

        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "http.request"}

        asyncio.run(self.app(scope, receive, send))
        told = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        for name, value in told:
            if name == "set-cookie":
                self.set_cookies.append(value)
                self.cookies |= {key: morsel.value for key, morsel in SimpleCookie(value).items()}
        to = dict(told).get("location")
        if to is not None:
            assert urlsplit(to).netloc == "" and not to.startswith("//"), "it leads to another server"
            return self.open(to)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()

    @property
    def is_owner(self) -> bool:
        return owner.is_owner(self.cookies, {"Host": "viz:8501"}, "192.168.1.7")


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
def test_no_script_and_no_other_site_can_use_the_cookies(secret, scheme):
    browser = Browser(scheme)
    browser.open("/")
    browser.open(f"/?owner={secret}")
    assert len(browser.set_cookies) == 2
    for told in browser.set_cookies:
        words = {word.strip().lower() for word in told.split(";")}
        assert {"httponly", "samesite=lax", "path=/", f"max-age={365 * 86400}"} <= words
        assert ("secure" in words) == (scheme == "https")


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
def test_the_owners_address_loses_its_secret_before_there_is_a_page(secret, url, after):
    browser = Browser()
    assert browser.open(url.format(secret))[0] == 200
    assert browser.visited[1:] == [after]
    assert browser.is_owner
    assert SECRET not in str(browser.cookies)
    browser.open("/")
    assert browser.is_owner


@pytest.mark.parametrize("given", ["", "x", SECRET[:-1], SECRET + "x", SECRET.upper(), "ä", "%00"])
def test_a_wrong_secret_makes_no_owner(secret, given):
    browser = Browser()
    status, said = browser.open(f"/?owner={given}")
    assert status == 403
    assert "the terminal shows it" in said
    assert browser.cookies == {}
    assert not owner.is_owner({owner.cookie_name(): given}, {}, "192.168.1.7")
    assert not owner.is_owner({owner.cookie_name(): SECRET}, {}, "192.168.1.7")


def test_another_start_and_another_port_have_another_owner(options):
    browser = Browser()
    browser.open(f"/?owner={owner.secret()}")
    assert browser.is_owner
    options["server.port"] = 8502
    assert not browser.is_owner
    options["server.port"] = 8501
    owner.secret.cache_clear()
    assert not browser.is_owner
    assert re.fullmatch(r"[\w-]{32}", owner.secret())


def test_servers_that_were_given_the_same_secret_have_the_same_owner(options, secret, monkeypatch):
    """Guards the owner of several servers behind one name, who would be one on the first of them alone."""
    browser = Browser()
    browser.open(f"/?owner={SECRET}")
    options["server.port"] = 8502
    assert browser.is_owner
    owner.secret.cache_clear()
    monkeypatch.setenv(serving.OWNER_VARIABLE, "another-secret_2026")
    assert not browser.is_owner
    first = set(browser.cookies)
    browser.open("/?owner=another-secret_2026")
    assert browser.is_owner and first < set(browser.cookies)


HERE = {"Host": "localhost:8501"}


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "::1"])
def test_on_a_server_for_this_machine_whoever_sits_here_is_the_owner(options, address):
    options["server.address"] = address
    for host in ("localhost:8501", "127.0.0.1:8501", "[::1]:8501"):
        assert owner.is_owner({}, {"Host": host}, None)


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, None),
        ({"Host": "viz.example"}, None),
        ({"Host": "192.168.1.5:8501"}, None),
        (HERE, "192.168.1.7"),
        ({**HERE, "X-Forwarded-For": "127.0.0.1"}, None),
        ({**HERE, "X-Forwarded-Proto": "https"}, None),
        ({**HERE, "Forwarded": "for=127.0.0.1"}, None),
        ({**HERE, "Via": "1.1 proxy"}, None),
        ({**HERE, "X-Real-Ip": "127.0.0.1"}, None),
    ],
    ids=str,
)
def test_who_may_come_through_a_proxy_is_not(options, headers, address):
    options["server.address"] = "localhost"
    assert not owner.is_owner({}, headers, address)


@pytest.mark.parametrize("change", ["address", "host", "secret"])
def test_as_soon_as_others_are_asked_in_sitting_here_is_not_enough(options, monkeypatch, change):
    options["server.address"] = "0.0.0.0" if change == "address" else "localhost"
    if change != "address":
        name, value = (serving.HOSTS_VARIABLE, "viz.example") if change == "host" else (serving.OWNER_VARIABLE, SECRET)
        monkeypatch.setenv(name, value)
    assert not owner.is_owner({}, HERE, None)


def test_the_terminal_and_the_first_browser_have_the_owners_address(options, monkeypatch):
    assert f"http://localhost:8501/?owner={owner.secret()}" in greeting.words()
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    opening._open()
    assert len(opened) == 1
    assert opened[0].endswith(f"?owner={owner.secret()}")
    monkeypatch.setenv(serving.OPENS_VARIABLE, "mine/a b")
    opening._open()
    assert opened[1].endswith(f"/?checkpoint=mine%2Fa+b&owner={owner.secret()}")
    options["server.address"] = "localhost"
    assert "owner" not in greeting.words()


@pytest.mark.parametrize("chosen", ["", "short", "a" * 15, "a" * 201, "a secret with spaces", "geheimnis-für-alle-hier"])
def test_a_secret_that_could_be_guessed_is_refused(monkeypatch, chosen):
    monkeypatch.setenv(serving.OWNER_VARIABLE, chosen)
    with pytest.raises(OptionError, match="16 to 200 letters"):
        serving.chosen_secret()
