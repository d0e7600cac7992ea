"""The middleware that refuses requests with a wrong Host or Origin, and adds security headers to every answer.

A browser sends the name in its address bar as `Host`, and the server of the page that asks as `Origin`. The owner of
evil.example can let that name point to 127.0.0.1 (DNS rebinding); then a browser takes pages from there for pages of this
server. So only this machine's own names, allowed names, and IP addresses, which nobody else can own, are answered.
"""

import base64
import hashlib
import ipaddress
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_viz.server_settings import HOSTS_VARIABLE

MISDIRECTED, FORBIDDEN = 421, 403
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+?)\.?)(?::[0-9]{1,5})?")
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STARTS = ("http.response.start", "websocket.http.response.start", "websocket.accept")


class Guard:
    """ASGI middleware: refuses requests to other names and of other servers' pages, and adds headers of security.

    Args:
        app: what it passes on to.
        allowed: names beside this machine's own; `*.example.org` stands for all names under it.
        preload: path of a script that a page needs soon.
        framed_by: hosts whose pages may show the app in a frame, beside its own.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = (), preload: str = "", framed_by: Iterable[str] = ()) -> None:
        self._app, self._names = app, own_names() | set(allowed)
        self._preload = f"<{preload}>; rel=preload; as=script; fetchpriority=low"
        page = (Path(st.__file__).parent / "static" / "index.html").read_text("utf-8")
        framed_by = tuple(framed_by)
        self._headers = {
            "content-security-policy": policy(page, framed_by),
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "same-origin",
            "x-content-type-options": "nosniff",
        }
        if not framed_by:  # which knows no names; old browsers alone need it
            self._headers["x-frame-options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] in _STARTS:
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if headers.get("content-type", "").startswith("text/html"):
                    headers["link"] = self._preload
            await send(message)

        app: ASGIApp = self._app
        if scope["type"] != "lifespan":
            app = self._refusal(Headers(scope=scope)) or app
            # Streamlit asks the internet for this machine's address to judge an Origin, which has been judged here.
            scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"origin"]}
        await app(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        hosts, origins = headers.getlist("host"), set(headers.getlist("origin"))
        if len(hosts) != 1 or not self._is_answered(hosts[0]):
            shown = ", ".join(hosts)[:80].encode("ascii", "backslashreplace").decode()
            return PlainTextResponse(
                f"This server does not answer to the name {shown!r}. Open it by the address that its terminal shows; whoever "
                f"runs it can allow a name with --allow-host NAME, or {HOSTS_VARIABLE}=NAME.\n",
                MISDIRECTED,
            )
        if not origins <= {f"http://{hosts[0]}", f"https://{hosts[0]}"}:
            words = "A page of another server asked for this. That is not allowed. (A proxy has to pass Host on as it is.)\n"
            return PlainTextResponse(words, FORBIDDEN)
        return None

    def _is_answered(self, host: str) -> bool:
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        address, name = found.groups()
        with suppress(ValueError):
            ipaddress.ip_address(address or name)
            return True
        return any(name == known or (known.startswith("*.") and name.endswith(known[1:])) for known in self._names)


def own_names() -> set[str]:
    """The names of this machine that it knows without asking anyone, and those that Streamlit was told of the server."""
    machine = socket.gethostname().rstrip(".")
    label = machine.partition(".")[0]
    told = (st.get_option("server.address"), st.get_option("browser.serverAddress"))
    return {name.lower() for name in ("localhost", machine, label, f"{label}.local", *told) if name}


def policy(page: str, framed_by: Iterable[str] = ()) -> str:
    """The content security policy for a page with such scripts inside, which those hosts may show in a frame.

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
        "frame-ancestors": ["'self'", *(f"https://{name}" for name in framed_by)],
    }
    return "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in allowed.items())
