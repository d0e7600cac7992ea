"""What every answer tells the browser: whatever a page of this app were made to do, nothing leaves for another machine."""

import base64
import hashlib
import re
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STARTS = ("http.response.start", "websocket.http.response.start", "websocket.accept")


class SecurityHeaders:
    """ASGI middleware: adds the headers to every answer that passes.

    Args:
        app: what it passes on to.
        page: Streamlit's `index.html`; the scripts inside it may run.
        preload: path of a script that a page needs soon.
    """

    def __init__(self, app: ASGIApp, page: Path, preload: str) -> None:
        self._app, self._preload = app, f"<{preload}>; rel=preload; as=script; fetchpriority=low"
        self._headers = {
            "content-security-policy": policy(page.read_text(encoding="utf-8") if page.is_file() else ""),
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "same-origin",
            "x-content-type-options": "nosniff",
            "x-frame-options": "SAMEORIGIN",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on."""

        async def with_headers(message: Message) -> None:
            if message["type"] in _STARTS:
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if headers.get("content-type", "").startswith("text/html"):
                    headers["link"] = self._preload
            await send(message)

        await self._app(scope, receive, with_headers)


def policy(page: str) -> str:
    """The content security policy for a page with such scripts inside.

    Streamlit styles elements with inline styles, and runs the scripts of components from blobs.
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in _SCRIPT.findall(page)]
    allowed = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "blob:", *(f"'sha256-{digest}'" for digest in hashes)],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "worker-src": ["'self'", "blob:"],
        "manifest-src": ["'self'"],
        "media-src": ["'self'", "blob:"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'self'"],
    }
    return "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in allowed.items())
