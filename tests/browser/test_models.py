"""Explore and Search with Hugging Face models in a real browser: type, step, change a token, open the link again."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

import transformer_viz as tv
from tests.browser.charts import (
    HOVER,
    TREE,
    area,
    at_rest,
    bring_into_view,
    click_point,
    click_tile,
    link_of,
    small,
    wait_for_head,
    wait_for_step,
    wait_for_weights,
    wait_until_drawn,
)
from tests.browser.drawn import DRAWN as PAGE_DRAWN
from tests.browser.test_masks import EDIT, click_cell, edits, ready
from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from transformer_viz.model_options import ModelOptions
from transformer_viz.text_display import display_token

pytestmark = [pytest.mark.browser, needs("transformers"), pytest.mark.xdist_group("browser 1")]


@pytest.fixture
def quiet(page: Page) -> Iterator[Page]:
    """The page, whose console says no error but that Streamlit looks for its server below the page first."""
    errors: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.location.get("url", "").endswith(
            ("/_stcore/health", "/_stcore/host-config")
        ):
            errors.append(message.text)

    page.on("console", hear)
    yield page
    page.remove_listener("console", hear)
    assert not errors


def expect_strip(page: Page, name: str, tokens: Iterable[str]) -> None:
    expect(page.locator(f"[data-part={name}] .token")).to_have_text([display_token(token) for token in tokens])


@pytest.mark.slow
def test_a_prompt_is_typed_stepped_and_changed_and_its_link_opens_the_same(quiet: Page, url: str, models: Path) -> None:
    page, model = quiet, tv.load_model(str(models / GPT2), "cpu")
    page.goto(f"{url}/?checkpoint={GPT2}&all_controls=true")
    wait_until_drawn(page)
    box = page.get_by_label("Source text")
    box.fill("The house")
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("text=The"))
    trace = tv.decode(model, "The house")
    expect(page.locator("[data-part=output] .token")).to_have_count(trace.n_steps)
    expect_strip(page, "output", trace.output_tokens)
    expect_strip(page, "source", [])
    assert page.locator("[data-part=output] .given").count() == trace.n_given == 1
    expect(page.locator(".strips .arrow")).to_be_hidden()
    expect(page.locator(".first-read:visible")).to_have_text("The")
    # The first step that was written, and back into the prompt.
    wait_for_step(page, 1)
    at_rest(page)
    click_tile(page, small("decoder"), 1, 1)
    wait_for_head(page, "decoder", 1, 1)
    page.locator("[data-part=back]").click()
    wait_for_step(page, 0)
    expect(page.locator("[data-part=sentence]")).to_contain_text("which was given. The model's own guess")
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("find in the vocabulary").fill("capital")
    page.get_by_label("find in the vocabulary").press("Enter")
    at_rest(page)
    box = page.get_by_label(re.compile("^instead of"))
    bring_into_view(box)
    box.click()
    page.get_by_role("option", name=re.compile("␣capital")).click()
    expect(page).to_have_url(re.compile(r"what_if_prefix="))
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 2")
    link = link_of(page)
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".stMain")).to_contain_text("They diverge at step 2")
    expect(page.locator("[data-part=output] .token")).to_have_count(trace.n_steps)
    expect_strip(page, "output", trace.output_tokens)
    assert str(models) not in page.content()


@pytest.mark.slow
def test_a_translator_is_typed_and_stepped_and_its_link_opens_the_same(
    quiet: Page, another: Page, url: str, models: Path, open_page: Callable[..., Page]
) -> None:
    """And from there to a run with a head switched off beside it, to its search, to its masks, one of them changed."""
    page, text, model = quiet, "das Haus ist klein", tv.load_model(str(models / MARIAN), "cpu")
    page.goto(f"{url}/?checkpoint={MARIAN}&kind=encoder&all_controls=true")
    wait_until_drawn(page)
    expect(page.locator(".kinds button")).to_have_count(3)
    box = page.get_by_label("Source text")
    box.fill(text)
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("text=das"))
    trace = tv.decode(model, text)
    expect(page.locator("[data-part=source] .token")).to_have_count(len(trace.source_tokens))
    at_rest(page)
    click_tile(page, small("encoder"), 1, 1)
    wait_for_head(page, "encoder", 1, 1)
    page.locator("[data-part=output] .token").nth(1).click()
    expect(page).to_have_url(re.compile(r"step=2\b"))
    another.goto(link_of(page))
    wait_for_step(another, 1)
    for each in (page, another):
        expect_strip(each, "source", trace.source_tokens)
        expect_strip(each, "output", trace.output_tokens)
        wait_for_weights(each, trace.encoder.weights[1, 1], 1e-6)
    exported = export(page, open_page, "das_Haus_ist_klein-tiny")
    expect_strip(exported, "source", trace.source_tokens)
    expect_strip(exported, "output", trace.output_tokens)
    page.get_by_role("button", name="Compare with").press("Enter")
    page.get_by_role("button", name="an edit: this head switched off").press("Enter")
    expect(page).to_have_url(re.compile("/compare.*b_edits=encoder"))
    laid = tv.compare(trace, tv.decode(model, text, edits=["encoder.2.2:zero"])).largest
    assert laid is not None
    expect(page.locator(".compare .sentence")).to_contain_text(f"layer {laid.layer + 1} head {laid.head + 1}")
    go(page, "Explore")
    page.get_by_role("button", name="Decoding").click()
    page.get_by_role("radio", name="beam").click()
    page.keyboard.press("Escape")
    wait_until_drawn(page, TREE)
    beam = tv.decode(model, text, strategy="beam", beam_size=5)
    expect(page.locator("[data-part=output] .token")).to_have_count(beam.n_steps)
    expect_strip(page, "output", beam.output_tokens)
    go(page, "Masks")
    say_texts(page, text, "das Haus")
    # Row 2 is “Haus”, whose first key is “das”.
    click_cell(page, EDIT, 1, 0)
    expect(edits(page)).to_have_value("encoder:2-1")
    after = tv.decode_batch(model, [text, "das Haus"], edits=["encoder:2-1"])[0]
    another.goto(link_of(page))
    for each in (page, another):
        ready(each, EDIT)
        expect(edits(each)).to_have_value("encoder:2-1")
        reasons = each.evaluate(f"[...document.querySelector('{EDIT}')._fullData[0].z[1]]")
        assert reasons == after.encoder.reasons[1].tolist()


@pytest.mark.slow
def test_an_encoder_alone_steps_through_its_tokens(quiet: Page, url: str, models: Path) -> None:
    page = quiet
    page.goto(f"{url}/?checkpoint={BERT}")
    wait_until_drawn(page)
    trace = tv.decode(tv.load_model(str(models / BERT), "cpu"), "The capital of France is [MASK].")
    sentence = page.locator("[data-part=sentence]")
    expect(sentence).to_contain_text(f"Its first guess here: {trace.fills[0].candidates[0][0]}")
    # Its tokens are the rows, and the only strip: each is a button, and none is still to come.
    expect_strip(page, "output", trace.source_tokens)
    expect_strip(page, "source", [])
    expect(page.locator(".strips :is(.arrow, .later)")).to_be_hidden()
    page.keyboard.press("End")
    wait_for_step(page, len(trace.rows) - 1)
    expect(sentence).to_contain_text(f"token {len(trace.rows)} of {len(trace.rows)}")
    expect(page.locator("[data-part=output] .now")).to_have_text(trace.source_tokens[-1])
    page.locator("[data-part=output] .token").nth(1).click()
    wait_for_step(page, 1)
    expect(sentence).to_contain_text(f"Pinned: row 2·{trace.source_tokens[1]}")
    expect(page.locator("[data-part=output] .attended")).to_have_count(len(trace.rows))
    expect(page).to_have_url(re.compile(r"pin=2\b"))
    expect(page.get_by_role("tab", name="What if")).to_have_count(0)


@pytest.mark.slow
def test_a_search_after_a_prompt_from_its_branch_to_its_page_and_its_link(
    quiet: Page, another: Page, url: str, models: Path, open_page: Callable[..., Page]
) -> None:
    page, model = quiet, tv.load_model(str(models / GPT2), "cpu")
    page.goto(f"{url}/?decoding=beam&checkpoint={GPT2}&search_length=5")
    wait_until_drawn(page, TREE)
    box = page.get_by_label("Source text")
    box.fill("The house is")
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("text=The"))
    page.get_by_role("button", name="Decoding").click()
    size = page.get_by_role("spinbutton", name="Beam size")
    size.fill("2")
    size.press("Enter")
    expect(page).to_have_url(re.compile("beam=2"))
    # What is open may lie over the tree.
    page.keyboard.press("Escape")
    trace = tv.decode(model, "The house is", strategy="beam", beam_size=2, max_length=5)
    assert trace.search is not None
    number = next(n for n, node in enumerate(trace.search.nodes) if node.step == 3 and node.state == "pruned")
    node, branch = trace.search.nodes[number], trace.at_node(number)
    at_rest(page)
    click_point(page, TREE, node.step + 1, node.rank)
    expect(page).to_have_url(re.compile(rf"node={number + 1}\b"))
    expect(page.locator("[data-part=output] .token")).to_have_count(branch.n_steps)
    expect_strip(page, "output", branch.output_tokens)
    wait_for_step(page, branch.n_given)
    page.keyboard.press("ArrowRight")
    wait_for_step(page, branch.n_given + 1)
    expect(page).to_have_url(re.compile(rf"step={branch.n_given + 2}\b"))
    so_far = np.where(branch.decoder.mask, np.nan, branch.decoder.weights[0, 0])
    so_far[branch.n_given + 2 :] = np.nan
    wait_for_weights(page, so_far, 1e-6)
    sentence = page.locator("[data-part=sentence]").inner_text()
    exported = export(page, open_page, "The_house_is-tiny")
    expect_strip(exported, "output", branch.output_tokens)
    assert exported.locator("[data-part=sentence]").inner_text() == sentence
    # The link in another browser: the same branch, at the same step.
    another.goto(link_of(page))
    wait_for_step(another, branch.n_given + 1)
    at_rest(another)
    expect_strip(another, "output", branch.output_tokens)
    wait_for_weights(another, so_far, 1e-6)
    expect(another.get_by_role("tab", name="Export")).to_have_attribute("aria-selected", "true")


@pytest.mark.slow
def test_masks_are_filled_a_run_goes_to_compare_and_links_say_how_it_writes(
    quiet: Page, url: str, models: Path, open_page: Callable[..., Page]
) -> None:
    page = quiet
    page.goto(f"{url}/?checkpoint={BERT}&text=The+house+is+small.&all_controls=true")
    wait_until_drawn(page)
    page.get_by_role("button", name="Mask a word").press("Enter")
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="house").press("Enter")
    box = page.get_by_label("Source text")
    expect(box).to_have_value("The [MASK] is small.")
    page.keyboard.press("Escape")
    page.locator(".st-key-fills button").first.press("Enter")
    expect(box).not_to_have_value("The [MASK] is small.")
    page.get_by_role("button", name="Back", exact=True).press("Enter")
    expect(box).to_have_value("The [MASK] is small.")
    wait_until_drawn(page)
    exported = export(page, open_page, "The_MASK")
    expect_strip(exported, "output", ["[CLS]", "the", "[MASK]", "is", "small", ".", "[SEP]"])
    page.get_by_role("button", name="Compare with").press("Enter")
    page.get_by_role("button", name="an edit: this head switched off").press("Enter")
    expect(page).to_have_url(re.compile("/compare.*b_edits=encoder"))
    open_again(page)
    page.get_by_role("button", name="B: encoder.1.1:zero").press("Enter")
    expect(page.get_by_label("B: edits")).to_have_value("encoder.1.1:zero")
    page.keyboard.press("Escape")
    for side in "AB":
        expect(page.get_by_label(f"{side}: source text")).to_have_value("The [MASK] is small.")
    go(page, "Masks")
    text = "The [MASK] is small."
    say_texts(page, text)
    edits(page).fill("encoder.1.1:zero")
    edits(page).press("Control+Enter")
    after = tv.decode_batch(tv.load_model(str(models / BERT), "cpu"), [text], edits=["encoder.1.1:zero"])[0]
    expect(page.locator(".stMain")).to_contain_text(f"With 1 edit it is filled with {after.fills[0].candidates[0][0]}.")

    page.goto(f"{url}/?checkpoint={GPT2}&text=The+house&all_controls=true")
    wait_until_drawn(page)
    page.get_by_role("button", name="How it writes").click()
    for switch, said in (
        ("The text as a message in its chat template", "chat=true"),
        ("As its generation config", "generation=false"),
    ):
        page.get_by_text(switch).click()
        expect(page).to_have_url(re.compile(said))
    open_again(page)
    trace = tv.decode(
        tv.load_model(str(models / GPT2), "cpu").with_options(ModelOptions(chat=True, generation=False)), "The house"
    )
    expect(page.locator("[data-part=output] .given")).to_have_count(trace.n_given)
    expect_strip(page, "output", trace.output_tokens)
    at_rest(page)
    box, n = area(page), trace.n_steps
    page.mouse.move(box["x"] + box["width"] * 0.5 / n, box["y"] + box["height"] * 0.5 / n)
    first, second = (trace.target_ids or ())[:2]
    expect(page.locator(HOVER)).to_contain_text(f"(id {first} → {second})")


def export(page: Page, open_page: Callable[..., Page], name: str) -> Page:
    """The page that the tab Export makes, opened from disk."""
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="Prepare the file").click()
    with page.expect_download() as event:
        page.get_by_role("button", name=re.compile(f"Download attention-{name}")).click()
    exported = open_page(event.value.path().read_text(encoding="utf-8"))
    exported.wait_for_function(PAGE_DRAWN)
    return exported


def go(page: Page, title: str) -> None:
    """To another page, by its link above."""
    page.get_by_role("link", name=title, exact=True).click()
    # Explore is the page of the bare address.
    expect(page).to_have_url(re.compile(r"\d/(\?|$)" if title == "Explore" else f"/{title.lower()}"))


def say_texts(page: Page, *texts: str) -> None:
    """What Masks has a batch of, and the tab in which it is changed."""
    box = page.get_by_role("textbox", name="Texts, one a line")
    box.fill("\n".join(texts))
    box.press("Control+Enter")
    page.get_by_role("tab", name="Change and run again").click()


def open_again(page: Page) -> None:
    """In a session that knows nothing but the link, once that is written to its end."""
    link = link_of(page)
    page.goto("about:blank")
    page.goto(link)
