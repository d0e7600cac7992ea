"""How many messages one connection may send: none of a person's is lost, and of a flood no more than the first are read."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from tests.views.asgi import scope
from transformer_viz.views.server.messages import AT_ONCE, PAUSE, TOO_MANY, WHY, Messages


def connection(times: Iterable[float], handling: float = PAUSE) -> tuple[int, list[dict[str, Any]]]:
    """How many messages are handed on of those that arrive at these times, and what is sent to whoever sent them.

    Args:
        handling: seconds that the app takes for each.
    """
    arriving, handed_on, sent, seconds = [*times], 0, list[dict[str, Any]](), 0.0

    async def receive() -> dict[str, Any]:
        nonlocal seconds
        if not arriving:
            return {"type": "websocket.disconnect", "code": 1005}
        seconds = max(seconds, arriving.pop(0))
        return {"type": "websocket.receive", "bytes": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    async def reads_all(_scope: Any, receive: Any, send: Any) -> None:
        nonlocal handed_on, seconds
        while (await receive())["type"] != "websocket.disconnect":
            handed_on += 1
            seconds += handling
            await send({"type": "websocket.send"})
        if arriving:
            with pytest.raises(OSError, match="closed"):
                await send({"type": "websocket.send"})

    asyncio.run(Messages(reads_all, lambda: seconds)(scope(kind="websocket"), receive, send))
    return handed_on, [message for message in sent if message["type"] != "websocket.send"]


HELD = [n / 30 for n in range(30 * 60)]


@pytest.mark.parametrize(
    ("times", "handling"),
    [
        (HELD, PAUSE),
        (HELD, 2 * PAUSE),
        ([max(4.0, arrives) for arrives in HELD], PAUSE),  # the server was busy for four seconds
        ([second for second in range(0, 60, 5) for _ in range(AT_ONCE)], PAUSE),
    ],
    ids=["held key", "slow server", "busy server", "at once"],
)
def test_no_message_of_a_hand_is_lost(times, handling):
    assert connection(times, handling) == (len(times), [])


@pytest.mark.parametrize("handling", [PAUSE, 1.0])
@pytest.mark.parametrize(("rate", "most"), [(10**9, AT_ONCE), (1 / PAUSE, AT_ONCE), (0.6 / PAUSE, 3 * AT_ONCE)])
def test_of_a_flood_only_the_first_are_handed_on_and_it_is_told_why(rate, most, handling):
    handed_on, told = connection((n / rate for n in range(10_000)), handling)
    assert AT_ONCE <= handed_on <= most
    assert told == [{"type": "websocket.close", "code": TOO_MANY, "reason": WHY}]
    assert len(WHY.encode()) <= 123, "what a close may say"
