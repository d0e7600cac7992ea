"""The pages on a phone, and what each is called."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.charts import (
    AREA,
    FOCUS,
    PATIENCE_MS,
    TEXTS,
    TREE,
    area,
    at_rest,
    small,
    texts,
    wait_for_link,
    wait_for_step,
    wait_until_drawn,
)
from transformer_viz.views import pages

pytestmark = pytest.mark.browser

OVERLAPS = """(selector) => {
  const texts = [...document.querySelectorAll(selector)].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const over = ([one, a], i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => `${one} and ${other}`);
  return boxes.flatMap(over);
}"""


def overlapping(page: Page, kind: str, chart: str = FOCUS) -> list[tuple[str, str]]:
    """Pairs of a chart's texts of a kind that lie over each other."""
    drawn = [(text["text"], *text["box"]) for text in page.evaluate(TEXTS, [chart, kind]) if text["text"].strip()]
    return [
        (one, other)
        for i, (one, x, y, width, height) in enumerate(drawn)
        for other, left, top, across, down in drawn[i + 1 :]
        if x < left + across - 1 and left < x + width - 1 and y < top + down - 1 and top < y + height - 1
    ]


OF_PAGES = ".st-key-pages [class*=st-key-page-]:not(.st-key-page-training) a"
"""The links of pages; a training that another test has started has one of its own."""


@pytest.mark.slow
def test_a_phone_has_every_page_in_a_row_and_names_the_one_that_is_open(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?text=abc&step=2")
    wait_for_step(page, 1)
    page.locator(".st-key-pages").get_by_role("link", name="Masks").click()
    page.wait_for_url("**/masks*")
    expect(page).to_have_title("Masks · Transformer Viz")
    wait_until_drawn(page, ".chart")
    assert at_rest(page, "() => [...document.querySelectorAll('h1')].map((heading) => heading.textContent)") == ["Masks"]
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 844})
        links = [link.bounding_box() for link in page.locator(OF_PAGES).all()]
        assert len(links) == len(pages())
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= width for box in links)
        assert all(box and min(box["width"], box["height"]) >= 24 for box in links)
    names = page.locator(f"{OF_PAGES} p").evaluate_all(
        "(all) => all.filter((p) => p.offsetWidth > 1).map((p) => p.textContent)"
    )
    assert names == ["Masks"]


