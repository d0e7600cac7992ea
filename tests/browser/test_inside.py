"""The tab Inside in a real browser: every number is read, the keyboard goes everywhere, a phone and 200 keys have room."""

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import area, at_rest, wait_for_step
from transformer_viz.numbers_in_words import probability_words

pytestmark = pytest.mark.browser

FIGURE = ".inside .figure"
EXPLAINED = ".inside .explained"
# What the hand reads: at each place of every vector the words beside it; and each number as it stands.
READ = """(root) => {
  const words = [];
  for (const button of root.querySelectorAll('.figure button[id]:not(.closed)')) {
    if (!button.matches('.strip')) { words.push([button.id, button.ariaLabel, button.textContent]); continue; }
    const { left, top, width } = button.getBoundingClientRect(), n = Number(button.ariaLabel.match(/, (\\d+) numbers/)[1]);
    for (let place = 0; place < n; place += 1) {
      const clientX = left + (place + 0.5) * width / n;
      button.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY: top + 3, bubbles: true }));
      words.push([button.dataset.at, button.textContent, button.textContent.split(': ').at(-1)]);
    }
  }
  return words;
}"""
FOCUS = """() => {
  let now = document.activeElement;
  while (now.shadowRoot) now = now.shadowRoot.activeElement;
  return now.id || now.dataset.at || now.className;
}"""


def open_inside(page: Page, server: str, query: str = "text=hello&step=4") -> None:
    page.goto(f"{server}/?{query}&explore_tab=Inside")
    page.locator(f"{FIGURE} .station").first.wait_for()
    at_rest(page)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.slow
def test_every_number_is_that_of_tv_inside(page: Page, server: str) -> None:
    open_inside(page, server, "text=ab&kind=decoder&layer=1&head=2&step=2")
    model = tv.load_checkpoint("reverse", "cpu")
    inside = tv.inspect_head(model, tv.decode(model, "ab"), "decoder.1.2", 1)
    read = page.locator(".inside").evaluate(READ)
    shown = {address: number(text) for address, _, text in read}
    assert len(shown) == 3 * (3 * 32 + 4) + 2 * 32 + 5 * 128 + 2
    vectors: dict[str, Any] = {"query": inside.query, "output": inside.output}
    vectors |= {name: getattr(inside, name) for name in ("entered", "residual_before", "residual_after", "added", "projected")}
    for key in range(3):
        vectors |= {f"key.{key + 1}": inside.keys[key], f"value.{key + 1}": inside.values[key]}
        vectors |= {f"part.{key + 1}": inside.weights[key] * inside.values[key]}
    for name, vector in vectors.items():
        np.testing.assert_allclose([shown[f"{name}.{place + 1}"] for place in range(len(vector))], vector, atol=5.1e-4)
    scores = np.where(inside.masked, -np.inf, np.asarray(inside.scores, float))
    exps = np.exp(scores - scores.max())
    columns: dict[str, Any] = {"dot": inside.keys @ inside.query, "score": inside.scores, "exp": exps, "weight": inside.weights}
    for name, values in columns.items():
        np.testing.assert_allclose([shown[f"{name}.{key}"] for key in range(1, 4)], values, atol=5.1e-4)
    assert shown["sum"] == pytest.approx(exps.sum(), abs=5.1e-4)
    assert page.locator(f"{FIGURE} .closed").all_inner_texts() == ["in the future"]
    # A screen reader hears what a number is, and how much.
    assert all(re.fullmatch(r".+: −?\d+\.\d{3}", words) for _, words, _ in read)
    written = page.locator(f"{FIGURE} .lens .written code").all_inner_texts()
    assert {*written} == {inside.written}
    probabilities = page.locator(f"{FIGURE} .lens .p").all_inner_texts()
    lens = inside.lens
    assert lens is not None
    assert probabilities == [probability_words(p) for step in lens for _, p in step.candidates]


@pytest.mark.slow
def test_by_keyboard_alone(page: Page, server: str) -> None:
    """Tab goes from number to number and the arrows along a vector; Enter explains, a term is followed, Escape comes back."""
    open_inside(page, server)
    walk = page.locator(".inside .walk")
    walk.focus()
    stations = page.locator(f"{FIGURE} [data-station]")
    for place in range(stations.count()):
        page.keyboard.press("Enter")
        expect(stations.nth(place)).to_have_class(re.compile("lit"))
        heading = stations.nth(place).locator("h2").text_content() or ""
        expect(page.locator(".inside .said")).to_contain_text(heading)
    page.keyboard.press("Enter")
    expect(page.locator(".inside")).not_to_have_class(re.compile("walking"))

    def press(*keys: str) -> Any:
        for key in keys:
            page.keyboard.press(key)
        return page.evaluate(FOCUS)

    assert press("Tab") == "residual_before"
    assert press("ArrowRight", "ArrowRight") == "residual_before"
    expect(page.locator(".inside .tip:visible")).to_contain_text("3 of 128: ")
    assert press("Tab", "Tab") == "query"
    page.locator(f"{FIGURE} [id='weight.4']").focus()
    press("Enter")
    title = page.locator(f"{EXPLAINED} h2")
    expect(title).to_have_text("weight of 4·l")
    page.wait_for_function(f"() => ({FOCUS})() === '+exp.4'")
    press("Enter")
    expect(title).to_have_text("exp of 4·l")
    expect(page).to_have_url(re.compile("explained=exp.4"))
    expect(page.locator(f"{EXPLAINED} nav button")).to_have_text(["weight of 4·l"])
    press("Escape")
    expect(title).to_have_text("weight of 4·l")
    assert press("Escape") == "weight.4"
    # Nothing of it was a step of the player.
    at_rest(page)
    assert "step=4" in page.url


@pytest.mark.slow
def test_it_follows_the_step_and_the_pinned_cell(page: Page, server: str) -> None:
    open_inside(page, server)
    row, title = page.locator(".inside .row-title"), page.locator(f"{EXPLAINED} h2")
    expect(row).to_contain_text("Row 4·")
    page.keyboard.press("ArrowLeft")
    # A browser with much else to do: what was due one after the other is due at once.
    page.evaluate("const end = performance.now() + 600; while (performance.now() < end);")
    wait_for_step(page, 2)
    expect(row).to_contain_text("Row 3·")
    box = area(page)
    page.mouse.click(box["x"] + box["width"] * 1.5 / 7, box["y"] + box["height"] * 1.5 / 6)
    expect(row).to_contain_text("Row 2·")
    expect(title).to_have_text("weight of 2·h")


@pytest.mark.slow
def test_a_phone_has_room_for_it_and_200_keys(page: Page, server: str) -> None:
    """The explanation stands below the station of its number; of many keys the largest are shown, and the others as one."""
    page.set_viewport_size({"width": 390, "height": 4000})
    page.emulate_media(color_scheme="dark")
    open_inside(page, server, f"text={'abcdefgh' * 4}&step=5")
    names = page.locator(f"{FIGURE} [data-station=keys] .name").all_inner_texts()
    assert names[0] == "q"
    assert len([name for name in names if "·" in name]) == 12
    assert "22 more" in page.locator(f"{FIGURE} [data-station=weights] .name").all_inner_texts()
    page.locator(f"{FIGURE} [id^='score.']").first.click()
    expect(page.locator(f"{FIGURE} [data-station=scores] + .explained h2")).to_contain_text("score of ")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    at_rest(page)
    assert not [*faults(page)]
