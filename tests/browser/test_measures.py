"""The switch of what the maps show, in the page: the numbers that the browser holds are those of `tv.attribute`."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    FOCUS,
    HOVER,
    IS_DRAWN,
    ROWS,
    area,
    at_rest,
    choose_kind,
    wait_for_weights,
    wait_until_drawn,
)

pytestmark = pytest.mark.browser

SECOND = ROWS.replace("chart.data[0]", "chart.data.find((trace) => trace.xaxis === 'x3')")


def choose(page: Page, name: str) -> None:
    page.get_by_role("group", name="What the maps show").get_by_role("button", name=name).click()
    expect(page.locator(".measures [aria-pressed=true]")).to_have_text(name)


def wait_for_second(page: Page, wanted: np.ndarray) -> None:
    """Until the second map holds these numbers; NaN is a cell without one."""
    page.wait_for_function(
        f"""([chart, wanted]) => {{
          const found = document.querySelector(chart);
          if (!{IS_DRAWN}(found) || !found.layout?.xaxis3) return false;
          const rows = ({SECOND})(found), isSame = (have, want) => (want === null ? isNaN(have) : Math.abs(have - want) < 1e-5);
          return wanted.every((row, i) => row.every((want, k) => isSame(rows[i][k], want)));
        }}""",
        arg=[FOCUS, [[None if np.isnan(each) else float(each) for each in row] for row in wanted]],
    )


def wait_for_one_map(page: Page) -> None:
    """Until the chart is drawn, which it is not while the page puts another into its place, and has no second map."""
    page.wait_for_function(f"document.querySelector('{FOCUS}')?.layout && !document.querySelector('{FOCUS}').layout.xaxis3")


@pytest.mark.slow
def test_by_value_and_cause_are_those_of_attribute(page: Page, server: str) -> None:
    model = tv.load_checkpoint("reverse", device="cpu")
    trace = tv.decode(model, "hello")
    page.goto(f"{server}/?text=hello&layer=2&head=3&step=6&all_controls=true")
    wait_until_drawn(page)
    choose(page, "by value")
    wait_for_weights(page, tv.attribute(model, trace, "value_weighted").values[1, 2], 1e-4)
    choose(page, "cause")
    cause = tv.attribute(model, trace, "occlusion")
    wait_for_weights(page, trace.cross.weights[1, 2], 1e-5)
    wait_for_second(page, cause.values)
    # A cell of the second map is the same place as in the first: pinned, both numbers are said.
    box = area(page, name="x3y3")
    page.mouse.click(box["x"] + box["width"] * 5.5 / 7, box["y"] + box["height"] * 0.5 / 6)
    words = f"Pinned: row 1·<start>→o, key 6·o: > 0.99, cause by word +{cause.values[0, 5]:.2f} nats"
    expect(page.locator("[data-part=sentence]")).to_contain_text(words)
    marks = page.locator(f"{FOCUS} .marks .pinned").get_attribute("d")
    assert marks is not None and marks.count("M") == 4, "row and column of both maps"
    page.get_by_role("radio", name="position").click()
    wait_for_second(page, tv.attribute(model, trace, "occlusion", mode="position").values)
    choose_kind(page, "decoder self-attention")
    of_prefix = tv.attribute(model, trace, "occlusion", mode="position", kind="decoder").values
    wait_for_second(page, of_prefix)
    box = area(page, name="x3y3")
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 8)
    expect(page.locator(HOVER)).to_contain_text("read later than this step, so it cannot be asked")
    page.reload()
    wait_until_drawn(page)
    wait_for_second(page, of_prefix)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_function(f"document.querySelector('{FOCUS}')?.layout?.yaxis3?.domain[1] < 1")
    assert at_rest(page, "() => document.documentElement.scrollWidth") <= 390
    choose(page, "weights")
    wait_for_one_map(page)


@pytest.mark.slow
def test_a_file_is_looked_at_by_what_it_holds_with_the_keyboard(page: Page, server: str, tmp_path: Path) -> None:
    model = tv.load_checkpoint("reverse", device="cpu")
    trace = tv.decode(model, "hello")
    cause = tv.attribute(model, trace, "occlusion")
    tv.save_trace(trace.with_attribution(cause), tmp_path / "measured.npz")
    page.goto(f"{server}/?checkpoint=trace+file&layer=2&head=3&step=6&all_controls=true")
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(tmp_path / "measured.npz")
    switch = page.get_by_role("group", name="What the maps show")
    expect(switch.get_by_role("button")).to_have_text(["weights", "cause"])
    switch.get_by_role("button", name="weights").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(switch.get_by_role("button", name="cause")).to_have_attribute("aria-pressed", "true")
    wait_for_second(page, cause.values)
    expect(page).to_have_url(re.compile("measure=cause"))
    choose_kind(page, "decoder self-attention")
    expect(page.get_by_text("This file holds cause by word of cross-attention, and none of decoder self-att")).to_be_visible()
    wait_for_one_map(page)
