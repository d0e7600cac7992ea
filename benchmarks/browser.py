"""What the measurements in Chromium share: opening pages, typing, and reading the stopwatch (`stopwatch.js`)."""

import random
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import served
from benchmarks.measure import Skipped

PLAIN_NAME = "a bare Streamlit page, one heatmap"
_PLAIN = Path(__file__).with_name("plain_page.py")
# From the end of a try to the next: the player reports a rested step after 300 ms, and tries must not overlap.
PAUSE_MS = 450

# Playwright has V8 tell where a script is called. Without this V8 reads plotly.js a second time for it, which takes 400 ms.
_READ_ONCE = "--js-flags=--no-enable-lazy-source-positions"
_PATIENCE_MS = 120_000
# How often a condition is looked at; in every frame it would compete with what is measured.
_LOOK_MS = 50
_SCRIPT = Path(__file__).with_name("stopwatch.js").read_text(encoding="utf-8")
_TEXT = ':is(input, textarea)[aria-label="Source text"]'
_ON_ENTER = f"""(marks) => bench.on(document.querySelector('{_TEXT}'), 'keydown',
  (event) => event.key === 'Enter', new Function('return ' + marks))"""


@contextmanager
def browser() -> Generator[Browser]:
    """A headless Chromium.

    Raises:
        Skipped: there is none, or Playwright does not start.
    """
    chromium = served.chromium()
    if chromium is None:
        raise Skipped("no Chromium on this machine")
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as error:  # all that it says is that its driver has gone
            raise Skipped("Playwright's Node.js does not start (Debian: apt install libatomic1)") from error
        running = playwright.chromium.launch(executable_path=chromium, args=[*served.FLAGS, _READ_ONCE])
        yield running
        running.close()


@contextmanager
def bare(address: str = "localhost", settings: Path = _PLAIN.parent) -> Generator[served.Server]:
    """A server of the bare page, with Streamlit's own settings.

    Started in the folder of the project it would have the project's: Streamlit collects all garbage after each run unless told
    not to (`runner.postScriptGC`), and a yardstick must not get shorter by what the app does better.

    Args:
        address: where it listens.
        settings: a folder whose `.streamlit/config.toml` it has; there is none beside the page.
    """
    # Nothing leaves the machine.
    with served.server(_PLAIN, {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}, address, settings) as running:
        yield running


def new_page(running: Browser, script: str = "") -> Page:
    """A page of another person's browser, with nothing cached. `script` runs before the page's own."""
    # Playwright waits for conditions by `eval`, which the app's content policy forbids.
    page = running.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True).new_page()
    page.set_default_timeout(_PATIENCE_MS)
    page.add_init_script(script)
    return page


def visit(running: Browser, url: str, marks: str) -> dict[str, float]:
    """Milliseconds from the beginning of the navigation to each mark, of another person's browser."""
    page = new_page(running, f"{_SCRIPT}\nbench.opened({marks})")
    page.goto(url, wait_until="commit")
    found = took(page, pause_ms=0)
    page.context.close()
    return found


def opened(running: Browser, url: str, rest_ms: float = 1000, drawn: str = "bench.everyRun() !== null") -> Page:
    """A page on which everything of the first run is `drawn`, after `rest_ms` in which it comes to rest."""
    page = new_page(running, _SCRIPT)
    page.goto(url, wait_until="commit")
    page.wait_for_function(drawn, polling=_LOOK_MS)
    page.wait_for_timeout(rest_ms)
    return page


def opened_plain(running: Browser, url: str, rest_ms: float = 1000) -> Page:
    """The bare page, drawn."""
    return opened(running, url, rest_ms, "bench.plainRun() !== null")


def enter(page: Page, text: str) -> dict[str, float]:
    """Milliseconds from Enter until tokens and focus map, and until everything is drawn."""
    prepare(page, text)
    page.keyboard.press("Enter")
    return took(page)


def prepare(page: Page, text: str, marks: str | None = None) -> None:
    """Types the text; the stopwatch starts at Enter. Its marks are those of a run that is drawn, unless others are given."""
    page.fill(_TEXT, text)
    page.evaluate(_ON_ENTER, marks or f"bench.ofRun({text!r})")


def enter_plain(page: Page, text: str) -> float:
    """The same on the bare page."""
    page.fill(_TEXT, text)
    page.evaluate(_ON_ENTER, f"({{ drawn: () => bench.plainRun() === {text!r} }})")
    page.keyboard.press("Enter")
    return took(page)["drawn"]


def took(page: Page, pause_ms: float = PAUSE_MS) -> dict[str, float]:
    """What the stopwatch took, by mark."""
    found = page.wait_for_function("window.took", polling=_LOOK_MS).json_value()
    page.wait_for_timeout(pause_ms)
    return found


def parts(page: Page) -> tuple[float, float]:
    """Of the last time taken: milliseconds until the browser asked the server, and until it had the server's last answer."""
    asked, answered = page.evaluate("window.tookParts")
    return asked, answered


def busy(page: Page) -> Callable[[], float]:
    """Reads how many milliseconds of processor time the page's main thread has taken; other work hardly counts."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(1000 * each["value"] for each in metrics if each["name"] == "TaskDuration")

    return read


def step(page: Page, number: int) -> float:
    """Milliseconds from an arrow key to the step drawn: ten to the left, ten to the right."""
    page.evaluate(
        """(key) => {
          document.activeElement?.blur();
          const chart = document.querySelector('.st-key-focus .chart');
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
    page.evaluate(
        """(n) => {
          const mosaic = document.querySelector('.st-key-mosaic-cross .chart');
          const grid = mosaic.layout.meta, [area] = mosaic.__picture.areas();
          const layer = n % grid.layers, head = Math.floor(n / grid.layers) % grid.heads;
          const focus = document.querySelector('.st-key-focus .chart'), before = focus.__drawn;
          bench.watch({ drawn: () => focus.__drawn && focus.__drawn !== before });
          mosaic.dispatchEvent(new MouseEvent('click', {
            bubbles: true,
            clientX: area.right((head + 0.4) * grid.pitch_x),
            clientY: area.down((layer + 0.4) * grid.pitch_y),
          }));
        }""",
        number,
    )
    return took(page)["drawn"]


def hover(page: Page, read: Callable[[], float], number: int) -> float:
    """Milliseconds of the main thread's processor time from a move of the pointer over the large map to the frame after it."""
    box, draw = page.locator(".st-key-focus .chart").bounding_box(), random.Random(number)
    assert box is not None
    before = read()
    page.mouse.move(box["x"] + box["width"] * draw.uniform(0.15, 0.7), box["y"] + box["height"] * draw.uniform(0.1, 0.9))
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return read() - before


def switch_checkpoint(page: Page, name: str, text: str) -> dict[str, float]:
    """Milliseconds from the choice of another checkpoint until its run of the same text is drawn."""
    page.get_by_label("Checkpoint", exact=True).click()
    page.evaluate("(text) => bench.on(document, 'click', () => true, () => bench.ofRun(text))", text)
    page.get_by_role("option", name=name, exact=True).click()
    return took(page)


def letters(length: int, number: int) -> str:
    """A text of its own for every try: small letters, which every checkpoint of strings can read."""
    draw = random.Random(f"{length} {number}")
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=length))
