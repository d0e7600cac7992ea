"""From pressing Enter to all maps drawn, one step of the player, and a click on a tile, in headless Chromium.

Times are taken inside the page, from the event to the frame after the last chart holds the new run.
"""

import platform
import statistics
import time

from playwright.sync_api import Page, sync_playwright

from benchmarks import served

TRIES = 30
WORDS = [
    f"{a}{b}"
    for a in ("attent", "decode", "transf", "masked", "queryx", "keyval")
    for b in ("ion-06", "letter", "Abc123", "MAPS!!", "......")
]

# Resolves with the milliseconds from the event until `done` holds and the browser has painted.
STOPWATCH = """
window.stopwatch = (done) => {
  const started = performance.now();
  window.took = null;
  const look = () => done() ? requestAnimationFrame(() => setTimeout(() => { window.took = performance.now() - started; }))
                            : requestAnimationFrame(look);
  look();
};
window.charts = () => [...document.querySelectorAll('.js-plotly-plot')].slice(0, 4);
window.drawnRun = () => {
  const runs = new Set(charts().map((c) => c._fullLayout?.meta?.run));
  return charts().length === 4 && runs.size === 1 ? [...runs][0] : null;
};
"""
ON_ENTER = """
document.querySelector('input[aria-label="Source text"]').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  const before = drawnRun();
  stopwatch(() => drawnRun() !== null && drawnRun() !== before);
}, { capture: true, once: true });
"""


def main() -> None:
    """Prints median and 95th percentile of each."""
    chromium = served.chromium()
    if chromium is None:
        print("app: skipped, no Chromium")
        return
    with served.app() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=served.FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.wait_for_function(served.DRAWN)
        page.evaluate(STOPWATCH)
        time.sleep(1)
        print(f"app · Chromium {browser.version}, software rendering, {platform.machine()}, texts like {WORDS[0]!r}")
        _print("Enter to all maps drawn", [_enter(page, word) for word in WORDS[:TRIES]])
        _print("one step of the player", [_step(page, n) for n in range(TRIES)])
        _print("tile click to focus drawn", [_tile(page, n) for n in range(1, TRIES + 1)])
        browser.close()


def _enter(page: Page, word: str) -> float:
    box = page.get_by_label("Source text")
    box.fill(word)
    page.evaluate(ON_ENTER)
    box.press("Enter")
    return _took(page)


def _step(page: Page, number: int) -> float:
    key = "ArrowLeft" if number % 20 < 10 else "ArrowRight"
    page.evaluate(
        """(key) => {
          const chart = charts()[0], before = chart.__step;
          stopwatch(() => chart.__painted === true);
          chart.__painted = false;
          chart.once('plotly_animated', () => { chart.__painted = true; });
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        }""",
        key,
    )
    return _took(page)


def _tile(page: Page, number: int) -> float:
    page.evaluate(
        """(n) => {
          const mosaic = document.querySelector('.st-key-mosaic-cross .js-plotly-plot');
          const grid = mosaic.layout.meta, axes = mosaic._fullLayout._plots.xy;
          const box = mosaic.querySelector('.nsewdrag').getBoundingClientRect();
          const layer = n % grid.layers, head = Math.floor(n / grid.layers) % grid.heads;
          const before = charts()[0].layout.meta.id;
          stopwatch(() => charts()[0]._fullLayout.meta.id !== before);
          mosaic.querySelector('.nsewdrag').dispatchEvent(new MouseEvent('click', {
            bubbles: true,
            clientX: box.left + axes.xaxis.d2p((head + 0.4) * grid.pitch_x),
            clientY: box.top + axes.yaxis.d2p((layer + 0.4) * grid.pitch_y),
          }));
        }""",
        number,
    )
    return _took(page)


def _took(page: Page) -> float:
    page.wait_for_function("window.took !== null")
    took = float(page.evaluate("window.took"))
    time.sleep(0.45)  # Lets the rested step be reported, so that tries do not overlap.
    return took


def _print(name: str, times: list[float]) -> None:
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"  {name:28} median {statistics.median(times):6.0f} ms · p95 {p95:6.0f} ms · {len(times)} tries")


if __name__ == "__main__":
    main()
