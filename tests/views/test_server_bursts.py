"""What a page says is gathered on its way to the browser: in order, all of it, and never held for long."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from transformer_viz.views.server import bursts
from transformer_viz.views.server.bursts import Bursts

Send = Callable[[dict[str, Any]], Awaitable[None]]


def message(words: str) -> dict[str, Any]:
    return {"type": "websocket.send", "text": words}


async def nothing() -> Any:
    raise AssertionError("nobody listens")


def run(said: Callable[[Send, list[str]], Awaitable[None]], kind: str = "websocket") -> list[str]:
    """What left, of an app that says something."""
    left: list[str] = []

    async def out(message: Any) -> None:
        left.append(message.get("text", message["type"]))

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await said(send, left)

    asyncio.run(Bursts(app)({"type": kind}, nothing, out))
    return left


@pytest.fixture(autouse=True)
def _opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "OPENING", 0)


def test_a_page_that_opens_is_sent_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "OPENING", 1000)

    async def said(send: Send, left: list[str]) -> None:
        await send(message("a"))
        assert left == ["a"]

    assert run(said) == ["a"]


def test_a_burst_leaves_as_one_in_order_and_before_the_end() -> None:
    async def said(send: Send, left: list[str]) -> None:
        await send({"type": "websocket.accept"})
        assert left == ["websocket.accept"]
        for words in "abc":
            await send(message(words))
        assert left == ["websocket.accept"], "gathered"
        await send({"type": "websocket.close"})

    assert run(said) == ["websocket.accept", "a", "b", "c", "websocket.close"]


def test_it_leaves_after_the_longest_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "LONGEST", 0)

    async def said(send: Send, left: list[str]) -> None:
        for words in ("a", "b"):
            await send(message(words))
        async with asyncio.timeout(5):
            while left != ["a", "b"]:
                await asyncio.sleep(0)

    assert run(said) == ["a", "b"]


def test_it_leaves_when_the_script_has_ended() -> None:
    """In Streamlit's own words; that the script runs, and what else it says in a few bytes, are gathered."""

    def status(is_running: bool) -> bytes:
        said = ForwardMsg()
        said.session_status_changed.script_is_running = is_running
        return said.SerializeToString()

    async def said(send: Send, left: list[str]) -> None:
        await send(message("a"))
        await send({"type": "websocket.send", "bytes": status(True)})
        await send({"type": "websocket.send", "bytes": ForwardMsg(script_finished=0).SerializeToString()})
        assert left == []
        await send({"type": "websocket.send", "bytes": status(False)})

    assert run(said) == ["a", *["websocket.send"] * 3]


def test_who_says_more_than_a_browser_takes_waits() -> None:
    """Streamlit's own limit of what waits for a slow browser must stay in force."""
    taken = asyncio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(message("a"))
        closing = asyncio.ensure_future(send({"type": "websocket.close"}))
        await asyncio.sleep(0)
        more = asyncio.ensure_future(send(message("b")))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not more.done()
        taken.set()
        await closing
        await more

    async def slow(message: Any) -> None:
        await taken.wait()

    asyncio.run(Bursts(app)({"type": "websocket"}, nothing, slow))


def test_what_is_no_websocket_passes_untouched() -> None:
    async def said(send: Send, left: list[str]) -> None:
        await send({"type": "http.response.start"})
        assert left == ["http.response.start"]

    assert run(said, "http") == ["http.response.start"]
