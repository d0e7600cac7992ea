"""What axe finds in a page, and the contrast of the text of which axe cannot tell what lies under it."""

import io
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page

from tests.needs import skip_without

_PACKAGE = "axe_playwright_python"


class Theirs(NamedTuple):
    """A violation in Streamlit's own markup, which no theme and no other widget takes away."""

    rule: str
    """Of axe."""
    words: str
    """In the element's HTML."""
    why: str


THEIRS = (
    Theirs(
        "region",
        "data-floating-ui-portal",
        "an open popover stands behind the page's end, outside of its landmarks; the button that opens it leads there",
    ),
    Theirs(
        "presentation-role-conflict",
        "stFileUploaderDropzone",
        "the area to drop files on has a label beside the role of none; the keyboard uses the button in it",
    ),
)
_TIMES = 5
_RUN = """async () => {
  // What is half faded in, as the words of a help text are that come half a second after the pointer, is not what is read.
  for (const each of document.getAnimations()) if (Number.isFinite(each.effect.getComputedTiming().endTime)) each.finish();
  const { violations, incomplete } = await axe.run(document, { resultTypes: ['violations', 'incomplete'] });
  const nodes = (rule) => rule.nodes.map((node) => ({
    rule: rule.id, html: node.html.slice(0, 300), target: node.target.join(' '),
    why: [...node.any, ...node.all, ...node.none].map((check) => check.message).join('; '),
  }));
  const open = incomplete.filter(({ id }) => id === 'color-contrast').flatMap(({ nodes }) => nodes);
  // In a shadow the target is a path: the host, and what is in it.
  const step = (above, selector) => (above?.shadowRoot ?? above)?.querySelector(selector);
  window.__undecided = open.map(({ target }) => [target[0]].flat().reduce(step, document));
  return violations.flatMap(nodes);
}"""
_BOX = """(element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  const { left, top, right, bottom } = range.getBoundingClientRect();
  return [left, top, right, bottom];
}"""
_HIDE = """(within) => {
  const boxOf = BOX;
  const opacity = (element) => element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
  const isSeen = (element) => element?.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  // Plotly measures words in a drawing of its own, and axe may ask of a box around text, which has none itself.
  const isText = (element) => !element.closest('#js-plotly-tester') && (element instanceof SVGElement
    || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  const found = new Map();
  for (const element of [...window.__undecided, ...document.querySelectorAll('svg text')]) {
    if (!isSeen(element) || !isText(element) || (within && !element.closest(within))) continue;
    // The maps of the kinds that are not in focus wait beside the page.
    if (element.closest('.focus > [aria-hidden=true]')) continue;
    const box = boxOf(element), [left, top, right, bottom] = box, style = getComputedStyle(element);
    const isDrawn = element instanceof SVGElement;
    if (right - left < 1 || bottom - top < 1) continue;
    found.set(element, {
      text: element.textContent, box,
      colour: isDrawn ? style.fill : style.color, opacity: opacity(element) * (isDrawn ? Number(style.fillOpacity) : 1),
      size: parseFloat(style.fontSize), weight: Number(style.fontWeight),
    });
  }
  window.__bare = [...found.keys()];
  window.__baring = new CSSStyleSheet();
  window.__baring.replaceSync(`[data-bare], [data-bare] * {
    color: transparent !important; fill: transparent !important; transition: none !important;
  }`);
  for (const element of window.__bare) {
    element.dataset.bare = '';
    const root = element.getRootNode();
    if (!root.adoptedStyleSheets.includes(window.__baring)) root.adoptedStyleSheets.push(window.__baring);
  }
  return [...found.values()];
}""".replace("BOX", _BOX)
_SHOW = """() => {
  window.__baring.replaceSync('');
  for (const element of window.__bare) delete element.dataset.bare;
  return window.__bare.map(BOX);
}""".replace("BOX", _BOX)


@cache
def _axe() -> str:
    found = find_spec(_PACKAGE)
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Page, within: str | None = None) -> Iterator[str]:
    """What is wrong with the page as it stands, in words: axe's violations, and text of too little contrast.

    The contrast of all text in a picture, and of what else axe leaves open, is computed.

    Args:
        page: at rest.
        within: where to compute it, as a selector, when something lies over the page.
    """
    skip_without(_PACKAGE)
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    for found in page.evaluate(_RUN):
        if not any(found["rule"] == theirs.rule and theirs.words in found["html"] for theirs in THEIRS):
            yield f"{found['rule']}: {found['why']}: {found['html']}"
    yield from _pale(page, within)


def _pale(page: Page, within: str | None) -> Iterator[str]:
    """Text of too little contrast to what is drawn under it: the text is taken away, and the pixels looked at."""
    texts, pixels = _bare(page, within)
    for text in texts:
        left, top, right, bottom = (max(0, round(side)) for side in text["box"])
        under = pixels[top:bottom, left:right].reshape(-1, 3)
        if not len(under):
            yield f"{text['text']!r} is out of sight, at {text['box']}"
            continue
        yield from _contrast_of(text, np.median(under, axis=0))


def _bare(page: Page, within: str | None) -> tuple[list[dict[str, Any]], np.ndarray]:
    """All that is looked at, and the page without it; once more where it was somewhere else when the picture was taken."""
    for _ in range(_TIMES):
        texts = page.evaluate(_HIDE, within)
        pixels = _pixels(page.screenshot(animations="disabled"))
        if page.evaluate(_SHOW) == [text["box"] for text in texts]:
            return texts, pixels
    raise AssertionError("the page does not come to rest")


def background(button: Locator) -> tuple[float, ...]:
    """The colour of most of its pixels, from 0 to 255."""
    colours, counts = np.unique(_pixels(button.screenshot()).reshape(-1, 3), axis=0, return_counts=True)
    return tuple(colours[counts.argmax()].tolist())


def _pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), dtype=float)


def _contrast_of(text: dict[str, Any], under: np.ndarray) -> Iterator[str]:
    *colour, alpha = _rgba(text["colour"])
    share = alpha * text["opacity"]
    found = contrast(share * np.array(colour) + (1 - share) * under, under)
    is_large = text["size"] >= 24 or (text["size"] >= 18.66 and text["weight"] >= 700)
    if found < (3 if is_large else 4.5):
        yield f"contrast {found:.2f} of {text['text']!r}, {text['colour']} on {under}"


def _rgba(colour: str) -> list[float]:
    numbers = [float(number) for number in colour[colour.index("(") + 1 : -1].replace("/", ",").split(",")]
    return [*numbers, 1.0][:4]


def contrast(one: Any, other: Any) -> float:
    """Of two colours from 0 to 255, as WCAG 2 defines it: 1 to 21."""
    light, dark = sorted((_luminance(np.asarray(one, dtype=float)), _luminance(np.asarray(other, dtype=float))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: np.ndarray) -> float:
    share = colour / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
