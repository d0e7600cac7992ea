"""What the measuring itself costs: plotly.js evaluated in a Chromium with an inspector attached, and in one without.

    python -m benchmarks.inspector

Playwright attaches an inspector to each page. Then V8 looks up where in a script something was called, and reads the whole
script again for it, unless it noted the places when it read it first. Nobody who uses the app has an inspector attached;
what drives the measurements (`devtools.py`) asks for none. The four are measured in turns.
"""

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from statistics import median
from urllib.parse import parse_qs, urlsplit

import streamlit
from playwright.sync_api import Browser, sync_playwright

from benchmarks import browser, served

_FOLDER = Path(streamlit.__file__).parent / "static"
_TRIES = 5
_NOTED = "--js-flags=--no-enable-lazy-source-positions"
# Streamlit's page without its server, and after a while, when it is quiet, the script with plotly.js.
_PAGE = """<!doctype html><div id="root"></div><script type="module">
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const longest = [];
const seen = (list) => longest.push(...list.getEntries().map((entry) => entry.duration));
new PerformanceObserver(seen).observe({ type: "longtask" });
await import("/static/js/INDEX");
await later(2000);
longest.length = 0;
await import("/static/js/PLOTLY");
await later(300);
await fetch(`/took?ms=${Math.max(...longest)}`);
</script>"""


def main() -> None:
    """Prints the medians."""
    with _site() as (url, took), sync_playwright() as playwright:
        launch = partial(playwright.chromium.launch, executable_path=served.chromium())
        ways: dict[str, Callable[[], float]] = {
            "no inspector": lambda: _alone(url, took),
            "an inspector": lambda: _inspected(launch(args=served.FLAGS), url, took),
            "an inspector, places noted": lambda: _inspected(launch(args=[*served.FLAGS, _NOTED]), url, took),
            "as the benchmarks": lambda: _driven(url, took),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_TRIES):
            for name, way in ways.items():
                found[name].append(way())
    for name, milliseconds in found.items():
        print(f"{name:28} {median(milliseconds):6.0f} ms, the longest task of evaluating plotly.js, median of {_TRIES}")


@contextmanager
def _site() -> Generator[tuple[str, Queue[float]]]:
    """Streamlit's files and the page, on a free port; what the page reports comes through the queue."""
    took: Queue[float] = Queue()
    scripts = sorted(path.name for path in (_FOLDER / "static" / "js").iterdir())
    index = next(name for name in scripts if f"/{name}" in (_FOLDER / "index.html").read_text(encoding="utf-8"))
    plotly = next(name for name in scripts if name.startswith("PlotlyChart."))
    page = _PAGE.replace("INDEX", index).replace("PLOTLY", plotly).encode()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if asked.path == "/took":
                took.put(float(parse_qs(asked.query)["ms"][0]))
            if asked.path not in ("/page", "/took"):
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(_FOLDER)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page", took
    finally:
        server.shutdown()


def _alone(url: str, took: Queue[float]) -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [str(served.chromium()), *served.FLAGS, f"--user-data-dir={profile}", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return took.get(timeout=60)
        finally:
            process.kill()
            process.wait()


def _driven(url: str, took: Queue[float]) -> float:
    with browser.browser() as running:
        running.new_page().goto(url)
        return took.get(timeout=60)


def _inspected(running: Browser, url: str, took: Queue[float]) -> float:
    page = running.new_page()
    page.goto(url)
    # Playwright hears of nothing while this thread waits for the queue.
    end = time.monotonic() + 60
    while time.monotonic() < end:
        page.wait_for_timeout(100)
        try:
            milliseconds = took.get_nowait()
        except Empty:
            continue
        running.close()
        return milliseconds
    raise TimeoutError("the page reported nothing within a minute")


if __name__ == "__main__":
    main()
