"""Who refuses gzip gets none: `Accept-Encoding: gzip;q=0`, which Starlette's compression takes for a wish."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send


class AcceptedEncodings:
    """ASGI middleware: leaves in `Accept-Encoding` what the browser accepts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on."""
        if scope["type"] == "http" and "accept-encoding" in Headers(scope=scope):
            headers = MutableHeaders(raw=list(scope["headers"]))
            headers["accept-encoding"] = ", ".join(accepted(",".join(headers.getlist("accept-encoding"))))
            scope = {**scope, "headers": headers.raw}
        await self._app(scope, receive, send)


def accepted(header: str) -> list[str]:
    """The names in the header, in lower case, without those whose weight is zero (RFC 9110, 12.5.3)."""
    names = []
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        if name and not any(_is_zero(parameter) for parameter in parameters):
            names.append(name)
    return names


def _is_zero(parameter: str) -> bool:
    key, _, value = (part.strip() for part in parameter.partition("="))
    try:
        return key == "q" and float(value) == 0
    except ValueError:
        return False
