"""Over many texts in a real browser: a head by click, its texts a click away from Explore, and the report from disk."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest, click_point, wait_for_head, wait_until_drawn
from tests.surveys.made import survey
from transformer_viz import export
from transformer_viz.addresses import HeadAddress
from transformer_viz.surveys.columns import values

pytestmark = pytest.mark.browser

MADE = survey(1)
DISTRIBUTION = ".st-key-survey-distribution .chart"
MAP = ".heads [data-kind=encoder]"


def share_words(page: Page) -> str:
    return page.locator(".stMain").inner_text()


@pytest.mark.slow
def test_a_head_its_texts_and_the_way_back(page: Page, server: str) -> None:
    page.goto(f"{server}/survey?survey=surveys/two&survey_number=entropy_share&kind=decoder")
    expect(page).to_have_title(re.compile("^Over many texts"))
    wait_until_drawn(page, MAP)
    at_rest(page)
    assert page.locator("h1").all_inner_texts() == ["Over many texts"]
    drawn = page.locator(MAP).evaluate("(host) => host.data[0].text.flat()")
    numbers = [float(re.findall(r"<b>([\d.]+)</b>", hover)[0]) for hover in drawn]
    assert numbers == [round(number, 3) for number in values(MADE, "encoder", "entropy_share").ravel().tolist()]

    click_point(page, MAP, 2, 1)
    texts = page.locator(".st-key-survey-texts")
    texts.locator("a[href*='kind=encoder+self-attention&layer=layer+2&head=head+3']").first.wait_for()
    at_rest(page)
    place = HeadAddress("encoder", 1, 2)
    known, head, first = MADE.at(place, "entropy_share"), MADE.texts_of(place), MADE.examples[0]
    assert known is not None and head is not None
    assert f"{known.mean:.3f} on average" in share_words(page)
    listed = [each.text.replace(" ", "␣") for each in (*head.highest, *head.typical, *head.unusual)]
    assert texts.locator("a.text").all_inner_texts() == listed

    click_point(page, MAP, 0, 0)
    texts.locator("a[href*='kind=encoder+self-attention&layer=layer+1&head=head+1']").first.wait_for()
    at_rest(page)

    link = texts.locator("a.text").nth(4)
    expect(link).to_have_text(first.typical[1].text.replace(" ", "␣"))
    link.click()
    expect(page).to_have_title(re.compile("^Explore"))
    wait_for_head(page, "encoder", 0, 0)
    expect(page.get_by_role("textbox", name="Source text")).to_have_value(first.typical[1].text)
    page.go_back()
    expect(page).to_have_title(re.compile("^Over many texts"))
    wait_until_drawn(page, MAP)
    expect(page).to_have_url(re.compile(r"survey=surveys(%2F|/)two"))

    page.get_by_role("tab", name="Outputs").click()
    trial = page.locator(".st-key-survey-worst a.other")
    trial.first.click()
    expect(page).to_have_title(re.compile("^Explore"))
    expect(page.get_by_role("tab", name="Heads")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("radio", name="On trial")).to_be_checked()


@pytest.mark.slow  # five tabs at five widths
def test_every_tab_fits_without_scrolling_sideways(page: Page, server: str) -> None:
    page.goto(f"{server}/survey?survey=surveys/one&survey_beside=surveys/two")
    wait_until_drawn(page, ".chart")
    at_rest(page)
    for tab in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=tab, exact=True).click()
        for width in (320, 390, 660, 768, 1440):
            page.set_viewport_size({"width": width, "height": 844})
            at_rest(page)
            across = page.evaluate(
                "[document.documentElement, document.querySelector('.stMain')].map((one) => one.scrollWidth)"
            )
            assert max(across) <= width, f"{tab} at {width} px"


@pytest.mark.slow
def test_the_report_needs_no_network_and_has_the_same_numbers(open_page: Callable[..., Page]) -> None:
    page = open_page(export.survey_html(MADE), width=390, height=900)
    page.locator("[data-kind='cross'] .main-svg").first.wait_for()
    page.locator("#number").select_option("distance")
    page.locator("[data-kind='encoder'] .main-svg").first.wait_for()
    hovers = page.locator("[data-kind='encoder']").evaluate("(chart) => chart.data[0].text.flat()")
    numbers = [float(re.findall(r"<b>([\d.]+)</b>", hover)[0]) for hover in hovers]
    assert numbers == [round(number, 3) for number in values(MADE, "encoder", "distance").ravel().tolist()]
    fold = page.locator("details").first
    fold.locator("summary").click()
    fold.locator(".main-svg").first.wait_for()
    rows = fold.locator("table").first.locator("tr").all_inner_texts()
    means = [row.split("\t")[1] for row in rows if "\t" in row][1:]
    found = [row.mean for row in MADE.heads if row.place == MADE.places[0] and not row.statistic.startswith("role ")]
    assert means[: len(found)] == [f"{mean:.3f}" for mean in found]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_a_legend_takes_away_a_curve_and_what_belongs_to_it(page: Page, server: str) -> None:
    page.goto(f"{server}/survey?survey=surveys/two&survey_number=entropy_share&kind=encoder&layer=layer+1&head=head+1")
    wait_until_drawn(page, DISTRIBUTION)
    at_rest(page)
    seen = f"""() => document.querySelector('{DISTRIBUTION}').data
      .filter(({{ visible }}) => visible !== 'legendonly').map(({{ legendgroup }}) => legendgroup ?? '')"""
    everything = page.evaluate(seen)
    assert everything.count("mean") == 2
    page.locator(f"{DISTRIBUTION} .legendtoggle").nth(1).click()
    page.wait_for_function(f"(n) => ({seen})().length === n", arg=len(everything) - 2)
    assert page.evaluate(seen) == [group for group in everything if group != "mean"]
