"""Streamlit's own files, plotly.js and the scripts of components, out of memory.

Before it shows a word, a new browser asks for a hundred small scripts, and Streamlit's server takes 2 ms for each to look it
up on disk. Here each is read once, and what goes to another machine is compressed: a class that opens the same address at
the same moment waits for the network.
"""

import asyncio
import gzip
import ipaddress
import mimetypes
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

_COMPRESSED = (".js", ".css", ".json", ".svg")
# A file's name changes with its contents.
_FOR_EVER = "public, immutable, max-age=31536000"
# Who asks so has a part of a file, or an older one: Streamlit knows how to answer.
_NOT_WHOLE = {b"range", b"if-range", b"if-none-match", b"if-modified-since"}
Read = Callable[[], bytes]
"""Reads a file."""
_NOTHING: Mapping[str, Read] = MappingProxyType({})


class Answer(NamedTuple):
    """What is sent."""

    headers: list[tuple[bytes, bytes]]
    body: bytes


class Files:
    """ASGI middleware: answers what asks for one of the files as a whole, and passes on everything else.

    Args:
        app: what it passes on to.
        folder: Streamlit's, with the folder `static`. No file is read that was not there at the beginning.
        beside: files that lie beside the page, wherever that is, by the names that change with what is in them.
    """

    def __init__(self, app: ASGIApp, folder: Path, beside: Mapping[str, Read] = _NOTHING) -> None:
        self._app = app
        self._own = {f"/{path.relative_to(folder).as_posix()}": path.read_bytes for path in sorted(folder.glob("static/*/*.*"))}
        self._beside = beside
        self._answers: dict[tuple[str, bool], Answer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or passes on."""
        asked = scope.get("path", "")
        name = asked if asked in self._own else asked.rpartition("/")[2]
        read = self._own.get(name) or self._beside.get(name)
        if read is None or not _is_plain(scope):
            await self._app(scope, receive, send)
            return
        answer = await self._answer(name, read, name.endswith(_COMPRESSED) and _wants_compressed(scope))
        await send({"type": "http.response.start", "status": 200, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, name: str, read: Read, compressed: bool) -> Answer:
        if (name, compressed) not in self._answers:
            # In a thread, since plotly.js takes a quarter of a second to compress, in which others want something too.
            self._answers[name, compressed] = await asyncio.to_thread(_made, name, read, compressed)
        return self._answers[name, compressed]


def _made(name: str, read: Read, compressed: bool) -> Answer:
    body = gzip.compress(read(), 6, mtime=0) if compressed else read()
    headers = {
        "content-type": _kind(name),
        "content-length": str(len(body)),
        "cache-control": _FOR_EVER,
        **({"vary": "Accept-Encoding"} if name.endswith(_COMPRESSED) else {}),
        **({"content-encoding": "gzip"} if compressed else {}),
    }
    return Answer([(name.encode(), value.encode()) for name, value in headers.items()], body)


def _is_plain(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "GET" and _NOT_WHOLE.isdisjoint(name for name, _ in scope["headers"])


def _wants_compressed(scope: Scope) -> bool:
    """On one machine nothing is gained by it, and both ends would have to work."""
    return not _is_same_machine(scope) and any(
        name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"]
    )


def _is_same_machine(scope: Scope) -> bool:
    host = (scope.get("client") or ("127.0.0.1",))[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _kind(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
