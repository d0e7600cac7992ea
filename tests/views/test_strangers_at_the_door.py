"""The app's real server, as strangers meet it. Whatever it does beyond this machine is written down."""

import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from benchmarks import served
from tests.surveys.made import survey
from transformer_viz.server_settings import variable
from transformer_viz.views.server.messages import AT_ONCE, TOO_MANY, WHY

# Python runs this first of all in the server's process. `connect` of a datagram socket sends nothing: that one is left out.
RECORDER = """
import os, sys
def outside(address):
    name = address[0] if isinstance(address, tuple) else address
    name = name.decode() if isinstance(name, bytes) else name
    here = ("", "::1", "localhost", "0.0.0.0")
    return isinstance(name, str) and name not in here and not name.startswith(("127.", "/", "\\0"))
def record(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        is_sent = event != "socket.connect" or args[0].type != 2
        found = args[1] if is_sent and outside(args[1]) else None
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        found = args[0] if outside(args[0]) else None
    else:
        return
    if found is not None:
        with open(os.environ["RECORDED"], "a") as file:
            file.write(f"{event} {found}\\n")
sys.addaudithook(record)
"""
MB = 2**20


class Door:
    """The server, from outside."""

    def __init__(self, server: served.Server, recorded: Path, proxy: socket.socket) -> None:
        self.server, self._recorded, self._proxy = server, recorded, proxy
        self.port = urlsplit(server.url).port or 0

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            headers, found = {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            words = gzip.decompress(found) if headers.get("content-encoding") == "gzip" else found
            return answer.status, headers, words.decode()

    def connect(self, host: str = "localhost", origin: str | None = None) -> Any:
        """The handshake that a browser makes on a page of `origin`, which thinks that this is `host`."""
        there = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        url, page = f"ws://{host}:{self.port}/_stcore/stream", None if origin is None else Origin(origin)
        protocols = [Subprotocol("streamlit")]
        # At its close a socket whose messages nobody reads any more would wait for 10 s.
        return connect(
            url, sock=there, origin=page, subprotocols=protocols, max_size=None, open_timeout=60, close_timeout=0.2, proxy=None
        )

    def outgoing(self) -> list[str]:
        """All that went, or would have gone, beyond this machine."""
        found = self._recorded.read_text().splitlines() if self._recorded.exists() else []
        try:
            self._proxy.accept()[0].close()
            return [*found, "the proxy was asked"]
        except BlockingIOError:
            return found


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """It listens to the whole room, so that it starts as it does for a class; the proxy takes calls and never answers."""
    folder = tmp_path_factory.mktemp("door")
    (model := folder / "hub/models--secretcorp--merger-2027/snapshots/0123").mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "gpt2"}')
    (folder / "surveys/merger-2027").mkdir(parents=True)
    (folder / "surveys/merger-2027/summary.json").write_text(survey().to_json())
    (folder / "sitecustomize.py").write_text(RECORDER)
    (folder / "secrets.toml").write_text('TRANSFORMER_VIZ_ALLOW_HOSTS = "named-in-secrets.example"')
    with socket.create_server(("127.0.0.1", 0), backlog=100) as proxy:
        proxy.setblocking(False)
        environment = {
            "PYTHONPATH": os.pathsep.join([str(folder), str(served.ROOT), os.environ.get("PYTHONPATH", "")]),
            "RECORDED": str(folder / "recorded"),
            "HF_HUB_CACHE": str(folder / "hub"),
            "STREAMLIT_SECRETS_FILES": str(folder / "secrets.toml"),
            "http_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "https_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "0",
            variable("upload_bytes"): str(3 * MB),
            variable("upload_bytes_per_session"): str(2 * MB),
        }
        with served.server(environment=environment, address="0.0.0.0", folder=folder) as server:
            yield Door(server, folder / "recorded", proxy)


