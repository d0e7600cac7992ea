"""What stands around Streamlit's server: protection from strangers, files out of memory, and getting ready beforehand.

Nothing heavy is imported here.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.app_session import AppSession

from transformer_viz import serving
from transformer_viz.errors import OptionError
from transformer_viz.views import names
from transformer_viz.views.components import plotly_js, scripts
from transformer_viz.views.server import greeting, opening, running, warm_up
from transformer_viz.views.server.encodings import AcceptedEncodings
from transformer_viz.views.server.files import Files
from transformer_viz.views.server.headers import SecurityHeaders
from transformer_viz.views.server.hosts import Hosts
from transformer_viz.views.server.routes import Routes
from transformer_viz.views.server.sessions import LARGEST_MESSAGE, Sessions
from transformer_viz.views.server.uploads import Uploads
from transformer_viz.views.server.visitors import Visitors

_MISTAKE = 2


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncGenerator[None]:
    """The server's life: what is begun as it starts; nothing has to be ended."""
    warm_up.begin()
    _send_no_path()
    opening.soon()
    running.bound_messages(LARGEST_MESSAGE)
    running.end_quietly()
    print(f"\n{greeting.words()}\n", flush=True)
    yield


def middleware() -> list[Middleware]:
    """What a request passes on its way to Streamlit, in order.

    Raises:
        SystemExit: a setting in the environment cannot be; the terminal says which.
    """
    try:
        limits, hosts = serving.limits(), serving.allowed_hosts()
        serving.share_if_reachable(st.get_option("server.address") or "")
    except OptionError as error:
        print(f"transformer_viz: {error}", file=sys.stderr)
        raise SystemExit(_MISTAKE) from None
    folder = Path(st.__file__).parent / "static"
    return [
        Middleware(SecurityHeaders, page=folder / "index.html"),
        Middleware(Hosts, allowed=hosts),
        Middleware(Routes, pages=names(), base=st.get_option("server.baseUrlPath").strip("/")),
        Middleware(Visitors),
        Middleware(AcceptedEncodings),
        Middleware(Files, folder=folder, beside={plotly_js.NAME: plotly_js.path().read_bytes, **scripts.files()}),
        Middleware(Sessions, limits=limits),
        Middleware(Uploads, limits=limits),
    ]


def _send_no_path() -> None:
    """Streamlit sends every browser the absolute path of `app.py`, which the page never reads."""
    make = AppSession._create_new_session_message

    def make_without_path(*args: Any, **keywords: Any) -> Any:
        message = make(*args, **keywords)
        message.new_session.ClearField("main_script_path")
        return message

    AppSession._create_new_session_message = make_without_path
