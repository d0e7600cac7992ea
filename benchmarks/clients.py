"""Thirty people press Enter in the same moment, with clients that draw nothing: thirty browsers would measure themselves.

Each is a websocket that types a text of its own into the box and waits until the page has been made.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target

TITLE = "thirty people press Enter at once"
CLIENTS, ROUNDS, LENGTH = 30, 4, 14
TARGETS = {"answered": Target("the last of thirty is answered, median of the rounds", "at most", 3, "s")}


def measure(report: Report) -> None:
    """The app, and a bare page for the same thirty."""
    with served.server() as server:
        ours = Number.of("ours", asyncio.run(_rounds(server.url)))
    with browser.bare() as server:
        bare = Number.of(browser.PLAIN_NAME, asyncio.run(_rounds(server.url)))
    report.values["answered"] = report.add(Line("the last of thirty is answered", ours, bare, "s", ROUNDS)).ours.value


async def _rounds(url: str) -> list[float]:
    """Seconds until the last client is answered, round after round; the first round warms up."""
    async with AsyncExitStack() as stack:
        address = f"ws://{urlsplit(url).netloc}/_stcore/stream"
        clients = []
        for _ in range(CLIENTS):
            socket = connect(address, origin=Origin(url), subprotocols=[Subprotocol("streamlit")], max_size=None, proxy=None)
            clients.append(await stack.enter_async_context(socket))
        boxes = [await _opened(client) for client in clients]
        lasts = []
        for number in range(ROUNDS + 1):
            texts = [browser.letters(LENGTH, 1000 * (number + 1) + who) for who in range(CLIENTS)]
            began = time.perf_counter()
            await asyncio.gather(*map(_enter, clients, boxes, texts))
            lasts.append(time.perf_counter() - began)
        return lasts[1:]


async def _received(client: ClientConnection) -> ForwardMsg:
    message = ForwardMsg()
    message.ParseFromString(await client.recv(decode=False))
    return message


async def _opened(client: ClientConnection) -> str:
    """Opens the page; the id of its box."""
    await client.send(BackMsg(rerun_script=ClientState()).SerializeToString())
    box = ""
    while not (message := await _received(client)).HasField("script_finished"):
        field = message.delta.new_element.text_input
        box = field.id if field.label == "Source text" else box
    assert box, "the page has no box for a text"
    return box


async def _enter(client: ClientConnection, box: str, text: str) -> None:
    """Types a text, and waits until the page has been made."""
    state = ClientState()
    state.widget_states.widgets.add(id=box, string_value=text)
    await client.send(BackMsg(rerun_script=state).SerializeToString())
    while not (await _received(client)).HasField("script_finished"):
        pass
