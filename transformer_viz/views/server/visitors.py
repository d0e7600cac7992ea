"""Each browser gets a secret of its own, by which it is known again, and the owner's browser is told from the others.

Both are cookies that no script can read (`HttpOnly`) and that other sites' pages cannot use (`SameSite`). Neither is ever part
of a link: the owner's address is answered with the same one without the token, before the page is there.
"""

import re
import secrets
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_viz.views.server import greeting, owner
from transformer_viz.views.server.refusal import refuse

FORBIDDEN, SEE_OTHER = 403, 303
COOKIE = "transformer_viz_browser"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_YEAR = 365 * 24 * 3600


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
        if request is None:
            await self._app(scope, receive, send)
        elif given := request.query_params.getlist(owner.PARAMETER):
            if owner.redeem(given[-1]):
                print(greeting.for_owner(), flush=True)
            elif not owner.has_cookie(request.cookies):
                await refuse(scope, receive, send, FORBIDDEN, _WRONG)
                return
            await _without_token(request)(scope, receive, send)
        elif "text/html" in request.headers.get("accept", "") and token_in(request.cookies) is None:
            await self._app(scope, receive, _with_token(send, _is_encrypted(request)))
        else:
            await self._app(scope, receive, send)


_WRONG = (
    "A link for this server's owner works once, and this one was used or is of another start; the terminal shows the one "
    "that works. Without its last part, from ?owner on, everybody can open the page."
)


def token_in(cookies: Mapping[str, str]) -> str | None:
    """The browser's secret; None where it sent none, or none of ours."""
    given = cookies.get(COOKIE, "")
    return given if _TOKEN.fullmatch(given) else None


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def _without_token(request: Request) -> Response:
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != owner.PARAMETER]
    # One slash: after two, a browser would take what follows for another server.
    path = "/" + quote(request.scope["path"].lstrip("/"))
    response = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, SEE_OTHER, {"cache-control": "no-store"})
    _set(response, owner.cookie_name(), owner.cookie_value(), _is_encrypted(request), None)
    return response


def _with_token(send: Send, is_encrypted: bool) -> Send:
    response = Response()
    _set(response, COOKIE, new_token(), is_encrypted, _YEAR)

    async def with_token(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.append("set-cookie", response.headers["set-cookie"])
            headers["cache-control"] = "private, no-cache"  # no proxy hands one browser's secret to another
        await send(message)

    return with_token


def _set(response: Response, name: str, value: str, is_encrypted: bool, seconds: int | None) -> None:
    # Lax: with Strict a browser that follows a link from elsewhere would look like a new one, and lose its secret to another.
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=is_encrypted)


def _is_encrypted(request: Request) -> bool:
    return request.scope.get("scheme") == "https"
