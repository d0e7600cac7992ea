"""Streamlit's files out of memory: what Streamlit itself answers, for every one of them, and nothing else."""

import asyncio
import gzip
from pathlib import Path
from typing import Any

import plotly
import pytest
import streamlit as st
from plotly.offline import get_plotlyjs
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from tests.views.widgets import widgets
from transformer_viz import views
from transformer_viz.views.components import plotly_js, scripts
from transformer_viz.views.server.files import Files

FOLDER = Path(st.__file__).parent / "static"
LOCAL, OTHER = ("127.0.0.1", 5), ("192.168.1.7", 5)
ACCEPTS = {"accept-encoding": "gzip, deflate, br"}


def ask(app: Any, path: str, client: Any = LOCAL, method: str = "GET", kind: str = "http", **headers: str):
    """Status, headers and body."""
    sent: list[dict] = []

    async def send(message):
        sent.append(message)

    async def receive():
        await asyncio.Event().wait()  # the browser stays

    scope: dict[str, Any] = {
        "type": kind,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
    }
    scope |= {"client": client, "headers": [(n.replace("_", "-").lower().encode(), v.encode()) for n, v in headers.items()]}
    asyncio.run(app(scope, receive, send))
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


async def passed_on(scope, receive, send):
    await send({"type": "http.response.start", "status": 299, "headers": []})


@pytest.fixture(scope="module")
def files() -> Files:
    return Files(passed_on, FOLDER)


@pytest.fixture(scope="module")
def streamlits() -> Any:
    return create_streamlit_static_handler(str(FOLDER), None)


def addresses() -> list[str]:
    return [f"/{path.relative_to(FOLDER).as_posix()}" for path in sorted((FOLDER / "static").rglob("*")) if path.is_file()]


def test_every_file_is_as_streamlit_sends_it(files, streamlits):
    assert len(addresses()) > 100
    for path in addresses():
        status, headers, body = ask(files, path)
        want_status, want, want_body = ask(streamlits, path)
        assert (status, body) == (want_status, want_body) == (200, (FOLDER / path[1:]).read_bytes()), path
        same = ("content-type", "content-length", "cache-control")
        assert [headers.get(name) for name in same] == [want[name] for name in same], path
        assert "content-encoding" not in headers


def test_other_machines_get_the_same_in_less(files):
    plain = packed = 0
    for path in addresses():
        _, headers, body = ask(files, path, OTHER, **ACCEPTS)
        whole = (FOLDER / path[1:]).read_bytes()
        assert headers["content-length"] == str(len(body))
        assert (gzip.decompress(body) if "content-encoding" in headers else body) == whole, path
        assert ("content-encoding" in headers) == path.endswith((".js", ".css", ".json", ".svg"))
        if "content-encoding" in headers:
            assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
            plain, packed = plain + len(whole), packed + len(body)
    assert packed < plain / 2.5


@pytest.mark.parametrize(
    ("client", "headers", "compressed"),
    [
        (OTHER, ACCEPTS, True),
        (("fe80::1", 5), ACCEPTS, True),
        (("a name", 5), ACCEPTS, True),
        (OTHER, {}, False),
        (OTHER, {"accept-encoding": "br"}, False),
        (LOCAL, ACCEPTS, False),
        (("::1", 5), ACCEPTS, False),
        (None, ACCEPTS, False),  # a socket without an address is on this machine
    ],
)
def test_who_gets_it_compressed(files, client, headers, compressed):
    path = next(path for path in addresses() if path.endswith(".css"))
    # Both forms are kept, and neither is given to who asked for the other.
    for _ in range(2):
        assert ("content-encoding" in ask(files, path, client, **headers)[1]) == compressed
        ask(files, path, *((LOCAL,) if compressed else (OTHER,)), **ACCEPTS)


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/health",
        "/static/js/nothing.js",
        "/static",
        "/static/",
        "/static/js",
        "/static/../index.html",
        "/static/js/../../../__init__.py",
        "/static/js/..%2f..%2findex.html",
        "//static/js",
        "/index.html/",
        "/nope",
        "/parts",
        "/server",
        "/__init__",
        "",
        str(FOLDER / "index.html"),
    ],
)
def test_what_is_none_of_its_files_is_passed_on(files, path):
    assert ask(files, path)[0] == 299


def test_only_whole_files_are_its_business(files):
    path = addresses()[0]
    assert ask(files, path, method="HEAD")[0] == 299
    assert ask(files, path, method="POST")[0] == 299
    assert ask(files, path, kind="websocket")[0] == 299
    for name in ("Range", "If-Range", "If-None-Match", "If-Modified-Since"):
        assert ask(files, path, **{name: "bytes=0-3"})[0] == 299


def test_a_file_that_comes_later_is_not_read(tmp_path):
    (tmp_path / "static" / "js").mkdir(parents=True)
    (tmp_path / "static" / "js" / "a.js").write_text("1")
    files = Files(passed_on, tmp_path)
    (tmp_path / "static" / "js" / "b.js").write_text("2")
    assert ask(files, "/static/js/a.js")[2] == b"1"
    assert ask(files, "/static/js/b.js")[0] == 299
    assert ask(files, "/")[0] == 299


@pytest.mark.parametrize("folder", ["", "/behind/a/proxy"])
def test_plotly_is_plotlys_own_and_lies_beside_the_page(folder):
    app = Files(passed_on, FOLDER, beside={plotly_js.NAME: plotly_js.path().read_bytes})
    status, headers, body = ask(app, f"{folder}/{plotly_js.NAME}")
    assert (status, body) == (200, get_plotlyjs().encode())
    assert headers["cache-control"].endswith("immutable, max-age=31536000")
    assert plotly.__version__ in plotly_js.NAME, "a browser keeps it for good"
    assert ask(app, "/plotly-0.0.js")[0] == 299


@pytest.mark.parametrize("script", [scripts.CHART, scripts.PLAYER, scripts.TABS], ids=lambda script: script.title)
def test_a_components_script_lies_beside_the_page_under_a_name_of_its_own_text(script):
    status, headers, body = ask(Files(passed_on, FOLDER, beside=scripts.files()), f"/behind/a/proxy/{script.name}")
    assert (status, body.decode()) == (200, script.text)
    assert headers["content-type"].startswith("text/javascript"), "a browser runs no other module"
    assert f'"{script.name}"' in script.reader
    assert scripts.Script(script.title, "export default () => {}").name != script.name, "a browser keeps it for good"


def test_no_message_about_a_component_carries_its_script(start):
    sent = [widget.node.proto.js_content for widget in widgets(start(text="abc")) if widget.type == "BidiComponent"]
    assert len(sent) > 5
    assert sum(map(len, sent)) < 5_000, "of four charts and a player it would be 200,000"


def test_every_page_of_the_app_has_its_address():
    """Guards a page whose title and folder differ: a link to it would lead nowhere."""
    assert sorted(page.TITLE.lower() for page in views.pages()) == sorted(views.names())
