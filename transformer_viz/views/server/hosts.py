"""Which names the server answers to, and which pages may talk to it.

A browser sends the name in the address bar as `Host`, and that of the page that asks as `Origin`. Somebody who owns
evil.example can let that name point to 127.0.0.1 (DNS rebinding), and a page from there would then be, for the browser, one
with this server: so only names that this machine is known by are answered, and addresses in digits, which no one else can own.

What passes has an `Origin` that is the `Host`. Given any other, Streamlit asks the internet for this machine's own address,
while everyone else waits.
"""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from transformer_viz.serving import HOSTS_VARIABLE
from transformer_viz.views.server.refusal import refuse

MISDIRECTED, FORBIDDEN = 421, 403
_LONGEST_SHOWN = 80


class Hosts:
    """ASGI middleware: refuses requests to other names, and those of other servers' pages.

    Args:
        app: what it passes on to.
        allowed: names beside this machine's own; `*.example.org` stands for all names under it.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(allowed)
        self._names = self._allowed | own_names()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or refuses."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_answered(hosts[0]):
            await refuse(scope, receive, send, MISDIRECTED, _not_this_server(", ".join(hosts)))
        elif len(origins) > 1 or not all(self._is_welcome(origin, hosts[0]) for origin in origins):
            await refuse(scope, receive, send, FORBIDDEN, "A page of another server asked for this. That is not allowed.")
        else:
            await self._app(_with_origin_of_host(scope), receive, send)

    def _is_answered(self, host: str) -> bool:
        name = hostname(host)
        return name is not None and (_is_address(name) or _is_among(name, self._names))

    def _is_welcome(self, origin: str, host: str) -> bool:
        """A page of this server's own, at the same port; or one of an allowed name, since a proxy may forward no port."""
        scheme, found, netloc = origin.partition("://")
        if not found or scheme not in ("http", "https") or (name := hostname(netloc)) is None:
            return False
        return netloc.lower() == host.lower() or _is_among(name, self._allowed)


def own_names() -> frozenset[str]:
    """What this machine is called without asking anyone, and what Streamlit was told that the server is called."""
    machine = socket.gethostname()
    label = machine.partition(".")[0]
    told = [st.get_option("server.address"), st.get_option("browser.serverAddress"), *st.get_option("server.allowedHosts")]
    names = ["localhost", machine, *([label, f"{label}.local"] if label else []), *(str(name) for name in told if name)]
    return frozenset(name for name in (hostname(text.partition("/")[0]) for text in names) if name)


def hostname(netloc: str) -> str | None:
    """The name in `name:port`, in lower case; None if that is not what it is."""
    try:
        parts = urlsplit(f"//{netloc}")
        port = parts.port
    except ValueError:
        return None
    rest = netloc.removesuffix(f":{port}") if port is not None else netloc
    name = (parts.hostname or "").rstrip(".")
    return name if name and rest.lower().rstrip(".") in (name, f"[{name}]") else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_among(name: str, names: Iterable[str]) -> bool:
    return any(name == known or (known.startswith("*.") and name.endswith(known[1:])) for known in names)


def _with_origin_of_host(scope: Scope) -> Scope:
    headers = MutableHeaders(raw=list(scope["headers"]))
    if "origin" in headers:
        headers["origin"] = f"{headers['origin'].partition(':')[0]}://{headers['host']}"
    return {**scope, "headers": headers.raw}


def _not_this_server(host: str) -> str:
    shown = host[:_LONGEST_SHOWN].encode("ascii", "backslashreplace").decode()
    return (
        f"This server does not answer to the name {shown!r}. Open it by the address that its terminal shows; whoever runs it "
        f"can allow a name with --allow-host NAME, or {HOSTS_VARIABLE}=NAME."
    )
