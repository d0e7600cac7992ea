"""What the measurements in Chromium share: opening pages, typing, and reading the stopwatch (`stopwatch.js`)."""

import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import served
from benchmarks.measure import Skipped

PLAIN = Path(__file__).with_name("plain_page.py")
PLAIN_NAME = "a bare Streamlit page, one heatmap"
# From the end of a try to the next: the player reports a rested step after 300 ms, and tries must not overlap.
PAUSE = 0.45
PATIENCE_MS = 120_000

# With an inspector attached, as playwright's is, V8 reads a script again when it looks up where in it something was called:
# evaluating plotly.js takes 0.8 s where a browser without one takes 0.35. If the places are noted at once, it takes 0.35 as
# well (`python -m benchmarks.inspector`).
NOTED = "--js-flags=--no-enable-lazy-source-positions"

_SCRIPT = Path(__file__).with_name("stopwatch.js").read_text(encoding="utf-8")
_ON_ENTER = """(marks) => bench.on(document.querySelector('input[aria-label="Source text"]'), 'keydown',
  (event) => event.key === 'Enter', new Function('return ' + marks))"""


@contextmanager
def browser() -> Generator[Any]:
    """A headless Chromium.

    Raises:
        Skipped: there is none, or no playwright.
    """
    chromium = served.chromium()
    if chromium is None:
        raise Skipped("no Chromium on this machine")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Skipped("no package playwright (requirements-dev.txt)") from None
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=[*served.FLAGS, NOTED])
        yield running
        running.close()


def new_page(running: Any) -> Any:
    """A page of a context of its own: another person's browser, with nothing cached."""
    context = running.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(_SCRIPT)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


def opened(running: Any, url: str) -> Any:
    """A page on which everything of the first run is drawn."""
    page = new_page(running)
    page.goto(url)
    page.wait_for_function("bench.everyRun() !== null")
    time.sleep(1)
    return page


def opened_plain(running: Any, url: str) -> Any:
    """The bare page, drawn."""
    page = new_page(running)
    page.goto(url)
    page.wait_for_function("bench.plainRun() !== null")
    time.sleep(1)
    return page


def enter(page: Any, text: str) -> dict[str, float]:
    """Milliseconds from Enter until tokens and focus map, and until everything is drawn."""
    prepare(page, text)
    page.keyboard.press("Enter")
    return took(page)


def prepare(page: Any, text: str) -> None:
    """Types the text; the stopwatch starts at Enter."""
    box = page.get_by_label("Source text")
    box.fill(text)
    box.focus()
    page.evaluate(_ON_ENTER, f"bench.ofRun({text!r})")


def enter_plain(page: Any, text: str) -> float:
    """The same on the bare page."""
    box = page.get_by_label("Source text")
    box.fill(text)
    box.focus()
    page.evaluate(_ON_ENTER, f"({{ drawn: () => bench.plainRun() === {text!r} }})")
    page.keyboard.press("Enter")
    return took(page)["drawn"]


def took(page: Any, pause: float = PAUSE) -> dict[str, float]:
    """What the stopwatch took, by mark."""
    page.wait_for_function("window.took")
    found = page.evaluate("window.took")
    time.sleep(pause)
    return found


def step(page: Any, number: int) -> float:
    """Milliseconds from an arrow key to the step drawn: ten to the left, ten to the right."""
    page.evaluate(
        """(key) => {
          document.activeElement?.blur();
          const chart = document.querySelector('.st-key-focus .js-plotly-plot');
          let painted = false;
          chart.addEventListener('step-drawn', () => { painted = true; }, { once: true });
          bench.watch({ drawn: () => painted });
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        }""",
        "ArrowLeft" if number % 20 < 10 else "ArrowRight",
    )
    return took(page)["drawn"]


def click_tile(page: Any, number: int) -> float:
    """Milliseconds from a click on a small map of cross-attention to its large map drawn; another map each time."""
    page.evaluate(
        """(n) => {
          const mosaic = document.querySelector('.st-key-mosaic-cross .js-plotly-plot');
          const grid = mosaic.layout.meta, axes = mosaic._fullLayout._plots.xy;
          const area = mosaic.querySelector('.nsewdrag'), box = area.getBoundingClientRect();
          const layer = n % grid.layers, head = Math.floor(n / grid.layers) % grid.heads;
          const focus = document.querySelector('.st-key-focus .js-plotly-plot'), before = focus.__drawn;
          bench.watch({ drawn: () => focus.__drawn && focus.__drawn !== before });
          area.dispatchEvent(new MouseEvent('click', {
            bubbles: true,
            clientX: box.left + axes.xaxis.d2p((head + 0.4) * grid.pitch_x),
            clientY: box.top + axes.yaxis.d2p((layer + 0.4) * grid.pitch_y),
          }));
        }""",
        number,
    )
    return took(page)["drawn"]


def switch_checkpoint(page: Any, name: str, text: str) -> dict[str, float]:
    """Milliseconds from the choice of another checkpoint until its run of the same text is drawn."""
    page.get_by_label("Checkpoint").click()
    option = page.get_by_role("option", name=name, exact=True)
    option.wait_for()
    page.evaluate("(text) => bench.on(document, 'click', () => true, () => bench.ofRun(text))", text)
    option.click()
    return took(page)


def letters(length: int, number: int) -> str:
    """A text of its own for every try: small letters, which every checkpoint of strings can read."""
    draw = random.Random(f"{length} {number}")
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=length))
