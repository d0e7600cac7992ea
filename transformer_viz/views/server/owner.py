"""Who runs the server, as far as a browser can show it.

A server that only this machine can reach belongs to whoever sits at this machine. Otherwise the terminal shows an address with
a secret in it; a browser that opened it is known by a cookie from then on (`visitors`), until the server ends.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from functools import cache

import streamlit as st

from transformer_viz import serving
from transformer_viz.views.server.hosts import hostname

PARAMETER = "owner"
_LOCAL = "localhost"
_FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")


def is_owner(cookies: Mapping[str, str], headers: Mapping[str, str], address: str | None) -> bool:
    """Whether a session is the owner's.

    Args:
        cookies: that its browser sent.
        headers: of its handshake.
        address: where it comes from; None = this machine.
    """
    return is_value(cookies.get(cookie_name(), "")) or (address is None and is_local() and _is_direct(headers))


def is_local() -> bool:
    """Whether only this machine can reach the server: nobody else is asked in, by an address, a name or a secret."""
    return (
        _is_loopback(str(st.get_option("server.address") or ""))
        and not serving.allowed_hosts()
        and serving.chosen_secret() is None
    )


def is_secret(given: str) -> bool:
    """Whether this is the secret, found out in a time that says nothing about it."""
    return hmac.compare_digest(given.encode(), secret().encode())


def is_value(given: str) -> bool:
    """Whether this is the value of the owner's cookie."""
    return hmac.compare_digest(given.encode(), cookie_value().encode())


@cache
def secret() -> str:
    """Another one at each start, unless whoever starts the server has chosen it."""
    return serving.chosen_secret() or secrets.token_urlsafe(24)


def cookie_name() -> str:
    """Browsers keep the cookies of all ports of a machine together; servers with the same chosen secret share theirs."""
    which = cookie_value()[:8] if serving.chosen_secret() else st.get_option("server.port")
    return f"transformer_viz_owner_{which}"


def cookie_value() -> str:
    """What the browser keeps instead of the secret."""
    return hashlib.sha256(f"owner {secret()}".encode()).hexdigest()


def with_secret(url: str) -> str:
    """The address by which a browser becomes the owner's; the same where it is that already."""
    return url if is_local() else f"{url}{'&' if '?' in url else '?'}{PARAMETER}={secret()}"


def _is_direct(headers: Mapping[str, str]) -> bool:
    """Whether the browser is on this machine, as far as a proxy on it has not hidden the contrary."""
    names = {name.lower() for name in headers}
    hosts = [value for name, value in headers.items() if name.lower() == "host"]
    is_here = bool(hosts) and _is_loopback(hostname(hosts[0]) or "")
    return is_here and not any(name.startswith(_FORWARDED) for name in names)


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == _LOCAL or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
