"""SmolLM2 writes for one visitor while others use the app: its first token, their answers, Stop, and ten who want it at once.

In Chromium what a person sees; with websockets that draw nothing, the server's part. The model is a real one, which
`benchmarks.smollm2` makes.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from benchmarks import browser, served, smollm2
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from benchmarks.strangers import Place
from benchmarks.visitor import Visitor, visitor
from transformer_viz.places import MODELS_VARIABLE
from transformer_viz.views.server.visitors import COOKIE, new_token

TITLE = "SmolLM2 writes, and others are there"
TRIES, BESIDE, LENGTH = 7, 3, 14
"""Long runs that are begun and stopped, how often another visitor presses Enter beside each, and after how many letters."""
VISITORS = 10
PROMPT = "Once upon a time there was a small town by the sea, where the people told each other long stories of "
TARGETS = {
    "told": Target("Enter until the first token is sent: share of 1.5 passes over the prompt + 400 ms", "at most", 1.0, "×"),
    "first": Target("… until it is seen, likewise", "at most", 1.0, "×"),
    "other": Target("while it writes: another visitor's Enter until the server's last answer, median", "at most", 300, "ms"),
    "own": Target("… the page that watches is made anew, median", "at most", 300, "ms"),
    "memory": Target("the server's memory at its peak, ten visitors", "at most", 2.0, "GB"),
}
_PASSES, _BESIDE_IT = 1.5, 400
_DRAFT = "document.querySelector('.st-key-long-run [data-testid=stText]')?.textContent"
_DRAWN = "!document.querySelector('.st-key-long-run') && bench.focusRun() !== null"


def measure(report: Report) -> None:
    """One after the other, on one server."""
    folder = smollm2.folder()
    one_pass = _one_pass(folder)
    with served.server(environment={MODELS_VARIABLE: str(folder)}) as server:
        asyncio.run(_answers(report, Place(server), folder.name, one_pass))
        try:
            with browser.browser() as running:
                _seen(report, running, server.url, folder.name, one_pass)
        except Skipped as reason:
            report.remark(f"what is seen: skipped: {reason}")
        asyncio.run(_ten(report, server, folder.name))


def _one_pass(folder: Path) -> Callable[[], float]:
    """Takes the milliseconds of one pass over the prompt, by transformers with as many threads as are fastest."""
    import torch

    model = smollm2.theirs(folder)
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids

    def read(n_threads: int) -> None:
        torch.set_num_threads(n_threads)
        with torch.inference_mode():
            model(ids)

    taken = in_turns({str(n): partial(read, n) for n in {1, torch.get_num_threads()}}, budget=5)
    fastest = min(taken, key=lambda n: median(taken[n]))

    def timed() -> float:
        began = time.perf_counter()
        read(int(fastest))
        return 1000 * (time.perf_counter() - began)

    return timed


def _add_first(report: Report, key: str, words: str, first: list[float], passes: list[float]) -> None:
    """The line, and the share of what is allowed; milliseconds."""
    line = report.add(Line(words, Number.of("ours", first), Number.of("one pass over the prompt", passes), "ms", TRIES))
    report.values[key] = line.ours.value / (_PASSES * line.other.value + _BESIDE_IT)


async def _answers(report: Report, place: Place, model: str, one_pass: Callable[[], float]) -> None:
    """What the server needs for the first token, for another visitor, and for the page that watches."""
    first, passes, alone, beside, own = (list[float]() for _ in range(5))
    async with visitor(place) as writer, visitor(place) as other:
        await other.open()
        await other.until_drawn()
        await writer.open(_link(model, "Hello"))
        await writer.until_drawn()
        for number in range(TRIES):
            alone += await _enters(other, 2 * number)
            passes.append(one_pass())
            await writer.enter(_prompt(number))
            first.append(1000 * await writer.until_written())
            watching = asyncio.create_task(writer.until_drawn())
            beside += await _enters(other, 2 * number + 1)
            watching.cancel()
            await asyncio.wait([watching])
            assert writer.is_watching, "it has ended before the other visitor was answered"
            await writer.open()
            own.append(await writer.until_answered())
            await writer.press("Stop")
            await writer.until_drawn()
    _add_first(report, "told", "Enter until the first token is sent", first, passes)
    quiet = _milliseconds("nothing is written", alone)
    for key, words, times in (
        ("other", "another visitor's Enter until the last answer", beside),
        ("own", "the page that watches, made anew", own),
    ):
        line = report.add(Line(words, _milliseconds("while it writes", times), quiet, "ms", len(times)))
        report.values[key] = line.ours.value


async def _enters(other: Visitor, number: int) -> list[float]:
    """Seconds from Enter to the end of the page's run, by `reverse`."""
    times = []
    for place in range(BESIDE):
        began = time.perf_counter()
        await other.enter(browser.letters(LENGTH, BESIDE * number + place))
        await other.until_drawn()
        times.append(time.perf_counter() - began)
    return times