class Visitor:
    """A browser that has opened the app."""

    def __init__(self, door: Door, socket: ClientConnection, page: str = "", query: str = "") -> None:
        self._door, self.socket, self.bytes = door, socket, b""
        self.send(BackMsg(rerun_script=ClientState(page_name=page, query_string=query)))
        while not (session := self.received().new_session.initialize.session_id):
            pass
        self.session: str = session
        _, headers, _ = door.ask("GET", "/_stcore/health")
        found = re.search(r"_streamlit_xsrf=([^;]+)", headers["set-cookie"])
        assert found
        self._token = found[1]

    def send(self, message: BackMsg) -> None:
        self.socket.send(message.SerializeToString())

    def received(self) -> ForwardMsg:
        message = ForwardMsg()
        self.bytes += (data := self.socket.recv(timeout=60, decode=False))
        message.ParseFromString(data)
        return message

    def finish(self) -> None:
        """Until the script has ended: all that it sent is in `bytes`."""
        while self.received().WhichOneof("type") != "script_finished":
            pass

    def upload(self, n_bytes: int, session: str | None = None, name: str | None = None) -> tuple[int, str]:
        """A file that no page asked for; status and words."""
        name = name or str(uuid.uuid4())
        begin = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.npz"\r\n\r\n'
        body = begin + b"\0" * n_bytes + b"\r\n--x--\r\n"
        status, _, words = self._asked("PUT", session, name, body, content_type="multipart/form-data; boundary=x")
        return status, words

    def delete(self, name: str) -> int:
        return self._asked("DELETE", None, name, None)[0]

    def _asked(self, method: str, session: str | None, name: str, body: bytes | None, **headers: str):
        path = f"/_stcore/upload_file/{session or self.session}/{name}"
        return self._door.ask(method, path, body, cookie=f"_streamlit_xsrf={self._token}", x_xsrftoken=self._token, **headers)


@pytest.fixture
def visitor(door: Door) -> Iterator[Callable[..., Visitor]]:
    with ExitStack() as sockets:
        yield lambda *at: Visitor(door, sockets.enter_context(door.connect(origin=f"http://localhost:{door.port}")), *at)


def test_nobody_outside_is_called(door):
    """At the start, and by handshakes and requests of other servers' pages, for which Streamlit looks its own address up."""
    for number in range(15):
        with pytest.raises(InvalidStatus) as refused, door.connect(origin=f"http://evil-{number}.example"):
            pass
        assert refused.value.response.status_code == 403
        assert b"another server" in (refused.value.response.body or b"")
        assert door.ask("GET", "/_stcore/host-config", origin=f"http://evil-{number}.example")[0] == 403
        assert door.ask("OPTIONS", "/_stcore/health", origin="null")[0] == 403
    assert door.ask("GET", "/_stcore/health")[::2] == (200, "ok")
    assert door.outgoing() == []


@pytest.mark.parametrize(
    ("page", "query"), [("", "checkpoint=nope"), ("survey", "survey=nope"), ("compare", "checkpoint_b=nope")]
)
def test_a_stranger_learns_no_name_and_no_place_of_this_machine(visitor, page, query):
    """But for Streamlit's own word on where `app.py` lies, once for each run."""
    there = visitor(page, query)
    there.finish()
    assert len(there.bytes) > 10_000 and b"reverse" in there.bytes
    assert b"merger" not in there.bytes
    assert str(served.ROOT).encode() not in there.bytes.replace(str(served.ROOT / "app.py").encode(), b"")


def test_a_run_is_given_to_who_knows_its_name_alone(door, visitor):
    """Each session has another name for the same run."""
    names = []
    for _ in range(2):
        there = visitor("", "text=hello")
        there.finish()
        names += re.findall(rb'"content": ?"([0-9a-f]{32})"', there.bytes)
    mine, theirs = (name.decode() for name in names)
    assert mine != theirs
    (status, headers, run), (_, _, same) = (door.ask("GET", f"/run/{name}") for name in (mine, theirs))
    assert status == 200 and json.loads(run) == json.loads(same) and "private" in headers["cache-control"]
    assert [cell["text"] for cell in json.loads(run)["source"]][1:6] == [*"hello"]
    for name in ("0" * 32, mine[:-1], f"{mine}/cross/0/9", f"{mine}/nothing/0/0", "0" * 32 + "/cross/0/0"):
        status, headers, words = door.ask("GET", f"/run/{name}")
        assert (status, headers["content-type"].split(";")[0]) == (404, "text/plain") and words, name
    assert door.ask("POST", f"/run/{mine}")[0] == 405


def test_no_other_page_may_give_orders_to_this_one(door):
    """Streamlit's own list, which a page reads with its first request, has the hosts of its cloud."""
    assert json.loads(door.ask("GET", "/_stcore/host-config")[2])["allowedOrigins"] == []


