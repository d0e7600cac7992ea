"""What a session's script says goes to the browser in bursts.

Streamlit sends each element once it is there, and its page draws all of itself anew for what comes within 10 ms: five times or
more in a run. Gathered until the run has ended, most of one is one drawing.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

LONGEST = 0.08
"""Seconds after which a burst goes out though the run has not ended: there is something new to see."""
OPENING = 3
"""Seconds in which nothing is gathered: of a page that opens, the text is to be read before the rest is there."""
_SHORT = 16
"""Bytes that the end of a run is shorter than; longer messages are not read."""


class Bursts:
    """Gathers what goes out through each websocket."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        gathered = send if scope["type"] != "websocket" else _Gathered(send)
        await self.app(scope, receive, gathered)


class _Gathered:
    """The way out of one websocket, in order; who says more while a burst is on its way waits for it."""

    def __init__(self, send: Send) -> None:
        self._send, self._waiting, self._lock = send, list[Message](), asyncio.Lock()
        self._begins = asyncio.get_running_loop().time() + OPENING
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, message: Message) -> None:
        async with self._lock:
            self._waiting.append(message)
        loop = asyncio.get_running_loop()
        if message["type"] != "websocket.send" or loop.time() < self._begins or _ends_run(message):
            await self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(LONGEST, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._lock:
            while self._waiting:
                await self._send(self._waiting.pop(0))


def _ends_run(message: Message) -> bool:
    """Whether Streamlit says that the script runs no more, the last that it says of a run."""
    said = message.get("bytes") or b""
    if not 0 < len(said) < _SHORT:
        return False
    read = ForwardMsg.FromString(said)
    return read.WhichOneof("type") == "session_status_changed" and not read.session_status_changed.script_is_running