@pytest.mark.slow
def test_a_phone_sees_the_tab_that_a_link_opens(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?text=abc&step=2&explore_tab=Export")
    expect(page.get_by_role("tab", name="Export")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Export")).to_be_visible()
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0


@pytest.mark.slow
def test_a_phone_prints_nothing_over_each_other_and_letters_are_for_fingers(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?decoding=beam&text=thisqaipa&checkpoint=reverse-small&step=9")
    wait_for_step(page, 8)
    at_rest(page)
    assert len(texts(page, "ytick|y2tick|bartext")) > 20
    assert overlapping(page, "ytick|y2tick|bartext") == []
    assert overlapping(page, "xtick|ytick|textpoint|legendtext", TREE) == []
    sizes = page.locator("[data-part=output] button").evaluate_all("(all) => all.map((b) => [b.offsetWidth, b.offsetHeight])")
    assert min(min(size) for size in sizes) >= 24
    ring, cell = page.evaluate(
        f"""() => {{
          const chart = document.querySelector('{FOCUS}'), box = ({AREA})('{FOCUS}');
          const path = chart.querySelector('.marks .ring').getAttribute('d'), {{ xaxis, yaxis }} = chart.layout;
          const count = ({{ range: [first, last] }}) => Math.abs(last - first);
          return [2 * Number(path.match(/a(.*?) /)[1]) + 3, Math.min(box.width / count(xaxis), box.height / count(yaxis))];
        }}"""
    )
    assert ring <= cell
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    looks: Any = {"has_touch": True, "is_mobile": True, "bypass_csp": True, "reduced_motion": "reduce"}
    page = browser.new_context(viewport={"width": 390, "height": 844}, **looks).new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.context.close()


@pytest.mark.slow
def test_a_finger_taps_cells_letters_small_maps_and_the_player(phone: Page, server: str) -> None:
    phone.goto(f"{server}/?text=hello&step=3")
    wait_for_step(phone, 2)
    at_rest(phone)
    phone.get_by_role("button", name="Step on").tap()
    wait_for_step(phone, 3)
    phone.locator("[data-part=output] button").nth(1).tap()
    wait_for_step(phone, 1)
    tap(phone, FOCUS, 3.5 / 7, 1.5 / 6)
    wait_for_link(phone, pin="2,4")
    tap(phone, small("decoder"), 0.6, 0.8)
    wait_for_link(phone, kind="decoder self-attention", layer="layer 2", head="head 3")


@pytest.mark.slow
def test_a_tapped_cell_is_said_at_the_bottom_and_nothing_moves(phone: Page, server: str) -> None:
    phone.goto(f"{server}/?text=hello&step=3")
    wait_for_step(phone, 2)
    at_rest(phone)
    said, bar = phone.locator(".said-of-pin"), phone.locator(f"{FOCUS} .modebar")
    expect(said).to_have_count(0)
    expect(bar).to_have_css("opacity", "0")
    below_bar = "() => ['.focus', '.st-key-bar'].map((one) => document.querySelector(one).getBoundingClientRect().y)"
    map_at, bar_at = phone.evaluate(below_bar)
    tap(phone, FOCUS, 4.5 / 7, 2.5 / 6)
    expect(said).to_have_text(re.compile(r"Pinned: row 3·l→l, key 5·l: .*\d"))
    now_at, bar_now = at_rest(phone, below_bar)
    assert now_at - bar_now == map_at - bar_at
    box = said.bounding_box()
    assert box and box["y"] + box["height"] == 844 and box["width"] == 390
    # What can be done with the chart is offered, and not over its cells.
    expect(bar).to_have_css("opacity", "1")
    buttons, map_ = bar.bounding_box(), area(phone)
    assert buttons and buttons["y"] > map_["y"] + map_["height"]
    # The marks are where the cell is.
    path = phone.locator(f"{FOCUS} .marks .pinned").get_attribute("d")
    row, column = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", path or "")[:2]
    assert abs(float(row[2]) - map_["width"]) < 1 and abs(float(column[3]) - map_["height"]) < 1
    tap(phone, FOCUS, 4.5 / 7, 2.5 / 6)
    expect(said).to_have_count(0)


def tap(page: Page, chart: str, right: float, down: float) -> None:
    """At shares of what is drawn between the axes, with a finger."""
    at_rest(page)
    page.locator(chart).scroll_into_view_if_needed()
    box = area(page, chart)
    page.touchscreen.tap(box["x"] + right * box["width"], box["y"] + down * box["height"])


@pytest.mark.slow
def test_at_twice_the_size_no_table_is_cut(page: Page, server: str) -> None:
    """200 % in a window of 1440 by 900 pixels."""
    page.set_viewport_size({"width": 720, "height": 450})
    page.goto(f"{server}/compare?text=hello&checkpoint=reverse&b_text=hallo&b_checkpoint=reverse")
    expect(page.locator(".apart-table tr").first).to_be_visible()
    at_rest(page)
    rights = page.locator(".apart-table tr").evaluate_all("(rows) => rows.map((row) => row.getBoundingClientRect().right)")
    assert max(rights) <= 720
    page.goto(f"{server}/?decoding=beam&text=hello&checkpoint=reverse")
    table, tree = page.locator(".st-key-hypotheses [data-testid=stDataFrame]"), page.locator(".st-key-search-tree")
    expect(table).to_be_visible()
    at_rest(page)
    below, above = table.bounding_box(), tree.bounding_box()
    assert below and above and below["y"] >= above["y"] + above["height"]
