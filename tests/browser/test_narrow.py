"""The pages on a phone, and what each is called."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest, wait_for_step, wait_until_drawn

pytestmark = pytest.mark.browser

OVERLAPS = """(selector) => {
  const texts = [...document.querySelectorAll(selector)].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const over = ([one, a], i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => `${one} and ${other}`);
  return boxes.flatMap(over);
}"""


def test_a_phone_has_every_page_in_a_row_and_names_the_one_that_is_open(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.locator(".st-key-pages").get_by_role("link", name="Masks").click()
    page.wait_for_url("**/masks*")
    expect(page).to_have_title("Masks · Transformer Viz")
    wait_until_drawn(page, ".chart")
    assert at_rest(page, "() => [...document.querySelectorAll('h1')].map((heading) => heading.textContent)") == ["Masks"]
    links = {link.inner_text().split("\n")[-1]: link.bounding_box() for link in page.locator(".st-key-pages a").all()}
    assert len(links) == 7
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["height"] >= 24 for box in links.values())
    names = page.locator(".st-key-pages p").evaluate_all(
        "(all) => all.filter((p) => p.offsetWidth > 1).map((p) => p.textContent)"
    )
    assert names == ["Masks"]
    # One mask at a time.
    assert page.evaluate("document.querySelector('.stMain').scrollHeight") < 2_000


def test_a_phone_prints_nothing_over_each_other_and_letters_are_for_fingers(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/search?text=thisqaipa&checkpoint=reverse-small&step=9")
    wait_for_step(page, 8)
    at_rest(page)
    assert page.evaluate(OVERLAPS, ".st-key-focus :is(.bars text, .ytick text)") == []
    assert page.evaluate(OVERLAPS, ".st-key-search-tree .scatterlayer text") == []
    sizes = page.locator("[data-part=output] button").evaluate_all("(all) => all.map((b) => [b.offsetWidth, b.offsetHeight])")
    assert min(min(size) for size in sizes) >= 24
    ring, cell = page.evaluate(
        """() => {
          const chart = document.querySelector('.st-key-focus .js-plotly-plot');
          const drawn = [...chart.querySelectorAll('.scatterlayer .points path')];
          const rings = drawn.map((ring) => ring.getBoundingClientRect().width);
          const { z } = chart._fullData[0], box = chart.querySelector('.heatmaplayer image').getBoundingClientRect();
          return [Math.max(...rings), Math.min(box.width / z[0].length, box.height / z.length)];
        }"""
    )
    assert ring <= cell
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
