"""How a request is refused: a status and one plain sentence."""

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send


async def refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
    """Answers a request, or the handshake of a websocket, with text that is never markup."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:100]})
        return
    await PlainTextResponse(f"{sentence}\n", status)(scope, receive, send)
