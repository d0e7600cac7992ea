"""A large run on a page and in the app: `python -m benchmarks.large_run [--tokens 512] [--layers 12] [--heads 12]`.

How large its page is and how long it takes to make; in Chromium how long until it is drawn, until another head or step is, and
what it needs of the browser's memory; the same of the app, with what it sends; and bertviz's page of the same numbers, if
bertviz is installed. The run is of a decoder alone, with random weights.
"""

import argparse
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from playwright.sync_api import Browser, Error, Page

import transformer_viz as tv
from benchmarks import browser, served
from benchmarks.random_run import random_decoder

PRESSES = 12
_IS_DRAWN = """() => bench.focusRun() !== null
  && [...document.querySelectorAll('.viewer [data-part=mosaics] .chart')].every((chart) => chart.dataset.run)
  && /head \\d+ looks/.test(document.querySelector('.viewer [data-part=sentence]').textContent)"""
"""The large map, all small ones, and the sentence of the head that is shown, which comes with its numbers."""
_IS_BERTVIZ = "document.querySelectorAll('#vis svg line').length > 0"
_CHOOSE = """(head) => {
  const box = document.querySelector('.viewer [data-box=head]');
  box.value = String(head);
  bench.watch(() => document.querySelector('.viewer [data-part=sentence]').textContent.includes(`head ${head + 1} looks`));
  box.dispatchEvent(new Event('change', { bubbles: true }));
}"""


def main() -> None:
    """Prints all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("tokens", 512), ("layers", 12), ("heads", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    trace = random_decoder(asked.tokens, asked.layers, asked.heads)
    with TemporaryDirectory() as folder, browser.browser() as running:
        for lines in (page_lines, app_lines, bertviz_lines):
            for line in lines(running, trace, Path(folder)):
                print(line, flush=True)


def page_lines(running: Browser, trace: tv.Trace, folder: Path) -> Iterator[str]:
    """An exported page."""
    started = time.perf_counter()
    file = tv.export.save(trace, folder / "page.html")
    yield f"a page: {file.stat().st_size / 1e6:.1f} MB, made in {time.perf_counter() - started:.1f} s"
    yield f"a notebook cell: {len(tv.export.frame(trace)) / 1e6:.1f} MB"
    yield f"the page opens in {browser.visit(running, file.as_uri(), f'({_IS_DRAWN})()'):.0f} ms"
    page = browser.opened(running, file.as_uri(), f"(({_IS_DRAWN})() || null)")
    yield f"the page, {of_heads(page)}"
    yield f"the page, {of_keys(page)}"
    page.context.close()


def app_lines(running: Browser, trace: tv.Trace, folder: Path) -> Iterator[str]:
    """The same run as a file in the app."""
    file = folder / "run.npz"
    tv.save_trace(trace, file)
    with served.server() as server:
        page = browser.new_page(running, browser.SCRIPT)
        page.goto(f"{server.url}/?checkpoint=trace+file&all_controls=true")
        box = page.locator("[data-testid=stFileUploader] input[type=file]")
        box.wait_for(state="attached")
        sent: list[int] = []
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
        session.on("Network.webSocketFrameReceived", lambda event: sent.append(len(event["response"]["payloadData"]) * 3 // 4))
        page.evaluate(f"bench.watch({_IS_DRAWN})")
        box.set_input_files(file)
        took = browser.took(page)
        yield f"the app opens a file of {file.stat().st_size / 1e6:.1f} MB in {took:.0f} ms, {sum(sent) / 1e6:.2f} MB sent"
        sent.clear()
        yield f"the app, {of_heads(page)}, {sum(sent) / 1e6 / PRESSES:.2f} MB sent for each"
        yield f"the app, {of_keys(page)}"


def bertviz_lines(running: Browser, trace: tv.Trace, folder: Path) -> Iterator[str]:
    """bertviz's model view of the same numbers, which loads three scripts from another server."""
    if find_spec("bertviz") is None:
        yield "bertviz: skipped: not installed (benchmarks/requirements.txt)"
        return
    layers = [torch.from_numpy(layer[None].astype(np.float32)) for layer in trace.decoder.weights]
    file, started = folder / "bertviz.html", time.perf_counter()
    view = import_module("bertviz").model_view(layers, list(trace.target_tokens), html_action="return")
    file.write_text(f"<!doctype html><meta charset=utf-8>{view.data}", encoding="utf-8")
    yield f"bertviz's page: {file.stat().st_size / 1e6:.0f} MB, made in {time.perf_counter() - started:.0f} s"
    try:
        yield f"bertviz's page opens in {browser.visit(running, file.as_uri(), _IS_BERTVIZ):.0f} ms"
    except Error as error:
        yield f"bertviz's page does not open: {str(error).splitlines()[0]}"


def of_keys(page: Page) -> str:
    """Arrow keys, three a second."""
    times = browser.steps_in_a_row(page, PRESSES, 333)
    return f"an arrow key: {median(times):.0f} ms, at most {max(times):.0f}"


def of_heads(page: Page) -> str:
    """One head after the other, none of which was shown before; and the memory after all."""
    times = []
    for head in range(1, PRESSES):
        page.evaluate(_CHOOSE, head)
        times.append(browser.took(page))
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    (heap,) = [one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "JSHeapUsedSize"]
    return f"another head: {median(times):.0f} ms, at most {max(times):.0f}; memory {heap / 1e6:.0f} MB"


if __name__ == "__main__":
    main()
