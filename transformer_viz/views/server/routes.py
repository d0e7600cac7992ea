"""What of Streamlit's server the app needs. The rest is closed: measurements of the process, the agent API, logins."""

from starlette.types import ASGIApp, Receive, Scope, Send

from transformer_viz.views.server.refusal import refuse

NOT_FOUND, METHOD_NOT_ALLOWED = 404, 405
CORE = "/_stcore/"
_NEEDED = {"health", "host-config", "stream", "upload_file", "bidi-components"}
_CLOSED = ("/auth/login", "/auth/logout", "/oauth2callback")


class Routes:
    """ASGI middleware: answers 404 for what is closed, 405 to a method that nothing here has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if not _is_open(path, scope["type"] == "websocket"):
            await refuse(scope, receive, send, NOT_FOUND, "There is nothing here.")
        elif scope["type"] == "http" and scope["method"] not in _methods(path):
            await refuse(scope, receive, send, METHOD_NOT_ALLOWED, f"Only {', '.join(_methods(path))} can be asked for here.")
        else:
            await self._app(scope, receive, send)


def _is_open(path: str, is_websocket: bool) -> bool:
    _, found, rest = path.partition(CORE)
    if is_websocket:
        return bool(found) and rest == "stream"
    return (not found or rest.partition("/")[0] in _NEEDED) and not path.endswith(_CLOSED)


def _methods(path: str) -> tuple[str, ...]:
    return ("PUT", "DELETE") if f"{CORE}upload_file/" in path else ("GET", "HEAD")
