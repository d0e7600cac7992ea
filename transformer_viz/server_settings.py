"""The settings of the app's server: who may reach it, and its limits. What others see is in `app_folders`.

They are environment variables, so that they hold for `streamlit run app.py` as for the command `app`.
"""

import ipaddress
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields

from transformer_viz import app_folders
from transformer_viz.errors import OptionError

HOSTS_VARIABLE = "TRANSFORMER_VIZ_ALLOW_HOSTS"
FRAMED_BY_VARIABLE = "TRANSFORMER_VIZ_FRAMED_BY"
NO_TRAINING_VARIABLE = "TRANSFORMER_VIZ_NO_TRAINING"
OPENS_VARIABLE = "TRANSFORMER_VIZ_OPENS"
"""The model that the browser of whoever starts the app opens with."""
CAN_PASS_LOCKS_ON = sys.platform != "win32"
_MB = 2**20
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_LONGEST_HOST = 253


@dataclass(frozen=True)
class Limits:
    """The limits of the server; each is set by `variable(name)`."""

    upload_bytes: int = 512 * _MB
    """Uploaded files that are held or arriving, of all sessions together."""
    upload_bytes_per_session: int = 192 * _MB
    """Uploaded files that are held or arriving, of one session."""
    trained_bytes: int = 2 * 10**9
    """Bytes of the trainings that are here, and of what a training that is to start would write."""
    run_seconds: int = 300
    """In which a long run has to end; what it has written until then is kept."""
    runs_waiting: int = 30
    """Long runs that wait for the one that is at work."""


def variable(limit: str) -> str:
    """The environment variable of a limit, as `TRANSFORMER_VIZ_MAX_RUN_SECONDS`."""
    return f"TRANSFORMER_VIZ_MAX_{limit.upper()}"


def limits() -> Limits:
    """Reads the limits that the environment sets, and the defaults.

    Raises:
        OptionError: a variable holds something else than a whole number from 1.
    """
    given = {field.name: os.environ.get(variable(field.name), "").strip() for field in fields(Limits)}
    for name, text in given.items():
        if text and not re.fullmatch(r"0*[1-9][0-9]{0,17}", text, re.ASCII):
            raise OptionError(f"{variable(name)} is {text[:40]!r}. It takes a whole number from 1, without a unit.")
    return Limits(**{name: int(text) for name, text in given.items() if text})


def trains() -> bool:
    """Tells whether people may train from the page. Only a plain no leaves it open where the variable is set.

    On Windows they may not: a training of the page holds a lock that it got from the server, which only POSIX can pass on.
    """
    return CAN_PASS_LOCKS_ON and not app_folders.is_on(NO_TRAINING_VARIABLE)


def share_if_reachable(address: str) -> None:
    """Turns `app_folders.is_shared` on, in the environment, where others can reach the server without anybody having said so.

    Args:
        address: where the server listens; empty = everywhere.
    """
    if not is_loopback(address) or allowed_hosts():
        os.environ[app_folders.SHARED_VARIABLE] = "1"


def is_loopback(host: str) -> bool:
    """Tells whether a host's name or address, without brackets, leads to this machine only."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts() -> tuple[str, ...]:
    """The names in the environment, checked.

    Raises:
        OptionError: one of them is not a host's name.
    """
    return _hosts(HOSTS_VARIABLE)


def framed_by() -> tuple[str, ...]:
    """The hosts whose pages, over https, may show the app inside; none unless the environment names some.

    Raises:
        OptionError: one of them is not a host's name.
    """
    return _hosts(FRAMED_BY_VARIABLE)


def _hosts(variable: str) -> tuple[str, ...]:
    return tuple(host(name) for name in re.split(r"[,\s]+", os.environ.get(variable, "")) if name)


def allow_hosts(names: Iterable[str]) -> None:
    """Adds names to the environment, from which the server takes them.

    Raises:
        OptionError: one of them is not a host's name.
    """
    if together := dict.fromkeys([*allowed_hosts(), *map(host, names)]):
        os.environ[HOSTS_VARIABLE] = ",".join(together)


def host(name: str) -> str:
    """A host's name as browsers send it: lower case, in ASCII. `*.` before it stands for all names under it.

    Raises:
        OptionError: it is none.
    """
    try:
        plain = name.strip().rstrip(".").encode("idna").decode().lower()
    except UnicodeError:
        plain = ""
    if len(plain) > _LONGEST_HOST or not _HOST.fullmatch(plain):
        raise OptionError(
            f"{name[:60]!r} is not the name of a host. Allowed is a name alone, as in viz.example.org, or *.example.org for "
            "every name under it, without http://, port or path. (Addresses in digits are always answered.)"
        )
    return plain
