"""Asks an ASGI app as a server asks it, without a server."""

import asyncio
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

PASSED = 299


class Answer:
    """What an app sent: of an http request, or of a handshake."""

    def __init__(self, sent: list[dict[str, Any]]) -> None:
        start = next(message for message in sent if message["type"].endswith(".start"))
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(message.get("body", b"") for message in sent if message["type"].endswith(".body"))


def scope(
    url: str = "/", kind: str = "http", method: str = "GET", scheme: str = "http", client: str = "192.168.1.7", **headers: str
) -> dict[str, Any]:
    path, _, query = url.partition("?")
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    found: dict[str, Any] = {
        "type": kind,
        "scheme": scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": raw,
    }
    found |= {"method": method} if kind == "http" else {"extensions": {"websocket.http.response": {}}, "subprotocols": []}
    return found | {"client": (client, 5)}


async def asked(app: Any, request: dict, *messages: dict) -> Answer:
    sent: list[dict] = []
    queue = list(messages)

    async def receive():
        return queue.pop(0) if queue else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app(request, receive, send)
    return Answer(sent)


def ask(app: Any, url: str = "/", **given: str) -> Answer:
    return asyncio.run(asked(app, scope(url, **given)))


async def passed_on(request, receive, send):
    """Says what `Origin` it was given."""
    origins = [value.decode() for name, value in request["headers"] if name == b"origin"]
    await Response(",".join(origins), PASSED)(request, receive, send)
