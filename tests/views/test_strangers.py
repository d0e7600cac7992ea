"""What stands in front of Streamlit, each part alone: which requests pass, and what the others are told."""

import asyncio
import re
import socket

import pytest
import streamlit as st
from starlette.responses import HTMLResponse

from tests.views.asgi import PASSED, ask, asked, passed_on, scope
from transformer_viz import server_settings
from transformer_viz.errors import OptionError
from transformer_viz.server_settings import Limits
from transformer_viz.views import server
from transformer_viz.views.server import opening
from transformer_viz.views.server.guard import Guard, own_names, policy


@pytest.fixture
def guard(monkeypatch) -> Guard:
    monkeypatch.setattr(socket, "gethostname", lambda: "Desk-7.School.example.")
    return Guard(passed_on, ["viz.example", "*.class.example"])


NAMES = ["LOCALHOST", "localhost.", "desk-7.school.example", "desk-7", "Desk-7.local", "viz.example", "a.b.class.example"]
ADDRESSES = ["127.0.0.1", "192.168.1.7", "[::1]", "[fe80::1]"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_names_that_are_answered(guard, kind):
    for name in NAMES + ADDRESSES:
        for host in (name, f"{name}:8501"):
            assert ask(guard, kind=kind, host=host).status == PASSED, host
            assert ask(guard, kind=kind, host=host, origin=f"http://{host}").status == PASSED, host


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example", "desk-7.local.evil.example"),
        *("class.example", "evilclass.example", "school.example", "", ":8501", "localhost:port", "localhost:999999"),
        *("localhost@evil.example", "evil.example@localhost", "localhost/evil", "localhost?", "localhost#"),
        *("localhost, evil.example", "[::1", "::1", "[localhost]", "local\xadhost", "x" * 5000),
    ],
)
def test_other_names_are_not_answered(guard, kind, host):
    answer = ask(guard, kind=kind, host=host, origin=f"http://{host}")
    assert answer.status == 421
    assert answer.headers["content-type"].startswith("text/plain")
    assert b"--allow-host" in answer.body
    assert len(answer.body) < 500


def test_one_host_and_no_other_origin(guard):
    assert ask(guard).status == 421
    for another, status in (((b"host", b"localhost"), 421), ((b"origin", b"http://evil.example"), 403)):
        request = scope(host="localhost", origin="http://localhost")
        request["headers"].append(another)
        assert asyncio.run(asked(guard, request)).status == status


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example:8501", "null", "", "file://", "localhost:8501", "http://localhost", "http://127.0.0.1:8501"),
        *("http://localhost:8501/", "http://viz.example", "http://localhost:8501.evil.example"),
        *(
            "http://localhost:8501@evil.example",
            "chrome-extension://localhost:8501",
            "http://evil.example http://localhost:8501",
        ),
    ],
)
def test_pages_of_other_servers_are_refused(guard, kind, origin):
    answer = ask(guard, kind=kind, host="localhost:8501", origin=origin)
    assert answer.status == 403
    assert b"another server" in answer.body


def test_streamlit_sees_no_origin(guard):
    """Guards its look-up of this machine's address on the internet, which it begins to judge one."""
    assert ask(guard, kind="websocket", host="viz.example", origin="https://viz.example").body == b""


def test_this_machines_names_include_what_streamlit_was_told(monkeypatch):
    given = {"server.address": "desk.lan", "browser.serverAddress": "Viz.school"}
    monkeypatch.setattr(st, "get_option", given.get)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert own_names() == {"localhost", "desk", "desk.local", "desk.lan", "viz.school"}


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_answer_has_the_headers(kind, host):
    guard = Guard(HTMLResponse("x", headers={"X-Frame-Options": "ALLOWALL"}), preload="/a.js")
    headers = ask(guard, kind=kind, host=host).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["referrer-policy"] == "same-origin"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers.get("link", "").startswith("</a.js>; rel=preload; as=script") == (host == "localhost")


