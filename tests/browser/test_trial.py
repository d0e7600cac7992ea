"""The tab On trial in a real browser: its numbers are those of the calls, a row of the table goes to its head."""

import re

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import at_rest
from transformer_viz.analysis.knock_out import HeadPlace
from transformer_viz.analysis.verdict import words
from transformer_viz.attribution.verdict import texts_of

pytestmark = pytest.mark.browser

TEXT = "hello world"
ROW, BUTTON = 35, 0.232
"""Pixels of a row of the table, and where its button is, as a share of its width: a table is drawn on a canvas."""


def test_a_head_is_judged_taken_away_and_moved(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 2400})
    page.goto(f"{server}/?text={TEXT}&tables=On+trial&layer=2&head=3")
    page.get_by_role("button", name="Judge this run").click()
    model = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(model, TEXT)
    word, position = (tv.verdict(model, trace, mode=mode) for mode in ("word", "position"))

    def pointing(name: str) -> str:
        return f"{name}, by word, {words(word.at(name), word)}; by position, {words(position.at(name), position)}"

    expect(page.get_by_text(f"{pointing('L2 H3')}. Whether it is needed is another question.")).to_be_visible()
    assert word.at("L1 H4").top != word.at("L2 H3").top
    table = page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    at_rest(page)
    box = table.bounding_box()
    assert box is not None
    # The fourth row is L1 H4: the button in its second cell goes there.
    table.click(position={"x": BUTTON * box["width"], "y": 4.5 * ROW})
    expect(page.get_by_text(pointing("L1 H4"))).to_be_visible()
    expect(page).to_have_url(re.compile("layer=1&head=4.*asked=verdict"))

    page.get_by_role("radio", name="Is it needed?").click()
    page.get_by_role("button", name="Take it away").click()
    [lost] = tv.knock_out(
        model, [tv.decode(model, text) for text in texts_of(model, 50, 0)], heads=[HeadPlace("cross", 0, 3)]
    ).heads
    both = f"{pointing('L1 H4')}; without this head {lost.stays.value:.0%} of 50 right answers stay"
    expect(page.get_by_text(both)).to_be_visible()
    assert 0 < lost.stays.value < 1

    page.get_by_role("radio", name="Could it look elsewhere?").click()
    page.get_by_role("button", name="Move the weights").click()
    proofs = [tv.counter_proof(model, trace, scope=scope) for scope in ("cross.1.4", "cross.1", "cross")]
    rows = page.get_by_test_id("stTable").locator("tbody tr")
    expect(rows).to_have_count(3)
    for n, proof in enumerate(proofs):
        assert rows.nth(n).locator("td").all_inner_texts()[:4] == [f"{each.share:.2f}" for each in proof.moved]
    expect(page.locator(".charted .chart").last).to_be_visible()
    at_rest(page)
    assert not [*faults(page)]
    for said in ("question=counter-proof", "asked=counter-proof%2Cknock-out%2Cverdict"):
        expect(page).to_have_url(re.compile(said))
