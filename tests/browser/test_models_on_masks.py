"""A Hugging Face model in a real browser: two texts, their masks, an edit by click, its comparison, the link elsewhere."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

import transformer_viz as tv
from tests.browser.charts import link_of, wait_until_drawn
from tests.browser.test_masks import EDIT, click_cell, edits
from tests.needs import needs
from tests.tiny_models import GPT2

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs("transformers"), pytest.mark.xdist_group("browser 1")]


def test_from_two_texts_to_a_link_of_a_model_beside_its_edit(page: Page, browser: Browser, url: str, models: Path) -> None:
    model, texts = tv.load_model(str(models / GPT2), "cpu"), ["The capital of France is", "The house"]
    page.goto(f"{url}/masks?checkpoint={GPT2}")
    box = page.get_by_role("textbox", name="Texts, one a line")
    box.fill("\n".join(texts))
    box.press("Control+Enter")
    page.get_by_role("radio", name=re.compile("^2: The")).click()
    expect(page.locator(".stMain")).to_contain_text("It has 2 tokens, and 3 of padding before them")
    page.get_by_role("tab", name="Change and run again").click()
    # Row 5 is “␣house”, whose only other token is “The” at 4.
    click_cell(page, EDIT, 4, 3)
    expect(edits(page)).to_have_value("decoder:5-4")
    reasons = page.evaluate(f"[...document.querySelector('{EDIT}')._fullData[0].z[4]]")
    after = tv.decode_batch(model, texts, edits=["decoder:5-4"])[1]
    assert reasons == after.decoder.reasons[4].tolist()
    sides = {"checkpoint": GPT2, "text": texts[1], "b_checkpoint": GPT2, "b_text": texts[1]}
    page.goto(f"{url}/compare?{urlencode(sides)}")
    page.get_by_role("button", name="B: greedy").press("Enter")
    page.get_by_role("textbox", name="B: edits").fill("decoder:2-1")
    page.get_by_role("textbox", name="B: edits").press("Enter")
    expect(page).to_have_url(re.compile("b_edits=decoder%3A2-1"))
    laid = tv.compare(tv.decode(model, texts[1]), tv.decode(model, texts[1], edits=["decoder:2-1"])).largest
    assert laid is not None
    place = f"layer {laid.layer + 1} head {laid.head + 1}"
    expect(page.locator(".compare .sentence")).to_contain_text(place)
    other = browser.new_page()
    other.goto(link_of(page))
    wait_until_drawn(other, ".pair [data-part=difference]")
    expect(other.locator(".compare .sentence")).to_contain_text(place)
    expect(other.get_by_role("button", name="B: greedy, decoder:2-1")).to_be_visible()
    other.close()
