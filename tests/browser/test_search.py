"""A beam search and What if in a real browser: click a branch, see its attention; choose another token, see another output."""

import re

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    TREE,
    at_rest,
    bring_into_view,
    click_point,
    head_of,
    wait_for_step,
    wait_for_weights,
    wait_until_drawn,
)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def trace() -> tv.Trace:
    return tv.decode(tv.load_checkpoint("reverse-small", device="cpu"), "thisqaipa", strategy="beam")


@pytest.mark.slow
def test_greedy_and_beam_stand_beside_each_other_where_they_differ(page: Page, server: str, trace: tv.Trace) -> None:
    page.goto(f"{server}/?decoding=beam&text=thisqaipa&checkpoint=reverse-small&beam=5")
    expect(page.locator(".stMain")).to_contain_text("apiaqsiht (right), log p")
    expect(page.locator(".stMain")).to_contain_text("apiaqashit (wrong, expected apiaqsiht, differs from step 6 on), log p")
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 6.")
    wait_until_drawn(page)
    expect(page.locator("[data-part=output] button")).to_have_text(list(trace.output_tokens))


def test_a_click_on_a_branch_shows_its_own_attention(page: Page, server: str, trace: tv.Trace) -> None:
    assert trace.search is not None
    page.goto(f"{server}/?decoding=beam&text=thisqaipa&checkpoint=reverse-small")
    wait_until_drawn(page, TREE)
    number = next(n for n, node in enumerate(trace.search.nodes) if node.step == 7 and node.state == "pruned")
    node = trace.search.nodes[number]
    # Nothing moves under the pointer any more.
    at_rest(page)
    click_point(page, TREE, node.step + 1, node.rank)
    branch = trace.at_node(number)
    expect(page.locator(".stMain")).to_contain_text(re.compile(f"The hypothesis {branch.text} \\(.*\\): pruned."))
    expect(page.locator("[data-part=output] button")).to_have_text(list(branch.output_tokens))
    page.keyboard.press("End")
    wait_for_step(page, len(branch.steps) - 1)
    _, layer, head = head_of(page)
    wait_for_weights(page, branch.cross.weights[layer, int(head)], 1e-6)
    expect(page).to_have_url(re.compile(rf"node={number + 1}\b"))


@pytest.mark.slow
def test_a_row_and_the_arrow_keys_choose_a_hypothesis(page: Page, server: str, trace: tv.Trace) -> None:
    assert trace.search is not None
    best = [trace.at_node(number).output_tokens for number in trace.search.best]
    page.goto(f"{server}/?decoding=beam&text=thisqaipa&checkpoint=reverse-small")
    wait_until_drawn(page)
    tokens = page.locator("[data-part=output] button")
    # The box before the third row. Streamlit draws a table on a canvas.
    table = page.locator(".st-key-hypotheses [data-testid=stDataFrame]")
    table.click(position={"x": 14, "y": 36 + 35 * 2.5})
    expect(tokens).to_have_text(list(best[2]))
    expect(page).to_have_url(re.compile(rf"node={trace.search.best[2] + 1}\b"))
    # By keyboard: the arrow keys walk through the cells, Shift and space choose a row.
    table.click(position={"x": 70, "y": 36 + 35 * 2.5})
    for hypothesis in (best[1], best[0]):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Shift+Space")
        expect(tokens).to_have_text(list(hypothesis))
    expect(page).to_have_url(re.compile(rf"node={trace.search.best[0] + 1}\b"))


@pytest.mark.slow
def test_another_token_changes_the_output(page: Page, server: str) -> None:
    other = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello", prefix=["o", "x"])
    page.goto(f"{server}/?text=hello&step=2")
    wait_for_step(page, 1)
    page.get_by_role("tab", name="What if").click()
    expect(page.get_by_role("spinbutton", name="at step")).to_have_value("2")
    box = page.get_by_role("combobox", name=re.compile("^instead of"))
    bring_into_view(box)
    # Of a hundred tokens the box holds only those in sight: typing finds the one that is wanted.
    box.click()
    page.keyboard.type("x")
    page.get_by_role("option").filter(has_text=re.compile("^x")).click()
    expect(page.locator(".stMain")).to_contain_text(
        f"Changed: {other.text} (wrong, expected olleh, differs from step 2 on), log p"
    )
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 2.")
    page.wait_for_function("location.search.includes('what_if_prefix=')")
    page.reload()
    expect(page.locator(".stMain")).to_contain_text(
        f"Changed: {other.text} (wrong, expected olleh, differs from step 2 on), log p"
    )
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".stMain")).not_to_contain_text("They diverge at step 2.")
