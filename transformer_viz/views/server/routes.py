"""What of Streamlit's server the app needs. The rest is closed: measurements of the process, the agent API, logins."""

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from transformer_viz.views.server.refusal import refuse

MULTIPLE_CHOICES, NOT_FOUND, METHOD_NOT_ALLOWED = 300, 404, 405
CORE = "/_stcore/"
_NEEDED = {"health", "host-config", "stream", "upload_file", "bidi-components"}
_ASKED_FIRST = {"health", "host-config"}
"""With these a browser that opens a page looks for the server: first below the page, then beside it."""
_CLOSED = ("/auth/login", "/auth/logout", "/oauth2callback")


class Routes:
    """ASGI middleware: answers 404 for what is closed, 405 to a method that nothing here has.

    A browser that looks for the server below a page is told that it is elsewhere with a 300: it must not take the page for the
    server, as it would with 200 or after a redirection, and writes every 404 into its console as an error.

    Args:
        app: what it passes on to.
        pages: names of pages.
        base: the path under which the whole app is, without slashes at its ends.
    """

    def __init__(self, app: ASGIApp, pages: Collection[str] = (), base: str = "") -> None:
        self._app, self._pages, self._base_path = app, frozenset(pages), base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if not _is_open(path, scope["type"] == "websocket"):
            await refuse(scope, receive, send, NOT_FOUND, "There is nothing here.")
        elif self._is_below_a_page(path):
            await refuse(scope, receive, send, MULTIPLE_CHOICES, "The server is not below a page, but beside it.")
        elif scope["type"] == "http" and scope["method"] not in _methods(path):
            await refuse(scope, receive, send, METHOD_NOT_ALLOWED, f"Only {', '.join(_methods(path))} can be asked for here.")
        else:
            await self._app(scope, receive, send)

    def _is_below_a_page(self, path: str) -> bool:
        above, _, asked = path.rpartition(CORE)
        return asked in _ASKED_FIRST and above.rpartition("/")[2] in self._pages and above.strip("/") != self._base_path


def _is_open(path: str, is_websocket: bool) -> bool:
    _, found, rest = path.partition(CORE)
    if is_websocket:
        return bool(found) and rest == "stream"
    return (not found or rest.partition("/")[0] in _NEEDED) and not path.endswith(_CLOSED)


def _methods(path: str) -> tuple[str, ...]:
    return ("PUT", "DELETE") if f"{CORE}upload_file/" in path else ("GET", "HEAD")
