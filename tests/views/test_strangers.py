"""What stands in front of Streamlit, each part alone: which requests pass, and what the others are told."""

import asyncio
import ipaddress
import re
import socket

import pytest
import streamlit as st
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from tests.views.asgi import PASSED, ask, asked, passed_on, scope
from transformer_viz import serving
from transformer_viz.errors import OptionError
from transformer_viz.serving import Limits
from transformer_viz.views import server
from transformer_viz.views.server import greeting
from transformer_viz.views.server.headers import SecurityHeaders, policy
from transformer_viz.views.server.hosts import Hosts, hostname, own_names
from transformer_viz.views.server.sessions import LARGEST_MESSAGE, Sessions


@pytest.fixture
def hosts(monkeypatch) -> Hosts:
    monkeypatch.setattr(socket, "gethostname", lambda: "Desk-7.School.example.")
    return Hosts(passed_on, ["viz.example", "*.class.example"])


NAMES = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "desk-7.school.example",
    "desk-7",
    "Desk-7.local",
    "viz.example",
    "a.b.class.example",
]
ADDRESSES = ["127.0.0.1", "192.168.1.7", "[::1]", "[fe80::1]"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_names_that_are_answered(hosts, kind):
    for name in NAMES + ADDRESSES:
        for host in (name, f"{name}:8501"):
            assert ask(hosts, kind=kind, host=host).status == PASSED, host
            assert ask(hosts, kind=kind, host=host, origin=f"http://{host}").status == PASSED, host


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "localhost.evil.example",
        "evil-localhost",
        "127.0.0.1.evil.example",
        "desk-7.local.evil.example",
        "class.example",
        "evilclass.example",
        "school.example",
        "",
        ":8501",
        "localhost:port",
        "localhost:99999",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost?",
        "localhost#",
        "localhost, evil.example",
        "[::1",
        "::1",
        "[localhost]",
        "local\xadhost",
        "x" * 5000,
    ],
)
def test_other_names_are_not_answered(hosts, kind, host):
    answer = ask(hosts, kind=kind, host=host, origin=f"http://{host}")
    assert answer.status == 421
    assert answer.headers["content-type"].startswith("text/plain")
    assert b"--allow-host" in answer.body
    assert len(answer.body) < 500


def test_one_host_and_at_most_one_origin(hosts):
    assert ask(hosts).status == 421
    for twice, status in ((b"host", 421), (b"origin", 403)):
        request = scope(host="localhost", origin="http://localhost")
        request["headers"].append((twice, dict(request["headers"])[twice]))
        assert asyncio.run(asked(hosts, request)).status == status


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://evil.example:8501",
        "null",
        "",
        "file://",
        "localhost:8501",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:8501",
        "http://localhost:8501/",
        "http://localhost:8501.evil.example",
        "http://localhost:8501@evil.example",
        "chrome-extension://localhost:8501",
        "http://evil.example http://localhost:8501",
    ],
)
def test_pages_of_other_servers_are_refused(hosts, kind, origin):
    answer = ask(hosts, kind=kind, host="localhost:8501", origin=origin)
    assert answer.status == 403
    assert b"another server" in answer.body


@pytest.mark.parametrize(
    ("host", "origin", "told"),
    [
        ("localhost:8501", "http://LocalHost:8501", "http://localhost:8501"),
        ("viz.example", "https://viz.example", "https://viz.example"),
        ("localhost:8501", "https://viz.example:8443", "https://localhost:8501"),  # a proxy that keeps neither
        ("viz.example", "https://x.class.example", "https://viz.example"),
    ],
)
def test_streamlit_sees_no_origin_but_the_host(hosts, host, origin, told):
    """Guards its look-up of this machine's address on the internet, which any other would begin."""
    assert ask(hosts, kind="websocket", host=host, origin=origin).body.decode() == told


def test_this_machines_names_include_what_streamlit_was_told(monkeypatch):
    given = {"server.address": "desk.lan", "browser.serverAddress": "viz.school/app", "server.allowedHosts": ["*.lan"]}
    monkeypatch.setattr(st, "get_option", given.get)
    monkeypatch.setattr(socket, "gethostname", lambda: "")
    assert own_names() == {"localhost", "desk.lan", "viz.school", "*.lan"}


def test_hostname_is_the_name_or_nothing():
    assert [hostname(text) for text in ("A.b:1", "a.b.", "[::1]:80", "1.2.3.4")] == ["a.b", "a.b", "::1", "1.2.3.4"]
    assert ipaddress.ip_address(hostname("[2001:db8::1]") or "")


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_every_answer_has_the_headers(kind, tmp_path):
    (tmp_path / "index.html").write_text("<script>\n let a = 1\n</script>")
    answer = PlainTextResponse("x", headers={"X-Frame-Options": "ALLOWALL"})
    headers = ask(SecurityHeaders(answer, page=tmp_path / "index.html", preload="/a.js"), kind=kind).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["referrer-policy"] == "same-origin"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    headers = ask(SecurityHeaders(HTMLResponse("x"), page=tmp_path / "none", preload="/a.js")).headers
    assert "content-security-policy" in headers
    assert headers["link"].startswith("</a.js>; rel=preload; as=script")


