"""Limits uploads, since Streamlit takes any number of files from anybody connected, whether a page asked for one or not.

What counts is what Streamlit holds, until a page gives it up or two minutes after its browser has gone, and what arrives.
"""

import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime

from transformer_viz.server_settings import Limits, variable

LENGTH_REQUIRED, TOO_LARGE = 411, 413
FILES_PER_SESSION = 16
_PATH = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
_MB = 2**20


class Uploads:
    """ASGI middleware: refuses an upload with which a page, or all together, would hold more than the limits.

    Args:
        app: what it passes on to.
        limits: how many bytes.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._arriving: list[tuple[str, int]] = []
        """Session and bytes of each upload that is under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        match = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if match is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not re.fullmatch(r"[0-9]{1,18}", length):
            await PlainTextResponse("An upload has to say how long it is.\n", LENGTH_REQUIRED)(scope, receive, send)
        elif full := self._full(match[1], int(length)):
            await PlainTextResponse(f"{full}\n", TOO_LARGE)(scope, receive, send)
        else:
            # The server takes no more bytes than the length says.
            upload = (match[1], int(length))
            self._arriving.append(upload)
            try:
                await self._app(scope, receive, send)
            finally:
                self._arriving.remove(upload)

    def _full(self, session: str, n_bytes: int) -> str | None:
        """Why a session may not send so many bytes more, or None."""
        held = [(owner, len(file.data)) for owner, files in list(stored().items()) for file in list(files.values())]
        held += self._arriving
        own = [size for owner, size in held if owner == session]
        if len(own) >= FILES_PER_SESSION:
            return f"This page has uploaded {FILES_PER_SESSION} files, and no more are taken. Remove some, or reload the page."
        for limit, used, whose, way_out in (
            ("upload_bytes_per_session", sum(own), "your page", "Remove one, or reload the page."),
            ("upload_bytes", sum(size for _, size in held), "all pages together", "Try again in a few minutes."),
        ):
            most = getattr(self._limits, limit)
            if used + n_bytes > most:
                words = f"With this file, {whose} would have uploaded more than {most / _MB:.4g} MB, which is all"
                return f"{words} ({variable(limit)}). {way_out}"
        return None


def stored() -> Mapping[str, Mapping[str, Any]]:
    """The uploaded files that Streamlit holds, by session and file."""
    manager: Any = runtime.get_instance().uploaded_file_mgr
    return manager.file_storage
