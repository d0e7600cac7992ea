"""How much may be uploaded. Streamlit takes any number of files from whoever is connected, whether a page asked for one or not.

Bytes are counted as they arrive, whatever the request says of its length, and are held until Streamlit has dropped the file:
when a page gives it up, or two minutes after its browser has gone.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from transformer_viz.serving import Limits, variable
from transformer_viz.views.server.refusal import refuse

TIMEOUT, TOO_LARGE = 408, 413
FILES_PER_SESSION = 16
SECONDS = 120.0
"""In which an upload must have arrived."""
_PATH = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)$")
_MB = 2**20

Held = Callable[[str, Sequence[str]], dict[str, int]]


def held(session: str, files: Sequence[str]) -> dict[str, int]:
    """Which of these files Streamlit still has of a session, and their bytes."""
    return {file.file_id: len(file.data) for file in runtime.get_instance().uploaded_file_mgr.get_files(session, files)}


class Uploads:
    """ASGI middleware: refuses an upload that would exceed what a session, or all together, may hold.

    Args:
        app: what it passes on to.
        limits: how many bytes.
        held: which files of a session are still there, and their bytes.
        seconds: within which an upload must have arrived.
    """

    def __init__(self, app: ASGIApp, limits: Limits, held: Held = held, seconds: float = SECONDS) -> None:
        self._app, self._limits, self._held, self._seconds = app, limits, held, seconds
        # Bytes by session and upload. An upload that arrives is a key of its own, since a file may be sent twice.
        self._arriving: defaultdict[str, dict[object, int]] = defaultdict(dict)
        self._files: defaultdict[str, dict[str, int]] = defaultdict(dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        found = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        session, file = found.groups()
        if full := self._full(session, _declared(scope), new=True):
            await refuse(scope, receive, send, TOO_LARGE, full)
            return
        upload = object()
        self._arriving[session][upload] = 0
        try:
            await self._app(scope, self._counted(receive, session, upload), send)
        finally:
            del self._arriving[session][upload]
            self._files[session].setdefault(file, 0)
            self._look()

    def _counted(self, receive: Receive, session: str, upload: object) -> Receive:
        """The same body, until it is too much or takes too long; what is raised then, Starlette answers with."""
        end = asyncio.get_running_loop().time() + self._seconds

        async def counted() -> Message:
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(TIMEOUT, f"The upload had not arrived after {self._seconds:.0f} s.") from None
            n_bytes = len(message.get("body", b""))
            if full := self._full(session, n_bytes):
                raise HTTPException(TOO_LARGE, full)
            self._arriving[session][upload] += n_bytes
            return message

        return counted

    def _full(self, session: str, more: int, *, new: bool = False) -> str | None:
        """Why a session may not send so many bytes more, or None."""
        if self._excess(session, more, new=new):
            self._look()
        return self._excess(session, more, new=new)

    def _excess(self, session: str, more: int, *, new: bool) -> str | None:
        kept = [self._arriving.get(session, {}), self._files.get(session, {})]
        if new and sum(map(len, kept)) >= FILES_PER_SESSION:
            return f"This page has uploaded {FILES_PER_SESSION} files, and no more are taken. Remove some, or reload the page."
        most = self._limits.upload_bytes_per_session
        if sum(sum(files.values()) for files in kept) + more > most:
            name = variable("upload_bytes_per_session")
            words = f"With this file, your page would have uploaded more than {most / _MB:.4g} MB, which is all ({name})."
            return f"{words} Remove one, or reload the page."
        most = self._limits.upload_bytes
        if sum(sum(files.values()) for kind in (self._arriving, self._files) for files in kind.values()) + more > most:
            name = variable("upload_bytes")
            words = (
                f"With this file, all pages would have uploaded more than {most / _MB:.4g} MB together, which is all ({name})."
            )
            return f"{words} Try again in a few minutes."
        return None

    def _look(self) -> None:
        """What Streamlit has dropped counts no more."""
        for session, files in self._files.items():
            self._files[session] = self._held(session, list(files))
        for kind in (self._arriving, self._files):
            for session in [session for session, files in kind.items() if not files]:
                del kind[session]


def _declared(scope: Scope) -> int:
    """The length that a request claims; what is not a number, the server refuses by itself."""
    claimed = Headers(scope=scope).get("content-length", "")
    return int(claimed) if re.fullmatch(r"[0-9]{1,18}", claimed, re.ASCII) else 0
