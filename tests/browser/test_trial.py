"""The tab On trial in a real browser: its numbers are those of the calls, a row of the table goes to its head."""

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import at_rest, wait_for_link
from transformer_viz.addresses import HeadAddress
from transformer_viz.attribution.result.verdict import verdict_words
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.numbers_in_words import percent_words

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "hello world"


def test_a_head_is_judged_and_taken_away(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 2400})
    page.goto(f"{server}/?text={TEXT}&explore_tab=Heads&heads_part=On+trial&layer=2&head=3")
    page.get_by_text("Judge this run", exact=True).click()
    model = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(model, TEXT)
    word, position = (tv.judge_attention(model, trace, mode=mode) for mode in ("word", "position"))

    def pointing(name: str) -> str:
        return (
            f"{name}, by word, {verdict_words(word.at(name), word)}; by position, {verdict_words(position.at(name), position)}"
        )

    expect(page.get_by_text(f"{pointing('L2 H3')}. Whether it is needed is a separate question.")).to_be_visible()
    assert word.at("L1 H4").top != word.at("L2 H3").top
    # A row of the table goes to its head, by keyboard: its rows are those of the verdict.
    names = list(word.to_frame()["map"])
    table = page.locator(".st-key-verdict_table [data-testid=stDataFrame]")
    table.click(position={"x": 70, "y": 36 + 35 / 2})
    for _ in range(names.index("L1 H4")):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    expect(page.get_by_text(pointing("L1 H4"))).to_be_visible()
    wait_for_link(page, head="head 4", verdict="true")  # the first layer is the default

    page.get_by_role("radio", name="Is it needed?").click()
    page.get_by_text("Take it away", exact=True).click()
    [lost] = tv.knock_out(
        model, [tv.decode(model, text) for text in sample_texts(model, 50, 0)], heads=[HeadAddress("cross", 0, 3)]
    ).heads
    both = f"{pointing('L1 H4')}; without this head {percent_words(lost.stays.value)} of 50 right answers stay"
    expect(page.get_by_text(both)).to_be_visible()
    assert 0 < lost.stays.value < 1

    page.get_by_role("radio", name="Is its order faithful?").click()
    page.get_by_text("Take tokens away", exact=True).click()
    expect(page.get_by_role("figure", name="Probability lost by k.")).to_be_visible()
    at_rest(page)
    assert not [*faults(page)]
    wait_for_link(page, question="Is its order faithful?", verdict="true", knock_out="true", curves="true")
