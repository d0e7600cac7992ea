"""Sends addresses of unknown pages to Explore, which says so; Streamlit would show a dialog of its own."""

import streamlit as st
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from transformer_viz.views import names
from transformer_viz.views.state.link import UNKNOWN_PAGE

_SEE_OTHER, _LONGEST = 303, 60


class UnknownPages:
    """ASGI middleware: sends a browser that opens no page of ours to the first page, with what it asked for in the query."""

    def __init__(self, app: ASGIApp) -> None:
        base = st.get_option("server.baseUrlPath").strip("/")
        self._app, self._base = app, f"/{base}/" if base else "/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, or sends elsewhere."""
        app: ASGIApp = self._app
        if scope["type"] == "http" and scope["method"] == "GET":
            request, name = Request(scope), scope["path"].removeprefix(self._base).strip("/")
            # A file has a dot, what Streamlit serves has a folder or an underscore; only who opens a page asks for HTML.
            is_page = name and not any(sign in name for sign in "/._") and "text/html" in request.headers.get("accept", "")
            if is_page and name not in names():
                url = request.url.include_query_params(**{UNKNOWN_PAGE: name[:_LONGEST]})
                app = RedirectResponse(f"{self._base}?{url.query}", _SEE_OTHER)
        await app(scope, receive, send)
