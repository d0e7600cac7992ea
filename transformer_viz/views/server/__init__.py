"""Additions to Streamlit's server: checks of requests and uploads, plotly.js as one file, and warming up.

Nothing heavy is imported here.
"""

import asyncio
import gzip
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from transformer_viz import app_folders, server_settings
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.viewer import plotly_js
from transformer_viz.views.cache import sent_runs
from transformer_viz.views.components import viewer_script
from transformer_viz.views.server import opening, visitors, warm_up
from transformer_viz.views.server.guard import Guard
from transformer_viz.views.server.messages import Messages
from transformer_viz.views.server.unknown_pages import UnknownPages
from transformer_viz.views.server.uploads import Uploads
from transformer_viz.views.server.visitors import Visitors

_MISTAKE = 2


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncGenerator[None]:
    """The server's life: what is begun as it starts; nothing has to be ended."""
    warm_up.begin()
    opening.open_browser()
    print(f"\nTransformer Viz is at {opening.here()} - Ctrl-C stops it.")
    if others := opening.for_others():
        print(f"Others in the room open {others}")
    if app_folders.is_shared():
        print(f"You alone, to manage everybody's trainings, open this once: {visitors.owner_link()}")
    print(flush=True)
    yield


def middleware() -> list[Middleware]:
    """The middleware that a request passes on its way to Streamlit, in order.

    Raises:
        SystemExit: a setting in the environment cannot be; the terminal says which.
    """
    # On Streamlit's Community Cloud secrets.toml alone sets variables; Streamlit itself reads it later.
    st.secrets.load_if_toml_exists()
    try:
        limits, hosts, framed_by = server_settings.limits(), server_settings.allowed_hosts(), server_settings.framed_by()
        server_settings.share_if_reachable(st.get_option("server.address") or "")
    except OptionError as error:
        print(f"transformer_viz: {error}", file=sys.stderr)
        raise SystemExit(_MISTAKE) from None
    return [
        Middleware(Guard, allowed=hosts, preload=_path(plotly_js.name()), framed_by=framed_by),
        Middleware(UnknownPages),
        Middleware(Visitors),
        Middleware(Uploads, limits=limits),
        Middleware(Messages),
    ]


def routes() -> list[Route]:
    """plotly.js beside the page, which a browser fetches once: a new release has a new name."""
    run = _path("run/{name:str}")
    return [
        Route(_path(plotly_js.name()), _plotly),
        *(Route(_path(name), _viewer) for name in viewer_script.texts()),
        Route(run, _run),
        Route(f"{run}/{{kind:str}}/{{layer:int}}/{{head:str}}", _part_of_run),
    ]


def _path(name: str) -> str:
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}/{name}" if base else f"/{name}"


async def _viewer(request: Request) -> Response:
    headers = {"cache-control": "public, immutable, max-age=31536000"}
    script = viewer_script.texts()[request.url.path.rpartition("/")[2]]
    return Response(script, headers=headers, media_type="text/javascript")


async def _run(request: Request) -> Response:
    """A run's numbers, for the session that has been given its name."""
    run = sent_runs.fetched(request.path_params["name"])
    return _GONE if run is None else _json(run.packed)


async def _part_of_run(request: Request) -> Response:
    """The numbers of one head."""
    name, kind, layer, head = (request.path_params[key] for key in ("name", "kind", "layer", "head"))
    if (run := sent_runs.fetched(name)) is None:
        return _GONE
    try:
        part = await asyncio.to_thread(run.part, kind, layer, int(head) if head.isdigit() and len(head) < 5 else head)
    except TransformerVizError as error:
        return Response(str(error), 404, media_type="text/plain")
    return JSONResponse(part, headers=_KEPT)


def _json(data: bytes) -> Response:
    return Response(data, headers={**_KEPT, "content-encoding": "gzip"}, media_type="application/json")


_KEPT = {"cache-control": "private, immutable, max-age=3600"}
_GONE = Response("This run is not kept any more. Load the page again.", 404, media_type="text/plain")


async def _plotly(request: Request) -> Response:
    headers = {"cache-control": "public, immutable, max-age=31536000", "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return FileResponse(plotly_js.path(), headers=headers)
    # Streamlit would compress it again for each browser: a quarter of a second in which nobody else is answered.
    body = await asyncio.to_thread(_compressed_plotly)
    return Response(body, headers={**headers, "content-encoding": "gzip"}, media_type="text/javascript")


@cache
def _compressed_plotly() -> bytes:
    return gzip.compress(plotly_js.path().read_bytes(), mtime=0)