def test_the_policy_lets_nothing_leave():
    sources = dict(directive.split(" ", 1) for directive in policy("<script>let a = 1</script>").split("; "))
    assert sources["default-src"] == "'none'"
    assert sources["connect-src"] == "'self'"
    # From `printf 'let a = 1' | openssl dgst -sha256 -binary | base64`.
    assert "'sha256-LAfYd7pbFUgwfQu8b4q135PeTG2z+/coPEUYCd74eCQ='" in sources["script-src"]
    assert "unsafe" not in sources["script-src"]
    for directive, allowed in sources.items():
        assert not re.search(r"\*|https?:|\bws", allowed), directive


class Waits:
    """An app whose websockets stay until they are let go; what it received."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.messages: list[dict] = []
        self.begun = 0

    async def __call__(self, request, receive, send):
        if request["type"] == "http":
            return await passed_on(request, receive, send)
        self.begun += 1
        await Response("", PASSED)(request, receive, send)
        await self.end.wait()


def test_no_more_browsers_than_the_limits():
    async def life() -> list[int]:
        waits = Waits()
        app = Sessions(waits, Limits(sessions=5, sessions_per_address=2))
        tasks: list[asyncio.Task] = []

        async def connect(client: str) -> int | None:
            begun, task = waits.begun, asyncio.create_task(asked(app, scope("/_stcore/stream", "websocket", client=client)))
            tasks.append(task)
            while waits.begun == begun and not task.done():
                await asyncio.sleep(0)
            return task.result().status if task.done() else None

        other = [await connect("10.0.0.1") for _ in range(3)]
        assert other == [None, None, 503]
        assert [await connect("127.0.0.1") for _ in range(4)] == [None, None, None, 503], "this machine may have all"
        assert (await asked(app, scope(client="10.0.0.1"))).status == PASSED, "only websockets are counted"
        waits.end.set()
        await asyncio.gather(*tasks)
        assert not app._connected
        waits.end.clear()
        return [await connect(f"10.0.0.{number}") is None for number in range(6)]

    assert asyncio.run(life()) == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"bytes": b"x" * LARGEST_MESSAGE}, None),
        ({"bytes": b""}, None),
        ({"bytes": b"x" * (LARGEST_MESSAGE + 1)}, 1009),
        ({"bytes": None, "text": "x"}, 1003),
        ({"text": "x"}, 1003),
    ],
)
def test_messages_that_end_a_session(content, code):
    sent, seen = [], []

    async def reads(request, receive, send):
        seen.append(await receive())

    async def receive():
        return {"type": "websocket.receive", **content}

    async def send(message):
        sent.append(message)

    asyncio.run(Sessions(reads, Limits())(scope(kind="websocket"), receive, send))
    assert sent == ([] if code is None else [{"type": "websocket.close", "code": code}])
    assert seen[0]["type"] == ("websocket.receive" if code is None else "websocket.disconnect")


@pytest.fixture
def environment(monkeypatch):
    for name in (serving.HOSTS_VARIABLE, *map(serving.variable, Limits.__dataclass_fields__)):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_limits_from_the_environment(environment):
    assert serving.limits() == Limits()
    environment.setenv("TRANSFORMER_VIZ_MAX_UPLOAD_BYTES", " 1000 ")
    environment.setenv("TRANSFORMER_VIZ_MAX_SESSIONS", "7")
    assert serving.limits() == Limits(upload_bytes=1000, sessions=7)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e3", "2GB", "x", "٣", "9" * 40])
def test_impossible_limits(environment, text):
    environment.setenv("TRANSFORMER_VIZ_MAX_SESSIONS", text)
    with pytest.raises(OptionError, match=r"TRANSFORMER_VIZ_MAX_SESSIONS .* whole number"):
        serving.limits()


def test_hosts_from_the_environment(environment):
    assert serving.allowed_hosts() == ()
    environment.setenv(serving.HOSTS_VARIABLE, "Viz.Example., *.b.example  müller.example")
    assert serving.allowed_hosts() == ("viz.example", "*.b.example", "xn--mller-kva.example")
    serving.allow_hosts(["c", "viz.example"])
    assert serving.allowed_hosts() == ("viz.example", "*.b.example", "xn--mller-kva.example", "c")


@pytest.mark.parametrize(
    "name", ["", "http://a", "a:80", "a/b", "*", "*a", "a.*", "a..b", "-a", "a b", "::1", "x" * 64, "ä" * 300]
)
def test_impossible_hosts(environment, name):
    with pytest.raises(OptionError, match="not the name of a host"):
        serving.allow_hosts([name])


def test_a_wrong_setting_stops_the_server_with_a_sentence(environment, capsys):
    environment.setenv(serving.HOSTS_VARIABLE, "http://viz.example")
    with pytest.raises(SystemExit) as stop:
        server.middleware()
    assert stop.value.code == 2
    assert "http://viz.example" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "lines"),
    [
        ("localhost", ["http://localhost:8501/"]),
        ("192.168.1.7", ["http://192.168.1.7:8501/"]),
        ("::1", ["http://[::1]:8501/"]),
        ("0.0.0.0", ["http://localhost:8501/", "http://10.1.2.3:8501/"]),
        (None, ["http://localhost:8501/", "http://10.1.2.3:8501/"]),
    ],
)
def test_the_terminal_says_where_to_open_it(monkeypatch, address, lines):
    given = {"server.address": address, "server.port": 8501, "server.baseUrlPath": "", "server.sslCertFile": None}
    monkeypatch.setattr(st, "get_option", given.get)
    monkeypatch.setattr(greeting, "address_in_network", lambda: "10.1.2.3")
    assert [url for url in re.findall(r"http\S+", greeting.words()) if "?owner=" not in url] == lines