def test_the_recorder_would_see_a_call(door, tmp_path, monkeypatch):
    """Guards the test above, which an empty file would pass."""
    (tmp_path / "sitecustomize.py").write_text(RECORDER)
    program = "import socket\nfor call in ('create_connection(((\"192.0.2.1\", 9)), 0.01)', 'getaddrinfo(\"a.invalid\", 1)'):\n"
    program += "    try: eval('socket.' + call)\n    except OSError: pass"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "RECORDED": str(tmp_path / "recorded")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    calls = (tmp_path / "recorded").read_text()
    assert "socket.connect ('192.0.2.1', 9)" in calls and "socket.getaddrinfo a.invalid" in calls


def test_names_that_are_answered_and_one_that_was_bound_to_this_machine(door):
    with pytest.raises(InvalidStatus) as refused, door.connect("evil.example", origin=f"http://evil.example:{door.port}"):
        pass
    assert refused.value.response.status_code == 421
    for path in ("/", "/masks", "/_stcore/health", "/static/js/x.js", "/nothing"):
        status, _, words = door.ask("GET", path, host=f"evil.example:{door.port}")
        assert (status, "--allow-host" in words) == (421, True)
    for host in ("localhost", "192.168.1.7", socket.gethostname()):
        with door.connect(host, origin=f"http://{host}:{door.port}") as there:
            assert there.subprotocol == "streamlit"
    # Where nothing else sets variables, as on Streamlit's Community Cloud, they may stand in its secrets.
    assert door.ask("GET", "/_stcore/health", host="named-in-secrets.example")[0] == 200


def test_what_is_closed_and_the_headers_of_every_answer(door):
    for method, path, status in (
        ("GET", "/", 200),
        ("GET", "/_stcore/health", 200),
        ("POST", "/_stcore/agent/interact", 403),  # Streamlit's, which is off
        ("GET", "/media/nothing", 404),
        ("GET", "//etc/passwd", 400),
        ("POST", "/", 405),
        ("PUT", "/_stcore/upload_file/nobody/x", 403),
    ):
        found, headers, _ = door.ask(method, path)
        assert found == status, path
        assert {"content-security-policy", "x-frame-options", "referrer-policy", "x-content-type-options"} <= {*headers}, path


def test_what_a_session_uploads_is_limited_and_goes_with_it(visitor):
    first = visitor()
    assert first.upload(100, session=str(uuid.uuid4()))[0] == 400, "for nobody"
    assert [first.upload(MB, name="one")[0], first.upload(MB // 2)[0]] == [204, 204]
    status, words = first.upload(MB)
    assert status == 413 and variable("upload_bytes_per_session") in words
    assert first.delete("one") == 204
    assert first.upload(MB)[0] == 204, "what was deleted is free again"
    second = visitor()
    assert second.upload(MB)[0] == 204
    for one in (first, second):
        one.socket.close()
    # Streamlit drops a session that has expired when the next one ends.
    for _ in range(100):
        visitor().socket.close()
        last = visitor()
        if last.upload(2 * MB - 1000)[0] == 204:
            return
        last.socket.close()
    raise AssertionError("the bytes of sessions that are gone were never free again")


def test_a_message_that_is_too_large_ends_its_session(door, visitor):
    there = visitor().socket
    with suppress(ConnectionClosed):
        there.send(b"x" * (MB + 1))
    with suppress(ConnectionClosed):
        while True:
            there.recv(timeout=60)
    assert there.close_code is not None
    assert door.ask("GET", "/_stcore/health")[0] == 200


def test_a_flood_of_messages_holds_up_nobody_else_and_is_closed_with_the_reason(visitor):
    loud, other = visitor(), visitor()
    for one in (loud, other):
        one.finish()
    with suppress(ConnectionClosed):
        for _ in range(10_000):
            loud.send(BackMsg(app_heartbeat=True))
    other.send(BackMsg(rerun_script=ClientState()))
    other.finish()
    n_answered = 0
    with suppress(ConnectionClosed):
        while True:
            n_answered += loud.received().heartbeat_ack
    assert (loud.socket.close_code, loud.socket.close_reason) == (TOO_MANY, WHY)
    assert 0 < n_answered <= 2 * AT_ONCE
