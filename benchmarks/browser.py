"""What the measurements in Chromium share: opening pages, typing, and reading the stopwatch (`stopwatch.js`)."""

import random
import time
from pathlib import Path

from benchmarks import served
from benchmarks.devtools import Chromium, Page
from benchmarks.measure import Skipped

PLAIN = Path(__file__).with_name("plain_page.py")
PLAIN_NAME = "a bare Streamlit page, one heatmap"
# From the end of a try to the next: the player reports a rested step after 300 ms, and tries must not overlap.
PAUSE = 0.45

_SCRIPT = Path(__file__).with_name("stopwatch.js").read_text(encoding="utf-8")
_TEXT = 'input[aria-label="Source text"]'
_ON_ENTER = f"""(marks) => bench.on(document.querySelector('{_TEXT}'), 'keydown',
  (event) => event.key === 'Enter', new Function('return ' + marks))"""


def browser() -> Chromium:
    """A headless Chromium.

    Raises:
        Skipped: there is none.
    """
    chromium = served.chromium()
    if chromium is None:
        raise Skipped("no Chromium on this machine")
    return Chromium(chromium, served.FLAGS)


def visit(running: Chromium, url: str, marks: str) -> dict[str, float]:
    """Milliseconds from the beginning of the navigation to each mark, of another person's browser."""
    page = running.new_page(_SCRIPT, f"bench.opened({marks})")
    page.goto(url)
    found = took(page, pause=0)
    page.close()
    return found


def opened(running: Chromium, url: str, rest: float = 1) -> Page:
    """A page on which everything of the first run is drawn, after `rest` seconds in which it comes to rest."""
    return _opened(running, url, "bench.everyRun() !== null", rest)


def opened_plain(running: Chromium, url: str, rest: float = 1) -> Page:
    """The bare page, drawn."""
    return _opened(running, url, "bench.plainRun() !== null", rest)


def _opened(running: Chromium, url: str, drawn: str, rest: float) -> Page:
    page = running.new_page(_SCRIPT)
    page.goto(url)
    page.wait(f"window.bench && {drawn}")
    time.sleep(rest)
    return page


def enter(page: Page, text: str) -> dict[str, float]:
    """Milliseconds from Enter until tokens and focus map, and until everything is drawn."""
    prepare(page, text)
    page.press("Enter")
    return took(page)


def prepare(page: Page, text: str) -> None:
    """Types the text; the stopwatch starts at Enter."""
    page.fill(_TEXT, text)
    page.call(_ON_ENTER, f"bench.ofRun({text!r})")


def enter_plain(page: Page, text: str) -> float:
    """The same on the bare page."""
    page.fill(_TEXT, text)
    page.call(_ON_ENTER, f"({{ drawn: () => bench.plainRun() === {text!r} }})")
    page.press("Enter")
    return took(page)["drawn"]


def took(page: Page, pause: float = PAUSE) -> dict[str, float]:
    """What the stopwatch took, by mark."""
    page.wait("window.took")
    found = page.value("window.took")
    time.sleep(pause)
    return found


def step(page: Page, number: int) -> float:
    """Milliseconds from an arrow key to the step drawn: ten to the left, ten to the right."""
    page.call(
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


def click_tile(page: Page, number: int) -> float:
    """Milliseconds from a click on a small map of cross-attention to its large map drawn; another map each time."""
    page.call(
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


def switch_checkpoint(page: Page, name: str, text: str) -> dict[str, float]:
    """Milliseconds from the choice of another checkpoint until its run of the same text is drawn."""
    page.click("document.querySelector('input[aria-label=Checkpoint]')")
    option = f"[...document.querySelectorAll('[role=option]')].find((one) => one.textContent === {name!r})"
    page.wait(option)
    page.call("(text) => bench.on(document, 'click', () => true, () => bench.ofRun(text))", text)
    page.click(option)
    return took(page)


def letters(length: int, number: int) -> str:
    """A text of its own for every try: small letters, which every checkpoint of strings can read."""
    draw = random.Random(f"{length} {number}")
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=length))
