"""What a session's script says goes to the browser in bursts.

Streamlit sends each element once it is there, and its page draws all of itself anew for what comes within 10 ms: five times or
more in a run. Gathered until nothing more comes for a moment, most of a run is one drawing.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

QUIET, LONGEST = 0.015, 0.08
"""Seconds without another word after which a burst goes out, and those after which it does anyway."""
OPENING = 3
"""Seconds in which nothing is gathered: of a page that opens, the text is to be read before the rest is there."""


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
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, message: Message) -> None:
        async with self._lock:
            self._waiting.append(message)
        loop = asyncio.get_running_loop()
        if message["type"] != "websocket.send" or loop.time() < self._begins:
            await self._flush()
            return
        if self._timer is None:
            self._until = loop.time() + LONGEST
        else:
            self._timer.cancel()
        self._timer = loop.call_at(min(loop.time() + QUIET, self._until), self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        async with self._lock:
            while self._waiting:
                await self._send(self._waiting.pop(0))
