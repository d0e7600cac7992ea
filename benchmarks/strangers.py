"""A class of thirty uses the app while a stranger does all that strangers can: does the server answer, and what does it hold?

The thirty are websocket clients that open the page and let it run again and again; they draw nothing.
"""

import asyncio
import http.client
import os
import re
import shutil
import socket
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target
from transformer_viz.places import FOLDERS_VARIABLE

TITLE = "a class of thirty beside a stranger"
VISITORS, SECONDS = 30, 30
TARGETS = {
    "health": Target("the longest answer of /_stcore/health beside a stranger", "at most", 1.0, "s"),
    "memory": Target("the server's memory at its peak, beside a stranger", "at most", 2.0, "GB"),
}
_MB = 2**20


def measure(report: Report) -> None:
    """The class alone, then with the stranger, on the same server; beside it a bare page that nobody opens."""
    strangers: list[Stranger] = [_pages_of_others, _other_names, *[_uploads] * 4, _slow, _large, _deaf, _idle, _trainings]
    with TemporaryDirectory() as temporary:
        # What the stranger trains lies beside the app: the server is one of a copy.
        folder, odd = Path(temporary, "app"), Path(temporary, "odd")
        for name in ("transformer_viz", "checkpoints", ".streamlit"):
            shutil.copytree(served.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(served.ROOT / "app.py", folder)
        _odd_folders(odd)
        _measure(report, strangers, folder, {FOLDERS_VARIABLE: str(odd)})


def _odd_folders(root: Path) -> None:
    """Checkpoints that nobody can use: every page lists them, and reads their settings."""
    for name in ("endless", "pipe", "null"):
        (root / name).mkdir(parents=True)
        (root / name / "model.safetensors").write_bytes(b"")
    (root / "endless" / "config.json").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe" / "config.json")
    (root / "null" / "config.json").write_text('{"model": {"n_encoder_layers": null}}')


def _measure(report: Report, strangers: list["Stranger"], folder: Path, environment: Mapping[str, str]) -> None:
    with served.server(environment=environment, folder=folder) as server, browser.bare() as bare:
        alone = asyncio.run(_class(server, bare, []))
        beside = asyncio.run(_class(server, bare, strangers))
    words = f"an answer of /_stcore/health, {VISITORS} sessions at work"
    report.add(Line(words, Number.of("with a stranger", beside.ours), Number.of("alone", alone.ours), "s", len(beside.ours)))
    report.worst("health", max(beside.ours), "at most")
    longest = f"{max(beside.ours):.3f} s with a stranger, {max(alone.ours):.3f} s alone"
    report.remark(
        f"the longest answer: {longest}; of a bare page that nobody opens, {max(beside.idle):.3f} s in the same moments"
    )
    words = "a page is made anew, thirty in turns"
    report.add(Line(words, Number.of("with a stranger", beside.runs), Number.of("alone", alone.runs), "s", len(beside.runs)))
    if alone.most and beside.most:
        before, after = (Number(name, found.most / 1e9) for name, found in (("alone", alone), ("with a stranger", beside)))
        report.add(Line("the server's memory at its peak", after, before, "GB", 1))
        report.worst("memory", beside.most / 1e9, "at most")
    report.remark("the stranger met: " + ", ".join(f"{what} {count}" for what, count in sorted(beside.seen.items())))


@dataclass
class Found:
    """What one phase found: seconds of each answer of health, ours and the bare page's; of each page; and the rest."""

    ours: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    most: int = 0
    """Bytes of the server in memory, at their peak."""
    seen: Counter[str] = field(default_factory=Counter)
    """What the strangers met."""


class Place:
    """The server as its clients see it."""

    def __init__(self, server: served.Server) -> None:
        self.port, self.found = urlsplit(server.url).port or 0, Found()

    @property
    def seen(self) -> Counter[str]:
        return self.found.seen

    @asynccontextmanager
    async def socket(self, origin: str | None = None, cookie: str = "") -> AsyncGenerator[ClientConnection]:
        """A session's websocket, from a page of `origin` in a browser with this cookie."""
        headers = {"cookie": cookie} if cookie else {}
        url, page = f"ws://localhost:{self.port}/_stcore/stream", Origin(origin or f"http://localhost:{self.port}")
        protocols = [Subprotocol("streamlit")]
        options: Any = {"subprotocols": protocols, "max_size": None, "open_timeout": 60, "proxy": None}
        async with connect(url, origin=page, additional_headers=headers, **options) as there:
            yield there

    async def ask(
        self, what: str, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        """One request, in a thread; its status is counted."""

        def asked() -> http.client.HTTPResponse:
            connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer

        try:
            answer = await asyncio.to_thread(asked)
        except OSError:  # refused while it was still sending
            self.seen[f"{what}: cut off"] += 1
            raise
        self.seen[f"{what}: {answer.status}"] += 1
        return answer


Stranger = Callable[[Place], Awaitable[None]]


async def _class(server: served.Server, bare: served.Server, strangers: list[Stranger]) -> Found:
    """All of them at once, for a while."""
    place = Place(server)
    tasks = [asyncio.create_task(_visit(place)) for _ in range(VISITORS)]
    tasks += [asyncio.create_task(_again(stranger, place)) for stranger in strangers]
    # In a process of its own, which nothing that happens here can hold up.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        polling = asyncio.get_running_loop().run_in_executor(pool, _poll, server, bare, SECONDS)
        done, _ = await asyncio.wait(tasks, timeout=SECONDS + 2, return_when=asyncio.FIRST_EXCEPTION)
        place.found.ours, place.found.idle, place.found.most = await polling
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in done:
        task.result()  # nobody of the class was thrown out
    return place.found


def _poll(server: served.Server, bare: served.Server, duration: float) -> tuple[list[float], list[float], int]:
    """Seconds of each answer of health, of both servers in turns, and the most bytes of the first in memory."""
    ours: list[float] = []
    idle: list[float] = []
    most, end = 0, time.monotonic() + duration
    while time.monotonic() < end:
        for each, seconds in ((server, ours), (bare, idle)):
            began = time.perf_counter()
            connection = http.client.HTTPConnection(urlsplit(each.url).netloc, timeout=60)
            connection.request("GET", "/_stcore/health")
            assert connection.getresponse().read() == b"ok"
            connection.close()
            seconds.append(time.perf_counter() - began)
        most = max(most, server.memory() or 0)
        time.sleep(0.05)
    return ours, idle, most


async def _visit(place: Place) -> None:
    """Opens the page, and lets it run again when it has run, as somebody does who steps and clicks."""
    async with place.socket() as there:
        while True:
            began = time.perf_counter()
            await there.send(BackMsg(rerun_script=ClientState()).SerializeToString())
            while not (await received(there)).HasField("script_finished"):
                pass
            place.found.runs.append(time.perf_counter() - began)
            await asyncio.sleep(2)


async def received(there: ClientConnection) -> ForwardMsg:
    message = ForwardMsg()
    message.ParseFromString(await there.recv(decode=False))
    return message


async def _again(stranger: Stranger, place: Place) -> None:
    while True:
        with suppress(OSError, ConnectionClosed, InvalidStatus, TimeoutError):
            await stranger(place)
        await asyncio.sleep(0.02)


async def _pages_of_others(place: Place) -> None:
    for number in range(15):
        with suppress(InvalidStatus):
            async with place.socket(f"http://evil-{number}.example"):
                place.seen["a page of another server: let in"] += 1
        place.seen["a page of another server: asked"] += 1


async def _other_names(place: Place) -> None:
    await place.ask("another name", "GET", "/", host="evil.example")
    await place.ask("metrics", "GET", "/_stcore/metrics")


async def _uploads(place: Place) -> None:
    """60 MB at a time that no page asked for, from sessions of its own, until nothing more is taken."""
    async with place.socket() as there:
        await there.send(BackMsg(rerun_script=ClientState()).SerializeToString())
        while not (session := (await received(there)).new_session.initialize.session_id):
            pass
        health = await place.ask("health", "GET", "/_stcore/health")
        found = re.search(r"_streamlit_xsrf=([^;]+)", health.headers["set-cookie"])
        token = found[1] if found else ""
        part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.npz"\r\n\r\n'
        body = part + b"\0" * (60 * _MB) + b"\r\n--x--\r\n"
        headers = {
            "cookie": f"_streamlit_xsrf={token}",
            "x_xsrftoken": token,
            "content_type": "multipart/form-data; boundary=x",
        }
        for _ in range(8):
            with suppress(OSError):
                await place.ask("upload", "PUT", f"/_stcore/upload_file/{session}/{uuid.uuid4()}", body, **headers)


async def _slow(place: Place) -> None:
    """A body of which one byte comes in a while."""
    reader, writer = await asyncio.open_connection("localhost", place.port)
    try:
        head = f"PUT /_stcore/upload_file/{uuid.uuid4()}/x HTTP/1.1\r\nHost: localhost:{place.port}\r\n"
        writer.write(f"{head}Content-Length: 60000000\r\n\r\n".encode())
        for _ in range(5):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.2)
        place.seen["a slow body: " + (await reader.readline()).decode().strip()] += 1
    finally:
        writer.close()


async def _large(place: Place) -> None:
    """A message of 30 MB."""
    async with place.socket() as there:
        try:
            await there.send(b"x" * (30 * _MB))
            while True:
                await there.recv()
        except ConnectionClosed as closed:
            place.seen[f"a large message: ended with {closed.rcvd.code if closed.rcvd else 'no word'}"] += 1


async def _deaf(place: Place) -> None:
    """A browser that asks for page after page and reads none."""
    async with place.socket() as there:
        there.transport.pause_reading()
        for _ in range(10):
            await there.send(BackMsg(rerun_script=ClientState()).SerializeToString())
            await asyncio.sleep(1)
        place.seen["deaf browsers: 1"] += 1


async def _idle(place: Place) -> None:
    """Connections that ask for nothing, and sessions that do nothing, as many as are let in."""
    idle = [socket.create_connection(("localhost", place.port)) for _ in range(100)]
    sessions = [place.socket() for _ in range(80)]
    opened = await asyncio.gather(*(session.__aenter__() for session in sessions), return_exceptions=True)
    place.seen["idle sessions: let in"] += sum(not isinstance(one, BaseException) for one in opened)
    place.seen["idle sessions: refused"] += sum(isinstance(one, InvalidStatus) for one in opened)
    try:
        await asyncio.sleep(3)
    finally:
        for one in idle:
            one.close()
        for session, one in zip(sessions, opened, strict=True):
            if not isinstance(one, BaseException):
                await session.__aexit__(None, None, None)


async def _trainings(place: Place) -> None:
    """Starts a training, of which one runs at a time, and looks at it for a while."""
    async with place.socket() as there:
        page = ClientState(page_name="train")
        await there.send(BackMsg(rerun_script=page).SerializeToString())
        button = await _button(there, "Start training")
        if button is None:
            place.seen["trainings: no button"] += 1
        else:
            page.widget_states.widgets.add(id=button, trigger_value=True)
            await there.send(BackMsg(rerun_script=page).SerializeToString())
            place.seen["trainings: asked for"] += 1
            refused = await _button(there, "Start training", "is being trained")
            place.seen["trainings: refused"] += refused is not None
        await asyncio.sleep(5)


async def _button(there: ClientConnection, label: str, words: str = "") -> str | None:
    """The id of the button of a run of the page that says `label`; with `words`, of a run that says those too."""
    found, is_said = None, not words
    while not (message := await received(there)).HasField("script_finished"):
        element = message.delta.new_element
        if element.button.label == label:
            found = element.button.id
        is_said = is_said or words in element.alert.body
    return found if is_said else None
