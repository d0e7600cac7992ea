"""Makes the README's pictures from the running app: wide and phone, light and dark, and one that moves. `make screenshots`."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import served

DOCS = Path(__file__).resolve().parent

_CROSSING = (
    "?checkpoint=german&text=ich weiß, dass die alte Frau gestern das Buch gelesen hat"
    "&layer=2&head=4&aligner=2.4&lines=all&step=10"
)
_CAUSE = "?checkpoint=german&text=den Hund sieht der König&kind=cross&layer=2&head=3&step=5&measure=cause"
# name, query, width, height, colour scheme, whole page
SHOTS = (
    ("explore-light", "?text=reversethis&step=7", 1440, 900, "light", False),
    ("explore-dark", "?text=Mississippi%202026%21&step=11", 1440, 900, "dark", False),
    ("decoder-light", "?text=reversethis&kind=decoder&layer=2&head=4&step=8", 1440, 900, "light", True),
    ("longest-light", "?text=abcdefghijklmnopqrstuvwxyz012345", 1440, 900, "light", False),
    ("masks-light", "masks", 1440, 900, "light", False),
    ("masks-dark", "masks?mistake=invalid-by-invalid&sentence=3&masks_of=sentence", 1440, 900, "dark", False),
    ("change-light", "masks?masks_tab=Change+and+run+again&edits=cross:5-8", 1440, 1320, "light", False),
    ("search-light", "?decoding=beam", 1440, 1400, "light", False),
    ("compare-light", "compare", 1440, 1180, "light", False),
    ("replay-light", "train?learned=true&checkpoint=reverse-small&text=reversethis&moment=227", 1440, 1500, "light", False),
    ("survey-light", "survey?survey_number=entropy_share&kind=cross&layer=2&head=2", 1440, 900, "light", False),
    ("phone-light", "?text=reversethis&step=7", 390, 844, "light", True),
    ("phone-dark", "?text=reversethis&kind=decoder&step=7", 390, 844, "dark", False),
    ("crossing-light", _CROSSING, 1440, 900, "light", False),
    ("crossing-dark", _CROSSING, 1440, 900, "dark", False),
    ("causes-light", _CAUSE, 1440, 900, "light", False),
    ("heads-light", "?text=reversethis&kind=cross&layer=1&head=1&step=11&explore_tab=Heads", 1440, 1500, "light", False),
    ("lesson-light", "?lesson=map.3", 1440, 900, "light", False),
)

_PATIENCE_MS = 120_000
MOVING, TEXT = "step-by-step.webp", "reversethis"
_STEP_MS, _LAST_MS = 900, 2500
"""How long a step of the moving picture stands, and the last one."""
_DRAWN = """() => {
  const seen = [...document.querySelectorAll('.stMain .chart')].filter((chart) => chart.clientWidth);
  return document.querySelector('[data-test-script-state="notRunning"]') && seen.length
    && seen.every((chart) => chart.data && !chart.ariaBusy);
}"""
"""Whether the page has been made, and each chart that is to be seen drawn."""


def main(folder: Path, names: Sequence[str] = ()) -> None:
    """Writes one PNG per shot into `folder`, and the moving picture; with names, those alone."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = served.chromium()
    if chromium is None:
        sys.exit("Chromium is needed (Debian: apt install chromium)")
    with served.server() as app, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=served.FLAGS)
        for name, query, width, height, scheme, is_whole in SHOTS:
            if names and name not in names:
                continue
            _shoot(browser, f"{app.url}/{query}", folder / f"{name}.png", width, height, scheme, is_whole)
            print(folder / f"{name}.png", flush=True)
        if not names or MOVING in names:
            _film(browser, f"{app.url}/?text={TEXT}&step=1", folder / MOVING)
            print(folder / MOVING)
        browser.close()


def _film(browser: Browser, url: str, path: Path) -> None:
    """The player stepping through one word, as an animated WebP."""
    page = browser.new_page(viewport={"width": 1200, "height": 760}, color_scheme="light", bypass_csp=True)
    page.goto(url)
    page.wait_for_function(_DRAWN, timeout=_PATIENCE_MS)
    page.wait_for_timeout(1200)
    frames = [_frame(page)]
    for _ in TEXT:
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(700)
        frames.append(_frame(page))
    times = [*[_STEP_MS] * (len(frames) - 1), _LAST_MS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, quality=70, method=6)


def _frame(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def _shoot(browser: Browser, url: str, path: Path, width: int, height: int, scheme: str, is_whole: bool) -> None:
    # Playwright waits for conditions by `eval`, which the app's content policy forbids.
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True
    )
    page.goto(url)
    page.wait_for_function(_DRAWN, timeout=_PATIENCE_MS)
    page.wait_for_timeout(1200)
    if is_whole:
        page.get_by_role("tab", name="Masks").click()
        page.wait_for_timeout(1500)
        # Streamlit scrolls inside the page, so the window grows to what is in it.
        whole = page.evaluate("document.querySelector('.stMain').scrollHeight")
        page.set_viewport_size({"width": width, "height": int(whole)})
        page.wait_for_timeout(800)
    page.screenshot(path=path)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "images", sys.argv[2:])
