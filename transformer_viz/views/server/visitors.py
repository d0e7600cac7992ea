"""Tells visitors apart by a cookie, so that a training belongs to its browser and the server to its owner.

Each browser gets a secret of its own, as a cookie that no script can read (`HttpOnly`) and that other sites' pages cannot use
(`SameSite`). A server that is not shared belongs to whoever sits at this machine. Of a shared one the terminal shows a link
with a token in it that works once; the browser that opened it has another cookie from then on, until it is closed or the server
ends. Neither is worth anything after that, so it does no harm where a browser or a shell remembers the link.
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from functools import cache
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_viz import app_folders
from transformer_viz.views.server import opening

FORBIDDEN, SEE_OTHER = 403, 303
COOKIE, OWNER = "transformer_viz_browser", "owner"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_YEAR = 365 * 24 * 3600
_FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")
_LOCAL = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_WRONG = (
    "A link for this server's owner works once, and this one was used or is of another start; the terminal shows the one "
    "that works. Without its last part, from ?owner on, everybody can open the page.\n"
)
_unused: set[str] = set()
"""Tokens of links that nobody has opened yet."""


class Visitors:
    """ASGI middleware: gives a page's browser its secret, if it has none, and takes the owner's token from the address.

    Args:
        app: what it passes on to.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, sends on to the address without the token, or refuses."""
        request = Request(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        app: ASGIApp = self._app
        if request is not None and (given := request.query_params.getlist(OWNER)):
            app = _become_owner(request, given[-1])
        elif request is not None and "text/html" in request.headers.get("accept", "") and token_in(request.cookies) is None:
            send = _with_new_token(request, send)
        await app(scope, receive, send)


def token_in(cookies: Mapping[str, str]) -> str | None:
    """The browser's secret; None where it sent none, or none of ours."""
    given = cookies.get(COOKIE, "")
    return given if _TOKEN.fullmatch(given) else None


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def owner_link() -> str:
    """The app's address with a new token, which makes the browser that opens it first the owner's."""
    token = secrets.token_urlsafe(24)
    _unused.add(token)
    url = opening.here()
    return f"{url}{'&' if '?' in url else '?'}{OWNER}={token}"


def is_owner(cookies: Mapping[str, str], headers: Mapping[str, str], address: str | None) -> bool:
    """Tells whether a session is the owner's.

    Args:
        cookies: that its browser sent.
        headers: of its handshake.
        address: where it comes from; None = this machine.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    # A proxy on this machine would hide where a browser is.
    is_forwarded = any(name.startswith(_FORWARDED) for name in lower)
    is_here = address is None and _LOCAL.fullmatch(lower.get("host", "")) and not is_forwarded
    return (bool(is_here) and not app_folders.is_shared()) or _has_cookie(cookies)


def _has_cookie(cookies: Mapping[str, str]) -> bool:
    return hmac.compare_digest(cookies.get(owner_cookie(), "").encode(), owner_value().encode())


def owner_cookie() -> str:
    """Browsers keep the cookies of all ports of a machine together."""
    return f"transformer_viz_owner_{st.get_option('server.port')}"


@cache
def owner_value() -> str:
    """The cookie's value in the owner's browsers; another one at each start."""
    return new_token()


def _become_owner(request: Request, given: str) -> Response:
    token = next((token for token in _unused if hmac.compare_digest(token.encode(), given.encode())), None)
    if token is None and not _has_cookie(request.cookies):
        return PlainTextResponse(_WRONG, FORBIDDEN)
    if token is not None:
        _unused.remove(token)
        print(f"Another browser becomes the owner's by {owner_link()}", flush=True)
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != OWNER]
    # One slash: after two, a browser would take what follows for another server.
    path = "/" + quote(request.scope["path"].lstrip("/"))
    response = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, SEE_OTHER, {"cache-control": "no-store"})
    _set_cookie(response, request, owner_cookie(), owner_value())
    return response


def _with_new_token(request: Request, send: Send) -> Send:
    response = Response()
    _set_cookie(response, request, COOKIE, new_token(), _YEAR)

    async def send_with_token(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.append("set-cookie", response.headers["set-cookie"])
            headers["cache-control"] = "private, no-cache"  # no proxy hands one browser's secret to another
        await send(message)

    return send_with_token


def _set_cookie(response: Response, request: Request, name: str, value: str, seconds: int | None = None) -> None:
    # Lax: with Strict a browser that follows a link from elsewhere would look like a new one, and lose its secret to another.
    secure = request.scope.get("scheme") == "https"
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=secure)
