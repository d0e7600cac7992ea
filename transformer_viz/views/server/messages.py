"""Limits how many messages a browser sends: Streamlit works through all that have arrived before it answers anybody else."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

AT_ONCE = 200
"""A held key sends 30 a second, of which a server that was busy finds many at once."""
PAUSE = 0.01
"""Seconds from one message to the next, in which others get their turn; of silence after it, that allow one more."""
TOO_MANY, GONE = 1008, 1006
WHY = f"More than {AT_ONCE} messages at once, or {0.5 / PAUSE:.0f} a second for long. The page connects again by itself."


class Messages:
    """ASGI middleware: closes a connection that sends more messages than hands can, and hands none of the rest on.

    Only silence allows more: a server that is slow takes no more from whoever made it so.

    Args:
        app: what it passes on to.
        now: a clock in seconds.
    """

    def __init__(self, app: ASGIApp, now: Callable[[], float] = time.monotonic) -> None:
        self._app, self._now = app, now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, and counts messages."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        allowed, last, is_closed = float(AT_ONCE), self._now(), False

        async def receive_counted() -> Message:
            nonlocal allowed, last, is_closed
            await asyncio.sleep(last + PAUSE - self._now())
            silent_from = self._now()
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            last = self._now()
            allowed = min(AT_ONCE, allowed + (last - silent_from) / PAUSE) - 1
            if allowed < 0 and not is_closed:
                is_closed = True
                with suppress(OSError):  # it is gone already
                    await send({"type": "websocket.close", "code": TOO_MANY, "reason": WHY})
            return {"type": "websocket.disconnect", "code": GONE} if is_closed else message

        async def send_if_open(message: Message) -> None:
            nonlocal is_closed
            if is_closed:
                raise OSError("the connection is closed")  # as a server says it
            try:
                await send(message)
            except OSError:
                is_closed = True
                raise

        await self._app(scope, receive_counted, send_if_open)
