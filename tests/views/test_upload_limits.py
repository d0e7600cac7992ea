"""What stands in front of Streamlit's uploads: a session, and all together, hold no more than they are given."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from starlette.responses import Response

from tests.views.asgi import Answer, asked, scope
from transformer_viz import server_settings
from transformer_viz.server_settings import Limits
from transformer_viz.views.server import uploads
from transformer_viz.views.server.uploads import FILES_PER_SESSION, Uploads

Stored = dict[str, dict[str, SimpleNamespace]]


@pytest.fixture
def stored(monkeypatch) -> Stored:
    """What Streamlit holds, by session and file."""
    stored: Stored = defaultdict(dict)
    monkeypatch.setattr(uploads, "stored", lambda: stored)
    return stored


@pytest.fixture
def app(stored) -> Uploads:
    async def store(request, receive, send):
        """Reads a body to its end and keeps it, as Streamlit does."""
        *_, session, file = request["path"].split("/")
        data, more = b"", request["method"] == "PUT"
        while more:
            message = await receive()
            data, more = data + message["body"], message["more_body"]
        stored[session][file] = SimpleNamespace(data=data)
        await Response("", 204)(request, receive, send)

    return Uploads(store, Limits(upload_bytes=100, upload_bytes_per_session=60))


def upload(session: str, file: str, n_bytes: int) -> tuple[dict, dict]:
    request = scope(f"/_stcore/upload_file/{session}/{file}", method="PUT", content_length=str(n_bytes))
    return request, {"type": "http.request", "body": b"x" * n_bytes, "more_body": False}


@pytest.fixture
def put(app) -> Callable[..., Answer]:
    return lambda *what: asyncio.run(asked(app, *upload(*what)))


def test_a_session_holds_no_more_than_its_share(put, stored):
    assert [put("a", "1", 50).status, put("a", "2", 10).status] == [204, 204]
    more = put("a", "3", 1)
    assert more.status == 413
    assert server_settings.variable("upload_bytes_per_session").encode() in more.body
    assert put("b", "1", 40).status == 204, "another still may"
    assert {session: set(files) for session, files in stored.items()} == {"a": {"1", "2"}, "b": {"1"}}


def test_all_together_hold_no_more_than_the_server_gives_and_what_streamlit_drops_is_free_again(put, stored):
    assert [put("a", "1", 50).status, put("b", "1", 50).status] == [204, 204]
    more = put("c", "1", 50)
    assert more.status == 413 and server_settings.variable("upload_bytes").encode() in more.body
    del stored["a"]
    assert put("c", "1", 50).status == 204


def test_the_number_of_files_is_bounded(put):
    assert {put("a", str(number), 0).status for number in range(FILES_PER_SESSION)} == {204}
    assert put("a", "more", 0).status == 413
    assert put("b", "1", 0).status == 204


@pytest.mark.parametrize(
    "headers",
    [{}, {"content_length": "x"}, {"content_length": "-1"}, {"content_length": "5", "transfer_encoding": "chunked"}],
    ids=str,
)
def test_an_upload_says_how_long_it_is(app, stored, headers):
    """Guards a body of any length: the server takes no more than was said."""
    request = scope("/_stcore/upload_file/a/1", method="PUT", **headers)
    assert asyncio.run(asked(app, request)).status == 411
    assert not stored


def test_what_arrives_counts_while_it_arrives(app, stored):
    async def life():
        request, _ = upload("a", "1", 50)
        under_way = asyncio.create_task(asked(app, request))
        await asyncio.sleep(0)
        beside = await asked(app, *upload("a", "2", 20))
        under_way.cancel()
        await asyncio.wait([under_way])
        return beside.status, (await asked(app, *upload("a", "2", 20))).status

    assert asyncio.run(life()) == (413, 204)


def test_other_requests_are_not_its_business(app):
    request = scope("/_stcore/upload_file/a/1", method="DELETE", content_length="500")
    assert asyncio.run(asked(app, request)).status == 204
