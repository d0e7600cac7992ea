"""Who runs the server, as far as a browser can show it.

A server that is not shared belongs to whoever sits at this machine. Otherwise the terminal shows a link with a token in it that
works once; the browser that opened it is known by a cookie from then on (`visitors`), until the server ends. Neither is worth
anything after that, so it does no harm where a browser or a shell remembers the link.
"""

import hmac
import secrets
from collections.abc import Mapping
from functools import cache

import streamlit as st

from transformer_viz import serving
from transformer_viz.views.server.hosts import hostname

PARAMETER = "owner"
_FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")
_unused: set[str] = set()
"""Tokens of links that nobody has opened yet."""


def is_owner(cookies: Mapping[str, str], headers: Mapping[str, str], address: str | None) -> bool:
    """Whether a session is the owner's.

    Args:
        cookies: that its browser sent.
        headers: of its handshake.
        address: where it comes from; None = this machine.
    """
    is_here = address is None and not serving.is_shared() and _is_direct(headers)
    return is_here or has_cookie(cookies)


def has_cookie(cookies: Mapping[str, str]) -> bool:
    """Whether a browser has become the owner's since the server started."""
    return hmac.compare_digest(cookies.get(cookie_name(), "").encode(), cookie_value().encode())


@cache
def cookie_value() -> str:
    """What the owner's browsers keep; another one at each start."""
    return secrets.token_urlsafe(32)


def cookie_name() -> str:
    """Browsers keep the cookies of all ports of a machine together."""
    return f"transformer_viz_owner_{st.get_option('server.port')}"


def link(url: str) -> str:
    """The address with a new token, which makes the browser that opens it first the owner's."""
    token = secrets.token_urlsafe(24)
    _unused.add(token)
    return f"{url}{'&' if '?' in url else '?'}{PARAMETER}={token}"


def redeem(given: str) -> bool:
    """Whether this is a token that nobody has used; from now on it is used."""
    found = next((token for token in _unused if hmac.compare_digest(token.encode(), given.encode())), None)
    _unused.discard(found or "")
    return found is not None


def _is_direct(headers: Mapping[str, str]) -> bool:
    """Whether the browser is on this machine, as far as a proxy on it has not hidden the contrary."""
    names = {name.lower() for name in headers}
    hosts = [value for name, value in headers.items() if name.lower() == "host"]
    is_here = bool(hosts) and serving.is_loopback(hostname(hosts[0]) or "")
    return is_here and not any(name.startswith(_FORWARDED) for name in names)
