"""How many browsers may be connected, and how much one may send in a message."""

import ipaddress
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_viz.serving import Limits, variable
from transformer_viz.views.server.refusal import refuse

UNAVAILABLE = 503
LARGEST_MESSAGE = 2**20
"""Bytes; the state of every control of a page takes a few thousand."""
_UNSUPPORTED, _TOO_BIG = 1003, 1009


class Sessions:
    """ASGI middleware: bounds the number of websockets and the size of what they bring.

    Args:
        app: what it passes on to.
        limits: how many there may be.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._connected: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        address = (scope.get("client") or ("127.0.0.1",))[0]
        if full := self._full(address):
            await refuse(scope, receive, send, UNAVAILABLE, full)
            return
        self._connected[address] += 1
        try:
            await self._app(scope, _bounded(receive, send), send)
        finally:
            self._connected[address] -= 1
            self._connected += Counter()  # addresses without any are forgotten

    def _full(self, address: str) -> str | None:
        """Why no more are let in, or None."""
        if self._connected.total() >= self._limits.sessions:
            return f"{self._limits.sessions} browsers are connected, and no more are let in ({variable('sessions')})."
        if self._connected[address] >= self._limits.sessions_per_address and not is_same_machine(address):
            most, name = self._limits.sessions_per_address, variable("sessions_per_address")
            return f"{most} browsers of your machine are connected, and no more are let in ({name})."
        return None


def is_same_machine(address: str) -> bool:
    """Whether an address is this machine's loopback."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _bounded(receive: Receive, send: Send) -> Receive:
    """The same messages; one that is none of Streamlit's, or too large, ends the connection."""

    async def bounded() -> Message:
        message = await receive()
        if message["type"] != "websocket.receive":
            return message
        content = message.get("bytes")
        if content is not None and len(content) <= LARGEST_MESSAGE:
            return message
        code = _UNSUPPORTED if content is None else _TOO_BIG
        await send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}

    return bounded