def _seen(report: Report, running: Browser, url: str, model: str, one_pass: Callable[[], float]) -> None:
    """In Chromium: the first token, the other visitor's maps, and Stop."""
    writer = browser.opened(running, f"{url}/?{_link(model, 'Hello')}", drawn=_DRAWN)
    other = browser.opened(running, url)
    first, passes, stop, alone, beside = (list[float]() for _ in range(5))
    for number in range(TRIES):
        alone += _drawn(other, 2 * number)
        passes.append(one_pass())
        browser.prepare(writer, _prompt(TRIES + number), f"({{ first: () => {_DRAFT} }})")
        writer.keyboard.press("Enter")
        first.append(browser.took(writer, pause_ms=0)["first"])
        beside += _drawn(other, 2 * number + 1)
        assert writer.evaluate(_DRAFT), "it has ended before the other visitor's maps were drawn"
        stop.append(_stopped(writer))
    _add_first(report, "first", "Enter until the first token is seen", first, passes)
    number = Number.of("nothing is written", alone)
    words = "another visitor's Enter until all is drawn, both browsers here"
    report.add(Line(words, Number.of("while it writes", beside), number, "ms", len(beside)))
    one = Number.of("one pass over the prompt", passes)
    report.add(Line("Stop until what was written is drawn", Number.of("ours", stop), one, "ms", TRIES))


def _drawn(page: Page, number: int) -> list[float]:
    texts = (browser.letters(LENGTH, -BESIDE * number - place - 1) for place in range(BESIDE))
    return [browser.enter(page, text)["everything"] for text in texts]


def _stopped(page: Page) -> float:
    """Milliseconds from a click on Stop until the maps of what was written until then."""
    page.evaluate(
        "(drawn) => bench.on(document, 'click', () => true, new Function('return ' + drawn))", f"({{ drawn: () => {_DRAWN} }})"
    )
    page.get_by_role("button", name="Stop", exact=True).click()
    return browser.took(page)["drawn"]


async def _ten(report: Report, server: served.Server, model: str) -> None:
    """Ten visitors at once, the first with two tabs: in which order they are served, what each sees, and the memory."""
    before = server.memory()
    cookies = [f"{COOKIE}={new_token()}" for _ in range(VISITORS)]
    names, began = [browser.letters(6, number) for number in range(VISITORS + 1)], list[int]()
    async with AsyncExitStack() as stack:
        guests = [await stack.enter_async_context(visitor(Place(server), cookie)) for cookie in (cookies[0], *cookies)]
        watching = []
        for number, (guest, name) in enumerate(zip(guests, names, strict=True)):
            await guest.open(_link(model, f"It is {name} who"))
            # Each has its place in the line before the next one comes.
            await guest.until_answered()
            watching.append(asyncio.create_task(_to_its_end(guest, number, began)))
        await asyncio.gather(*watching)
    assert began == [0, *range(2, VISITORS + 1), 1], f"they were served in the order {began}, the first two of one visitor"
    for guest, name in zip(guests, names, strict=True):
        seen = "".join(token["text"] for token in guest.strips["output"]) + "".join(guest.drafts)
        assert [other for other in names if other in seen] == [name], f"who typed {name} saw {seen}"
    report.remark(f"{VISITORS} visitors: served as they came, a second tab of the first one last; each saw its own text alone")
    if before is None or (most := server.memory("VmHWM")) is None:
        report.remark("memory: skipped: the system does not tell a process's memory")
        return
    ours, one = Number("ours", most / 1e9), Number("after the runs of one, the model loaded", before / 1e9)
    report.add(Line(f"the server's memory at its peak, {VISITORS} visitors", ours, one, "GB", 1))
    report.values["memory"] = ours.value


async def _to_its_end(guest: Visitor, number: int, began: list[int]) -> None:
    """Watches the run, and notes when it begins to write."""
    await guest.until_written()
    began.append(number)
    await guest.until(lambda: not guest.is_watching)
    guest.forget()


def _prompt(number: int) -> str:
    """Another one for every run."""
    return PROMPT + browser.letters(4, number)


def _link(model: str, text: str) -> str:
    return urlencode({"checkpoint": model, "text": text})


def _milliseconds(name: str, seconds: list[float]) -> Number:
    return Number.of(name, [1000 * each for each in seconds])
