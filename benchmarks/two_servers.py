"""Sixty visitors of two servers behind nginx, by the files of `deploy/`: Enters a second beside one server, and one is killed.

The visitors are websockets that draw nothing. They, nginx and the servers share this machine's cores: with more of them than
two the second server brings more than is said here.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from benchmarks import browser, clients, proxy, served
from benchmarks.measure import Line, Number, Report, Skipped, Target, orders
from benchmarks.strangers import Place
from benchmarks.visitor import Visitor, visitor

TITLE = "sixty visitors, two servers behind nginx"
VISITORS, ROUNDS, LENGTH = 60, 6, 14
COOKIE = "transformer_viz_server"
TARGETS = {
    "ratio": Target("Enters a second with two servers, beside one", "at least", 1.2, "×"),
    "back": Target("a server is killed: until the last of its visitors has its view again", "at most", 10.0, "s"),
    "same": Target("… share of them that have the same view", "at least", 1.0, ""),
}


def measure(report: Report) -> None:
    """One server and two of the same kind in turns, each behind an nginx; then one of the two is killed."""
    if proxy.program("nginx") is None:
        raise Skipped("nginx is not installed")
    with ExitStack() as stack:
        alone, *both = (stack.enter_context(served.server()) for _ in range(3))
        one, two = (stack.enter_context(proxy.nginx([_port(each) for each in servers])) for servers in ([alone], both))
        asyncio.run(_load(report, {"one server": (one, [alone]), "two servers": (two, both)}))
        asyncio.run(_kill(report, Place(two), both))


def _port(server: served.Server) -> int:
    return urlsplit(server.url).port or 0


async def _load(report: Report, behind: dict[str, tuple[served.Server, Sequence[served.Server]]]) -> None:
    """All press Enter in the same moment, again and again."""
    rates: dict[str, list[float]] = {name: [] for name in behind}
    spent: dict[str, list[float]] = {name: [] for name in (*behind, "visitors")}
    async with AsyncExitStack() as stack:
        rooms = {name: await stack.enter_async_context(_room(Place(door))) for name, (door, _) in behind.items()}
        # The first round warms up.
        for number, order in zip(range(ROUNDS + 1), cycle(orders(list(behind))), strict=False):
            for name in order:
                servers, before = behind[name][1], (time.process_time(), sum(map(_busy, behind[name][1])))
                seconds = await _round(rooms[name], number)
                if number:
                    rates[name].append(VISITORS / seconds)
                    spent["visitors"].append(1000 * (time.process_time() - before[0]) / VISITORS)
                    spent[name].append(1000 * (sum(map(_busy, servers)) - before[1]) / VISITORS)
    ours, other = (Number.of(name, rates[name]) for name in ("two servers", "one server"))
    line = report.add(Line(f"Enters a second, {VISITORS} in the same moment", ours, other, "/s", ROUNDS * VISITORS, "more"))
    report.values["ratio"] = line.ratio
    words = ", ".join(f"{name} {Number.of(name, found).value:.0f} ms" for name, found in spent.items())
    report.remark(f"processor time of an Enter: {words}")


@asynccontextmanager
async def _room(place: Place) -> AsyncGenerator[list[tuple[ClientConnection, str]]]:
    """Pages that are open, with the box of each."""
    async with AsyncExitStack() as stack:
        there = [await stack.enter_async_context(place.socket(cookie=await cookie(place))) for _ in range(VISITORS)]
        yield [(client, await clients.opened(client)) for client in there]


async def cookie(place: Place, before: str = "") -> str:
    """What a browser does before it connects: the cookie with which it is sent on, from the one that it has."""
    answer = await place.ask("health", "GET", "/_stcore/health", cookie=before)
    given = [text.partition(";")[0] for text in answer.headers.get_all("set-cookie", [])]
    return next((text for text in given if text.startswith(COOKIE)), before)


async def _round(room: list[tuple[ClientConnection, str]], number: int) -> float:
    """Seconds until the last is answered."""
    began = time.perf_counter()
    texts = [browser.letters(LENGTH, 1000 * (number + 1) + who) for who in range(len(room))]
    await asyncio.gather(*(clients.enter(*page, text) for page, text in zip(room, texts, strict=True)))
    return time.perf_counter() - began


def _busy(server: served.Server) -> float:
    """Seconds of processor time that a server has used; none where the system does not tell."""
    status = Path(f"/proc/{server.pid}/stat")
    fields = status.read_text().rpartition(")")[2].split() if status.exists() else []
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


async def _kill(report: Report, place: Place, servers: Sequence[served.Server]) -> None:
    """Sixty look at views of their own; those of the server that is killed come back to them, the others notice nothing."""
    links = [f"text={browser.letters(LENGTH, 7000 + who)}&layer=2&head={1 + who % 4}&step=4" for who in range(VISITORS)]
    async with AsyncExitStack() as stack:
        cookies = [await cookie(place) for _ in links]
        guests = [await stack.enter_async_context(visitor(place, given)) for given in cookies]
        views = [await _view(guest, link) for guest, link in zip(guests, links, strict=True)]
        everybody = list(zip(guests, cookies, links, views, strict=True))
        lost = [each for each in everybody if each[1] == f"{COOKIE}={_port(servers[0])}"]
        began = time.perf_counter()
        os.kill(servers[0].pid, signal.SIGKILL)
        back = await asyncio.gather(*(_back(place, *each[:3], began) for each in lost))
        kept = [await _view(guest, link) == view for guest, given, link, view in everybody if f"{_port(servers[1])}" in given]
    same = [found == view for (_, found), (*_, view) in zip(back, lost, strict=True)]
    report.values["back"], report.values["same"] = max(seconds for seconds, _ in back), sum(same) / len(same)
    report.remark(
        f"a server is killed: {sum(same)} of its {len(same)} visitors have the same view from the other, the last after "
        f"{report.values['back']:.1f} s; the {len(kept)} of the other still have theirs: {all(kept)}"
    )


async def _back(place: Place, guest: Visitor, before: str, link: str, began: float) -> tuple[float, dict[str, Any]]:
    """What a page does that has lost its server; the seconds since then, and what it shows."""
    with suppress(ConnectionClosed):
        await guest.until(lambda: False)
    async with visitor(place, await cookie(place, before)) as again:
        view = await _view(again, link)
        return time.perf_counter() - began, view


async def _view(guest: Visitor, link: str) -> dict[str, Any]:
    """Opens a link; what the player shows, without the number of its run."""
    await guest.open(link)
    await guest.until_drawn()
    return {name: value for name, value in guest.strips.items() if name != "run"}
