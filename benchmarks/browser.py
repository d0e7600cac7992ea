"""What the measurements in Chromium share: opening pages, typing, and reading the stopwatch (`stopwatch.js`)."""

import random
from collections.abc import Generator
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
SCRIPT = Path(__file__).with_name("stopwatch.js").read_text(encoding="utf-8")
_TEXT = ':is(input, textarea)[aria-label="Source text"]'
_ON_ENTER = """(isDrawn) => bench.on(bench.box(), 'keydown',
  (event) => event.key === 'Enter', new Function('return ' + isDrawn))"""


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
def bare() -> Generator[served.Server]:
    """A server of the bare page, with Streamlit's own settings: in the folder of the project it would have the project's."""
    # Nothing leaves the machine.
    with served.server(_PLAIN, {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}, folder=_PLAIN.parent) as running:
        yield running


def new_page(running: Browser, script: str = "") -> Page:
    """A page of another person's browser, with nothing cached. `script` runs before the page's own."""
    # Playwright waits for conditions by `eval`, which the app's content policy forbids.
    page = running.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True).new_page()
    page.set_default_timeout(_PATIENCE_MS)
    page.add_init_script(script)
    return page


def visit(running: Browser, url: str, drawn: str) -> float:
    """Milliseconds from the beginning of the navigation until a condition holds, of another person's browser."""
    page = new_page(running, f"{SCRIPT}\nbench.opened(() => {drawn})")
    page.goto(url, wait_until="commit")
    found = took(page, pause_ms=0)
    page.context.close()
    return found


def bytes_of_visit(running: Browser, url: str, drawn: str) -> tuple[int, int]:
    """Bytes of all that another person's browser fetches until a condition holds: as they are sent, and unpacked.

    The messages of Streamlit's own connection are not among them.
    """
    page = new_page(running, SCRIPT)
    page.goto(url, wait_until="commit")
    page.wait_for_function(drawn, polling=_LOOK_MS)
    entries = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
    sizes = page.evaluate(f"{entries}.map((one) => [one.encodedBodySize, one.decodedBodySize])")
    page.context.close()
    sent, unpacked = map(sum, zip(*sizes, strict=True))
    return sent, unpacked


def opened(running: Browser, url: str, drawn: str) -> Page:
    """A page on which what its first run draws is there, and which has come to rest."""
    page = new_page(running, SCRIPT)
    page.goto(url, wait_until="commit")
    page.wait_for_function(f"{drawn} !== null", polling=_LOOK_MS)
    page.wait_for_timeout(2 * PAUSE_MS)
    return page


def enter(page: Page, text: str, *, bare: bool = False) -> float:
    """Milliseconds from Enter until everything is drawn, on a page of the app or on the bare one."""
    page.fill(_TEXT, text)
    page.evaluate(_ON_ENTER, f"() => bench.plainRun() === {text!r}" if bare else f"bench.ofRun({text!r})")
    page.keyboard.press("Enter")
    return took(page)


def took(page: Page, pause_ms: float = PAUSE_MS) -> float:
    """The milliseconds that the stopwatch took."""
    found = page.wait_for_function("window.took", polling=_LOOK_MS).json_value()
    page.wait_for_timeout(pause_ms)
    return found


def step(page: Page) -> float:
    """Milliseconds from an arrow key, pressed once the page rests, until the step is drawn: to the last step, and back."""
    return _pressed(page, "bench.press")


def chosen(page: Page, what: str) -> float:
    """The same of the next "kind" or "head", or of a "pin" on the next token."""
    return _pressed(page, f"bench.choose.{what}")


def _pressed(page: Page, press: str) -> float:
    page.wait_for_function("bench.rests()", polling=_LOOK_MS)
    page.evaluate(f"() => {{ const now = performance.now(); bench.watch({press}(), now); }}")
    return took(page)


def steps_in_a_row(page: Page, tries: int, every_ms: float) -> list[float]:
    """The same of keys that come at even intervals, whatever the page has to do."""
    return page.evaluate("([tries, every]) => bench.inARow(tries, every)", [tries, every_ms])


def letters(length: int, number: int) -> str:
    """A text of its own for every try: small letters, which every checkpoint of strings can read."""
    draw = random.Random(f"{length} {number}")
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=length))
