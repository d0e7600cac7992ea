"""nginx and Caddy with the files of `deploy/`, before two servers that only say what they were asked: who is sent to whom."""

import http.client
import json
import shutil
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.deploy import proxy
from tests.needs import needs, skip_without

COOKIE = "transformer_viz_server"
HEALTH, STREAM, UPLOAD = "/_stcore/health", "/_stcore/stream", "/_stcore/upload_file/session/file"
MB = 2**20


class Echo(BaseHTTPRequestHandler):
    """Says which server it is and what it heard."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        read = len(self.rfile.read(int(self.headers.get("content-length", 0))))
        if read < int(self.headers.get("content-length", 0)):
            return  # the proxy has given it up
        heard = {"port": self.server.server_port, "read": read, "headers": {k.lower(): v for k, v in self.headers.items()}}
        body = json.dumps(heard).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Echo)
        threading.Thread(target=self.serve_forever, daemon=True, kwargs={"poll_interval": 0.01}).start()

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class Servers:
    """Two, behind a proxy; a browser that keeps the cookie."""

    def __init__(self, port: int, both: list[Server]) -> None:
        self.port, self.both, self.cookies = port, {each.server_port: each for each in both}, dict[str, str]()
        self.said: dict[str, Any] = {}
        self.is_sent_elsewhere = False

    def ask(self, path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str) -> int:
        """The status; what the server said is kept, and the cookie."""
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("localhost", self.port, timeout=30)) as connection:
            connection.request(method, path, body, {"cookie": kept, **named})
            answer = connection.getresponse()
            text = answer.read()
        given = answer.headers.get_all("set-cookie", [])
        self.is_sent_elsewhere = bool(given)
        for value in given:
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(value).items()}
        self.said = json.loads(text) if answer.status == 200 else {}
        return answer.status

    def who(self, path: str = "/") -> int:
        """The port of the server that answered."""
        assert self.ask(path) == 200
        return self.said["port"]

    def end(self, port: int) -> None:
        self.both.pop(port).end()

    def begin(self, port: int) -> None:
        self.both[port] = Server(port)


@contextmanager
def behind(name: str) -> Generator[Servers]:
    skip_without(name)
    both = [Server(), Server()]
    with getattr(proxy, name)([each.server_port for each in both]) as running:
        servers = Servers(urlsplit(running.url).port or 0, both)
        yield servers
    for port in list(servers.both):
        servers.end(port)


@pytest.fixture(params=["nginx", "caddy"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    with behind(request.param) as servers:
        yield servers


@pytest.fixture
def behind_nginx() -> Iterator[Servers]:
    with behind("nginx") as servers:
        yield servers


def test_a_browser_stays_at_its_server_until_that_one_ends(servers: Servers) -> None:
    """Guards pages and uploads, which the process knows that made the page: after it is back too."""
    first = servers.who()
    assert servers.is_sent_elsewhere
    assert {servers.who(path) for path in ("/", HEALTH, STREAM, UPLOAD) * 3} == {first}
    assert not servers.is_sent_elsewhere
    servers.end(first)
    other = servers.who(HEALTH)
    assert other != first
    servers.begin(first)
    assert {servers.who(path) for path in (STREAM, UPLOAD, "/") * 3} == {other}


def test_new_browsers_come_to_all_servers(servers: Servers) -> None:
    found = set()
    for _ in range(40):
        servers.cookies.clear()
        found.add(servers.who())
    assert found == set(servers.both)


@pytest.mark.parametrize("given", ["evil.example:80", "127.0.0.1:22", "", "0", "x" * 1000, '"; Path=/; Domain=example'])
def test_a_cookie_never_leads_elsewhere(servers: Servers, given: str) -> None:
    servers.cookies = {COOKIE: given}
    assert servers.who() in servers.both
    assert servers.cookies[COOKIE] != given


def test_what_a_browser_says_of_where_it_comes_from_is_not_passed_on(servers: Servers) -> None:
    """Guards whose browser is taken for one on this machine."""
    assert servers.ask(X_Forwarded_For="192.0.2.1", X_Forwarded_Proto="https") == 200
    headers = servers.said["headers"]
    assert headers["x-forwarded-for"] in ("127.0.0.1", "::1") and headers["x-forwarded-proto"] == "http"
    assert headers["host"] == f"localhost:{servers.port}"


def test_only_an_upload_may_be_large(servers: Servers) -> None:
    assert servers.ask(UPLOAD, "PUT", b"x" * (64 * MB)) == 200
    assert servers.said["read"] == 64 * MB
    for path, size in ((UPLOAD, 70 * MB), ("/", MB)):
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
            assert servers.ask(path, "PUT", b"x" * size) in (413, 502)


def test_an_address_opens_no_more_than_so_many_pages_at_once(behind_nginx: Servers) -> None:
    answers = [behind_nginx.ask(STREAM) for _ in range(230)]
    assert answers[:200] == [200] * 200
    assert answers[-1] == 429


@needs("nginx")
def test_the_site_is_one_that_nginx_takes(tmp_path: Path) -> None:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("needs openssl: apt install openssl")
    pem, key = tmp_path / "viz.pem", tmp_path / "viz.key"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=viz.example.org", "-out", pem, "-keyout", key]
    subprocess.run([openssl, *made], check=True, capture_output=True)
    shutil.copytree(proxy.FILES / "nginx", tmp_path, dirs_exist_ok=True)
    site = tmp_path / "sites-available/transformer-viz"
    text = site.read_text().replace("/etc/ssl/certs/viz.example.org.pem", str(pem)).replace("/var/log/nginx/", f"{tmp_path}/")
    site.write_text(text.replace("/etc/ssl/private/viz.example.org.key", str(key)))
    whole = "pid nginx.pid; events {} http { access_log off; include conf.d/*.conf; include sites-available/*; }"
    (tmp_path / "nginx.conf").write_text(whole)
    program = proxy.program("nginx")
    assert program
    found = subprocess.run([program, "-t", "-p", tmp_path, "-c", "nginx.conf", "-e", "stderr"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
