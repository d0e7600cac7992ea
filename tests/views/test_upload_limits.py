"""What stands in front of Streamlit's uploads: a session, and all together, hold no more than they are given."""

import asyncio
from collections.abc import Callable

import pytest
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import Response

from tests.views.asgi import Answer, asked, scope
from transformer_viz import serving
from transformer_viz.serving import Limits
from transformer_viz.views.server.uploads import FILES_PER_SESSION, Uploads


class Files:
    """What Streamlit holds: it reads a body to its end and keeps it, unless it knows the session not."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], int] = {}

    async def __call__(self, request, receive, send):
        *_, session, file = request["path"].split("/")
        if session == "unknown":
            return await Response("", 400)(request, receive, send)
        n_bytes, more = 0, True
        while more:
            message = await receive()
            n_bytes, more = n_bytes + len(message["body"]), message["more_body"]
        self.kept[session, file] = n_bytes
        await Response("", 204)(request, receive, send)

    def held(self, session: str, files: list[str]) -> dict[str, int]:
        return {file: self.kept[session, file] for file in files if (session, file) in self.kept}


@pytest.fixture
def kept() -> Files:
    return Files()


@pytest.fixture
def uploads(kept) -> Uploads:
    """Around it, as around Streamlit, what answers with an HTTPException."""
    return Uploads(ExceptionMiddleware(kept), Limits(upload_bytes=100, upload_bytes_per_session=60), kept.held)


def chunks(*sizes: int) -> list[dict]:
    return [{"type": "http.request", "body": b"x" * size, "more_body": i + 1 < len(sizes)} for i, size in enumerate(sizes)]


@pytest.fixture
def put(uploads) -> Callable[..., Answer]:
    def put(session: str, file: str, *sizes: int, **headers: str) -> Answer:
        request = scope(f"/_stcore/upload_file/{session}/{file}", method="PUT", **headers)
        return asyncio.run(asked(uploads, request, *chunks(*sizes)))

    return put


def test_a_session_holds_no_more_than_its_share(put, kept):
    assert [put("a", "1", 40, 10).status, put("a", "2", 10).status] == [204, 204]
    more = put("a", "3", 1)
    assert more.status == 413
    assert serving.variable("upload_bytes_per_session").encode() in more.body
    assert put("b", "1", 40).status == 204, "another still may"
    assert set(kept.kept) == {("a", "1"), ("a", "2"), ("b", "1")}


def test_all_together_hold_no_more_than_the_server_gives(put):
    assert [put("a", "1", 50).status, put("b", "1", 50).status, put("c", "1", 1).status] == [204, 204, 413]
    assert serving.variable("upload_bytes").encode() in put("c", "1", 1).body


def test_the_length_that_is_claimed_is_believed_only_if_it_is_too_large(put, kept):
    assert put("a", "1", content_length="61").status == 413
    assert put("a", "1", 30, 31, content_length="5").status == 413
    assert put("a", "1", 61, content_length="x").status == 413
    assert put("a", "1", 61, content_length="9" * 30).status == 413
    assert not kept.kept


def test_what_streamlit_drops_is_free_again(put, kept):
    assert [put("a", "1", 50).status, put("b", "1", 50).status, put("c", "1", 50).status] == [204, 204, 413]
    del kept.kept["a", "1"]
    assert put("c", "1", 50).status == 204


def test_a_refused_upload_leaves_the_earlier_file_counted(put):
    """Under the same name: what arrived last was less than what is held."""
    assert [put("a", "1", 50).status, put("a", "1", 5, 50).status, put("a", "2", 11).status] == [204, 413, 413]
    assert put("a", "1", 10).status == 204, "while a file is replaced there are two"
    assert put("a", "2", 50).status == 204


def test_the_number_of_files_is_bounded(put, uploads):
    assert {put("a", str(number), 0).status for number in range(FILES_PER_SESSION)} == {204}
    assert put("a", "more", 0).status == 413


def test_an_unknown_session_is_not_remembered(put, uploads):
    for number in range(100):
        assert put("unknown", str(number)).status == 400
    assert not uploads._files and not uploads._arriving


def test_what_arrives_counts_while_it_arrives(uploads, kept):
    async def life():
        first, second = (scope(f"/_stcore/upload_file/a/{file}", method="PUT") for file in "12")
        begun = asyncio.create_task(asked(uploads, first, *chunks(50, 1)[:1]))
        while not uploads._arriving.get("a") or 50 not in uploads._arriving["a"].values():
            await asyncio.sleep(0)
        beside = await asked(uploads, second, *chunks(20))
        begun.cancel()
        await asyncio.wait([begun])
        return beside.status, (await asked(uploads, second, *chunks(20))).status

    assert asyncio.run(life()) == (413, 204)


def test_a_body_that_does_not_come_is_given_up(kept):
    uploads = Uploads(ExceptionMiddleware(kept), Limits(upload_bytes=100), kept.held, seconds=0.01)
    request = scope("/_stcore/upload_file/a/1", method="PUT")
    assert asyncio.run(asked(uploads, request, *chunks(50, 1)[:1])).status == 408
    assert not kept.kept and not uploads._arriving


def test_other_requests_are_not_its_business(uploads, kept):
    async def life():
        return (await asked(uploads, scope("/_stcore/upload_file/a/1", method="DELETE"), *chunks(500))).status

    assert asyncio.run(life()) == 204
