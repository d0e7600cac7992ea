"""What axe finds in a page, and the contrast of the text of which axe cannot tell what lies under it."""

import io
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from tests.browser.charts import at_rest
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
_RUN = """async () => {
  const { violations, incomplete } = await axe.run(document, { resultTypes: ['violations', 'incomplete'] });
  const nodes = (rule) => rule.nodes.map((node) => ({
    rule: rule.id, html: node.html.slice(0, 300), target: node.target.join(' '),
    why: [...node.any, ...node.all, ...node.none].map((check) => check.message).join('; '),
  }));
  const open = incomplete.filter(({ id }) => id === 'color-contrast').flatMap(({ nodes }) => nodes);
  window.__undecided = open.map(({ target }) => target[0]);
  return violations.flatMap(nodes);
}"""
_HIDE = """async () => {
  const opacity = (element) => element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
  const found = [];
  for (const target of window.__undecided) {
    const element = typeof target === 'string' ? document.querySelector(target) : null;
    if (!element?.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(element);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element);
    const isDrawn = element instanceof SVGElement;
    if (box.width < 1 || box.height < 1 || box.right > innerWidth || box.bottom > innerHeight) continue;
    found.push({
      element, text: element.textContent, box: [box.left, box.top, box.right, box.bottom], opacity: opacity(element),
      colour: isDrawn ? style.fill : style.color, size: parseFloat(style.fontSize), weight: Number(style.fontWeight),
    });
  }
  const style = document.createElement('style');
  style.textContent = `[data-bare], [data-bare] * {
    color: transparent !important; fill: transparent !important; transition: none !important;
  }`;
  document.head.append(style);
  for (const { element } of found) element.dataset.bare = '';
  return found.map(({ element, ...text }) => text);
}"""
_SHOW = "() => { for (const element of document.querySelectorAll('[data-bare]')) delete element.dataset.bare; }"


@cache
def _axe() -> str:
    found = find_spec(_PACKAGE)
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Page, *, with_undecided: bool = True) -> Iterator[str]:
    """What is wrong with the page as it stands, in words: axe's violations, and text of too little contrast.

    Args:
        page: at rest.
        with_undecided: compute the contrast of what axe leaves open; not where something lies over the page.
    """
    skip_without(_PACKAGE)
    if page.evaluate("typeof axe") == "undefined":
        page.add_script_tag(content=_axe())
    at_rest(page)
    for found in page.evaluate(_RUN):
        if not any(found["rule"] == theirs.rule and theirs.words in found["html"] for theirs in THEIRS):
            yield f"{found['rule']}: {found['why']}: {found['html']}"
    if with_undecided:
        yield from _pale(page)


def _pale(page: Page) -> Iterator[str]:
    """Text of too little contrast to what is drawn under it: the text is taken away, and the pixels looked at."""
    texts = page.evaluate(_HIDE)
    picture = page.screenshot(animations="disabled")
    page.evaluate(_SHOW)
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), dtype=float)
    for text in texts:
        left, top, right, bottom = (round(side) for side in text["box"])
        under = np.median(pixels[max(0, top) : bottom, max(0, left) : right].reshape(-1, 3), axis=0)
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