def test_pages_of_named_hosts_may_show_the_app_in_a_frame(monkeypatch):
    monkeypatch.setenv(server_settings.FRAMED_BY_VARIABLE, "huggingface.co, *.school.example")
    guard = Guard(HTMLResponse("x"), framed_by=server_settings.framed_by())
    headers = ask(guard, host="localhost").headers
    assert "frame-ancestors 'self' https://huggingface.co https://*.school.example;" in headers["content-security-policy"] + ";"
    assert "x-frame-options" not in headers
    monkeypatch.setenv(server_settings.FRAMED_BY_VARIABLE, "https://evil.example/; script-src *")
    with pytest.raises(OptionError, match="not the name of a host"):
        server_settings.framed_by()


def test_the_policy_lets_nothing_leave():
    sources = dict(directive.split(" ", 1) for directive in policy("<script>let a = 1</script>").split("; "))
    assert sources["default-src"] == "'none'"
    assert sources["connect-src"] == "'self'"
    # From `printf 'let a = 1' | openssl dgst -sha256 -binary | base64`.
    assert "'sha256-LAfYd7pbFUgwfQu8b4q135PeTG2z+/coPEUYCd74eCQ='" in sources["script-src"]
    assert "unsafe" not in sources["script-src"]
    for directive, allowed in sources.items():
        assert not re.search(r"\*|https?:|\bws", allowed), directive


@pytest.fixture
def environment(monkeypatch):
    for name in (server_settings.HOSTS_VARIABLE, *map(server_settings.variable, Limits.__dataclass_fields__)):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_limits_from_the_environment(environment):
    assert server_settings.limits() == Limits()
    environment.setenv("TRANSFORMER_VIZ_MAX_UPLOAD_BYTES", " 1000 ")
    environment.setenv("TRANSFORMER_VIZ_MAX_RUN_SECONDS", "7")
    assert server_settings.limits() == Limits(upload_bytes=1000, run_seconds=7)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e3", "2GB", "x", "٣", "9" * 40])
def test_impossible_limits(environment, text):
    environment.setenv("TRANSFORMER_VIZ_MAX_RUN_SECONDS", text)
    with pytest.raises(OptionError, match=r"TRANSFORMER_VIZ_MAX_RUN_SECONDS .* whole number"):
        server_settings.limits()


def test_hosts_from_the_environment(environment):
    assert server_settings.allowed_hosts() == ()
    environment.setenv(server_settings.HOSTS_VARIABLE, "Viz.Example., *.b.example  müller.example")
    assert server_settings.allowed_hosts() == ("viz.example", "*.b.example", "xn--mller-kva.example")
    server_settings.allow_hosts(["c", "viz.example"])
    assert server_settings.allowed_hosts() == ("viz.example", "*.b.example", "xn--mller-kva.example", "c")


@pytest.mark.parametrize(
    "name", ["", "http://a", "a:80", "a/b", "*", "*a", "a.*", "a..b", "-a", "a b", "::1", "x" * 64, "ä" * 300]
)
def test_impossible_hosts(environment, name):
    with pytest.raises(OptionError, match="not the name of a host"):
        server_settings.allow_hosts([name])


def test_a_wrong_setting_stops_the_server_with_a_sentence(environment, capsys):
    environment.setenv(server_settings.HOSTS_VARIABLE, "http://viz.example")
    with pytest.raises(SystemExit) as stop:
        server.middleware()
    assert stop.value.code == 2
    assert "http://viz.example" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "here", "has_others"),
    [
        ("localhost", "http://localhost:8501/", False),
        ("192.168.1.7", "http://192.168.1.7:8501/", False),
        ("::1", "http://[::1]:8501/", False),
        ("0.0.0.0", "http://localhost:8501/", True),
        ("::", "http://localhost:8501/", True),
        (None, "http://localhost:8501/", True),
    ],
)
def test_the_terminal_says_where_to_open_it(monkeypatch, address, here, has_others):
    given = {"server.address": address, "server.port": 8501, "server.baseUrlPath": "", "server.sslCertFile": None}
    monkeypatch.setattr(st, "get_option", given.get)
    assert opening.here() == here
    others = opening.for_others()
    assert (others is not None and re.fullmatch(r"http://(?!localhost)[\w.-]+:8501/", others) is not None) == has_others
