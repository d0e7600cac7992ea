"""Thirty people press Enter in the same moment, with clients that draw nothing: thirty browsers would measure themselves.

Each is a websocket that types a text of its own into the box and waits until the page has been made.
"""

import asyncio
import json
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
from transformer_viz.views.components.viewer import TEXT_KEY

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
        boxes = [await _run_page(client, ClientState()) for client in clients]
        assert all(boxes), "the page has no box for a text"
        lasts = []
        for number in range(ROUNDS + 1):
            states = [ClientState() for _ in range(CLIENTS)]
            for who, (state, box) in enumerate(zip(states, boxes, strict=True)):
                text = browser.letters(LENGTH, 1000 * (number + 1) + who)
                if box.endswith(f"-{TEXT_KEY}"):
                    told = {"at": {"text": text, "isEntered": True, "n": number + 1}}
                    state.widget_states.widgets.add(id=box, json_value=json.dumps(told))
                else:
                    state.widget_states.widgets.add(id=box, string_value=text)
            began = time.perf_counter()
            await asyncio.gather(*map(_run_page, clients, states))
            lasts.append(time.perf_counter() - began)
        return lasts[1:]


async def _run_page(client: ClientConnection, state: ClientState) -> str:
    """Waits until the page has been made with a state of its widgets; returns the id of its box for a text."""
    await client.send(BackMsg(rerun_script=state).SerializeToString())
    message, box = ForwardMsg(), ""
    while not message.HasField("script_finished"):
        message.ParseFromString(await client.recv(decode=False))
        element = message.delta.new_element
        # The app's box is a component of its own, that of the bare page Streamlit's.
        if element.bidi_component.id.endswith(f"-{TEXT_KEY}") or element.text_input.label == "Source text":
            box = element.bidi_component.id or element.text_input.id
    return box
