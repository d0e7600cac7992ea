"""The first screen: few controls stand before a first visitor, and the picture is in sight; the switch brings the others."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import FOCUS, PICTURE, at_rest, wait_until_drawn

pytestmark = pytest.mark.browser

MOST, MOST_ASKED = 12, 14
CONTROLS = """() => {
  const isSeen = (one) => {
    const { width, height, bottom, top } = one.getBoundingClientRect();
    return width && height && bottom > 0 && top < innerHeight && one.checkVisibility({ visibilityProperty: true });
  };
  const focusable = 'a[href], button, input, select, textarea, summary, [tabindex]';
  const typed = document.querySelector('.st-key-text [data-testid=stBidiComponentIsolated]').shadowRoot;
  const found = [document, typed].flatMap((root) => [...root.querySelectorAll(focusable)]);
  const all = found.filter((one) => one.tabIndex >= 0 && !one.disabled && !one.closest('[inert]') && isSeen(one));
  const groups = ['.ways', '.player .controls', '.strip', '.kinds', '[role="radiogroup"]', '[role="tablist"]'];
  const outside = 'header, .st-key-pages, .modebar, dfn, dfn *, .numbers-switch, main, section[data-testid="stMain"]';
  const counted = all.filter((one) => !one.matches(outside) && !one.closest('header, .st-key-pages, .modebar'));
  const names = counted.map((one) => {
    const group = groups.map((each) => one.closest(each)).find(Boolean);
    const label = (group ?? one).getAttribute('aria-label');
    return group ? `${group.className} ${label}` : label || one.innerText;
  });
  return [...new Set(names)];
}"""
"""The controls that can be seen and have the focus. The player is one, and so is a strip and a group of
buttons. A term in a sentence, which says what it means, is none, nor what the keyboard alone brings to light."""


def place(page: Page, selector: str) -> dict[str, float]:
    box: Any = page.locator(selector).bounding_box()
    return {"top": box["y"], "bottom": box["y"] + box["height"]}


def test_beside_the_first_question_nothing_else_can_be_set(page: Page, server: str) -> None:
    page.context.clear_cookies()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(server)
    wait_until_drawn(page)
    pages = "[...document.querySelectorAll('.st-key-pages a')].map((one) => one.innerText)"
    asking = at_rest(page, f"() => [...({CONTROLS})(), ...{pages}]")
    others = ("Settings", "Glossary", "Examples", "All controls")
    assert len(asking) <= MOST_ASKED and not any(name in one for name in others for one in asking), "\n".join(asking)
    play = page.get_by_role("button", name="Play", exact=True)
    left = play.evaluate("(one) => one.getBoundingClientRect().left")
    page.keyboard.press("ArrowRight")
    for name in ("Settings", "Examples", "Glossary", "Step on"):
        expect(page.get_by_role("button", name=name)).to_be_visible()
    assert "All controls" in at_rest(page, CONTROLS)
    assert play.evaluate("(one) => one.getBoundingClientRect().left") == left


def test_a_bare_first_screen_has_few_controls_and_the_whole_picture(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(server)
    wait_until_drawn(page)
    controls = at_rest(page, CONTROLS)
    assert {"Source text", "All controls"} <= {*controls} and len(controls) <= MOST, controls
    map_ = place(page, FOCUS)
    # Above it word and answer stand one above the other.
    assert map_["top"] <= 350 and map_["bottom"] <= 720
    assert place(page, "[data-part=sentence]")["bottom"] < map_["top"]
    page.get_by_text("All controls").click()
    page.wait_for_function("() => location.search.includes('all_controls=true')")
    expect(page.get_by_role("button", name="Compare with")).to_be_visible()
    assert len(at_rest(page, CONTROLS)) > MOST
    page.reload()
    expect(page.get_by_role("button", name="Compare with")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 1366])
def test_all_controls_of_the_map_stand_in_one_row(page: Page, server: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 720})
    page.goto(f"{server}/?text=hello&all_controls=true")
    wait_until_drawn(page)
    at_rest(page)
    boxes: list[Any] = [page.locator(f"{PICTURE} [data-box={name}]").bounding_box() for name in ("kind", "layer", "head")]
    assert max(box["y"] for box in boxes) < min(box["y"] + box["height"] for box in boxes)


def test_on_a_phone_the_picture_stands_in_the_first_screen(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server)
    wait_until_drawn(page)
    at_rest(page)
    assert place(page, FOCUS)["top"] < 530
    assert len(at_rest(page, CONTROLS)) <= MOST
