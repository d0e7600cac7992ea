"""Thirty people press Enter in the same moment: what the server needs, with clients that draw nothing.

Each is a websocket that types a text of its own into the box and waits until the page has been made. Ten browsers on the
same machine would measure mostly themselves (`sessions`).
"""

import asyncio
import time

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from websockets.asyncio.client import ClientConnection

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Target
from benchmarks.strangers import Place, received

TITLE = "thirty clients that draw nothing press Enter at once"
CLIENTS, ROUNDS, LENGTH = 30, 4, 14
TARGETS = {"answered": Target("the last of thirty is answered, median of the rounds", "at most", 1500, "ms")}


def measure(report: Report) -> None:
    """The app, and a bare page for the same thirty."""
    found = {}
    for name, app in (("ours", served.server()), (browser.PLAIN_NAME, browser.bare())):
        with app as server:
            found[name] = asyncio.run(_rounds(Place(server)))
    for what, pick in (("one of thirty is answered", list[float]), ("the last of thirty is answered", _lasts)):
        ours, bare = (Number.of(name, pick(times)) for name, times in found.items())
        line = report.add(Line(what, ours, bare, "ms", ROUNDS * CLIENTS))
    report.values["answered"] = line.ours.value


def _lasts(times: list[float]) -> list[float]:
    """Of each round."""
    return [max(times[start : start + CLIENTS]) for start in range(0, len(times), CLIENTS)]


async def _rounds(place: Place) -> list[float]:
    """Milliseconds from Enter to the end of the page's run, of every client, round after round."""
    sockets = [place.socket() for _ in range(CLIENTS)]
    clients = [await socket.__aenter__() for socket in sockets]
    try:
        boxes = [await opened(client) for client in clients]
        times: list[float] = []
        for number in range(ROUNDS + 1):
            texts = [browser.letters(LENGTH, 1000 * (number + 1) + who) for who in range(CLIENTS)]
            taken = await asyncio.gather(*map(enter, clients, boxes, texts))
            # The first round warms up.
            times += taken if number else []
        return times
    finally:
        for socket in sockets:
            await socket.__aexit__(None, None, None)


async def opened(client: ClientConnection) -> str:
    """Opens the page; the id of its box."""
    await client.send(BackMsg(rerun_script=ClientState()).SerializeToString())
    box = ""
    while not (message := await received(client)).HasField("script_finished"):
        field = message.delta.new_element.text_input
        box = field.id if field.label == "Source text" else box
    assert box, "the page has no box for a text"
    return box


async def enter(client: ClientConnection, box: str, text: str) -> float:
    """Types a text; milliseconds until the page has been made."""
    state = ClientState()
    state.widget_states.widgets.add(id=box, string_value=text)
    began = time.perf_counter()
    await client.send(BackMsg(rerun_script=state).SerializeToString())
    while not (await received(client)).HasField("script_finished"):
        pass
    return 1000 * (time.perf_counter() - began)
