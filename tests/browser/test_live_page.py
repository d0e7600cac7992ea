"""The live page from disk, without any network: what it shows of a typed text is what the program shows of the same run.

The page saves the run, `load_trace` reads it, and the program's own figures, sentences and strips of it are compared.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import click_tile
from tests.browser.drawn import FOCUS, go, plain, same_as_the_figure
from tests.needs import slow
from transformer_viz.errors import OptionError
from transformer_viz.export.content import content
from transformer_viz.figures import masks
from transformer_viz.figures.figure_data import plain as undecorated
from transformer_viz.figures.theme import Style
from transformer_viz.live.page import live_html, live_page
from transformer_viz.sentences.run_sentences import plain as sentence_words
from transformer_viz.sentences.run_sentences import step_sentences
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

pytestmark = pytest.mark.browser

TEXT, TOLD, STRIP = "[data-part=text]", "[data-part=told]", "[data-part=output] .token"
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
DECODE = "([text, options]) => window.transformerViz.decode(text, options)"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages of some models, each made once."""
    names = ("reverse", "german", "pinyin", "numbers")
    return {name: live_html(tv.load_checkpoint(name, device="cpu")) for name in names}


def typed(page: Page, text: str) -> None:
    """Types a text and waits until its run is shown."""
    page.fill(TEXT, text)
    shown = text.replace(" ", "␣")
    page.wait_for_function("(text) => document.title.startsWith(`${text} `)", arg=shown)
    expect(page.locator(TOLD)).to_be_hidden()
    # It begins at the first step, as the app does: to the last one.
    page.get_by_label("Last step").click()
    page.wait_for_function("(text) => document.title.startsWith(`${text} →`)", arg=shown)


def saved(page: Page, tmp_path: Path) -> Trace:
    """The run that the page shows, as the program opens it."""
    with page.expect_download() as download:
        page.click("[data-part=save]")
    file = tmp_path / "saved.npz"
    download.value.save_as(file)
    return tv.load_trace(file)


def same_words(page: Page, trace: Trace, *, with_answer: bool) -> None:
    """Strips, legends, the mark behind the output, and each step's sentence."""
    wanted = content(trace, theme="auto", large=False, with_answer=with_answer)
    for part, wanted_tokens in (("source", wanted["source"]), ("output", wanted["output"])):
        cells = page.locator(f"[data-part={part}] .token")
        got = cells.evaluate_all("(cells) => cells.map((cell) => [cell.textContent, cell.title])")
        assert got == [[token["text"], token["title"]] for token in wanted_tokens]
    wrong = page.locator("[data-part=output] .token.wrong").count()
    assert wrong == sum("wrong" in token["class"] for token in wanted["output"])
    mark = "".join(text for _, text in wanted["answer"]["words"]) if with_answer else ""
    assert page.locator("[data-part=answer]").text_content() == mark
    assert page.title() == f"{wanted['title']} · {trace.made_by['checkpoint']}"
    for kind in KINDS:
        go(page, kind, 0, 1, 0)
        legend = wanted["kinds"][kind]["legend"]
        is_ringed = any(key is not None for key in trace.alignment)
        assert page.locator("[data-part=hint]").text_content() == (legend if is_ringed else legend.partition(" · ring")[0])
        (sentences,) = step_sentences(trace, kind, [(0, 1)], with_answer=with_answer)
        for step, sentence in enumerate(sentences):
            go(page, kind, 0, 1, step)
            said = page.locator("[data-part=sentence]").text_content()
            assert said == sentence_words(sentence).replace("`", "") or "`" in trace.source + trace.text


def same_mosaics(page: Page, trace: Trace) -> None:
    """All small maps of three kinds."""
    for place, kind in enumerate(KINDS):
        wanted = plain(json.loads(undecorated(tv.figures.mosaic)(trace, kind).to_json()))
        got = page.evaluate(
            """(place) => {
              const flat = (value) => ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, flat)
                : typeof value === "number" && isNaN(value) ? null : value;
              const { data, layout } = document.querySelectorAll(".mosaics .chart")[place];
              const traces = data.map(({ z, x, y, text }) => ({ z: flat(z), x: flat(x), y: flat(y), text }));
              const { meta, title, xaxis, yaxis } = layout;
              return { traces, meta, title: title.text, ranges: [xaxis.range, yaxis.range] };
            }""",
            place,
        )
        layout = wanted["layout"]
        assert got["meta"] == layout["meta"]
        assert got["title"] == layout["title"]["text"]
        assert got["ranges"] == [layout["xaxis"]["range"], layout["yaxis"]["range"]]
        maps = [trace["z"] for trace in got["traces"] if trace.get("z")]
        wanted_maps = [trace["z"] for trace in wanted["data"] if "z" in trace]
        if max(trace.attentions[kind].weights.shape[2:]) <= 32:
            assert maps == wanted_maps
        else:  # the program sends long ones in 250 shades
            codes, weights = np.array(wanted_maps[0]), np.array(maps[0], float)
            assert np.abs((codes - 5) / 250 - weights)[codes >= 5].max() <= 0.5 / 250 + 1e-6
        # Of the kind in focus the page draws a strong frame too.
        frames = next(trace for trace in got["traces"] if not trace.get("z"))
        assert frames["x"] == wanted["data"][-2]["x"]
        assert frames["y"] == wanted["data"][-2]["y"]
        assert got["traces"][-1]["text"] == wanted["data"][-1]["text"]


@pytest.mark.parametrize(
    ("name", "text", "knows"),
    [
        slow("reverse", "Hello <b> $x$", True),
        slow("reverse", "abcdefghijklmnopqrstuvwxyz012345", True),
        slow("german", "der Hund sieht den alten Mann, wenn die Frau das Haus sieht", False),
        ("german", "ich möchte ein Bier", True),
        slow("pinyin", "快", False),
    ],
)
@pytest.mark.parametrize("width", [1440, slow(390)])
def test_what_is_typed_is_shown_as_the_program_shows_it(
    pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path, name: str, text: str, knows: bool, width: int
) -> None:
    page = open_page(pages[name], width=width)
    typed(page, text)
    trace = saved(page, tmp_path)
    assert trace.source == text
    assert trace.made_by["checkpoint"] == name
    last = trace.n_steps - 1
    for kind, layer, head, step in (
        ("cross", 0, 1, last),
        ("decoder", 0, 2, 1),
        ("encoder", 1, 0, 0),
        ("cross", 0, "mean", min(2, last)),
    ):
        go(page, kind, layer, head, step)
        same_as_the_figure(page, trace, kind, layer, head, step, style=Style(narrow=width < 640))
    same_mosaics(page, trace)
    same_words(page, trace, with_answer=knows)


def test_the_saved_run_is_that_of_decode(pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page(pages["reverse"])
    typed(page, "save me!")
    ours, trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "save me!"), saved(page, tmp_path)
    for name in (
        "text",
        "source_tokens",
        "target_tokens",
        "output_tokens",
        "alignment",
        "expected",
        "expected_tokens",
        "finished",
    ):
        assert getattr(trace, name) == getattr(ours, name)
    for kind, attention in ours.attentions.items():
        np.testing.assert_allclose(trace.attentions[kind].weights, attention.weights, atol=5e-4)
        np.testing.assert_array_equal(trace.attentions[kind].reasons, attention.reasons)


@pytest.mark.slow
def test_the_pictures_follow_each_keystroke(pages: dict[str, str], open_page: Callable[..., Page]) -> None:
    """No Enter; and the text that came last is the one that is shown, however fast one types."""
    page = open_page(pages["reverse"])
    page.fill(TEXT, "")
    expect(page.locator(TOLD)).to_contain_text("The text is empty")
    page.locator(TEXT).press_sequentially("attention")
    page.wait_for_function("() => document.title.startsWith('attention ·')")
    assert page.evaluate(f"() => document.querySelector('{FOCUS}').layout.xaxis.ticktext.length") == len("attention") + 2
    page.locator(TEXT).press("Backspace")
    page.wait_for_function("() => document.title.startsWith('attentio ·')")


@pytest.mark.slow
def test_masks_are_edited_by_a_click_and_heads_switched_off(
    pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(pages["reverse"])
    typed(page, "edit it")
    page.get_by_text("Masks in force").click()
    page.locator(".mask").nth(2).locator(".nsewdrag").first.click(position={"x": 3, "y": 3})
    expect(page.locator("[data-part=changes] button")).to_have_text("cross:1-1 ✕")
    go(page, "cross", 1, 2, 0)
    page.get_by_text("Switch this head off").click()
    expect(page.locator("[data-part=off]")).to_have_text("Switch this head on")
    expect(page.locator("[data-part=changes] button")).to_have_count(2)
    page.wait_for_function("() => document.querySelector('[data-part=made]').textContent.includes('edit cross.2.3:zero')")
    trace = saved(page, tmp_path)
    assert trace.edits == ("cross:1-1", "cross.2.3:zero")
    ours = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "edit it", edits=list(trace.edits))
    assert trace.text == ours.text
    np.testing.assert_array_equal(trace.cross.reasons, ours.cross.reasons)
    np.testing.assert_allclose(trace.cross.weights, ours.cross.weights, atol=5e-4)
    assert not tv.diff(ours, trace, tolerance=5e-3).differences
    same_as_the_figure(page, trace, "cross", 1, 2, 0)
    wanted = undecorated(masks.mask)(trace, "cross.2.3")
    got = page.evaluate("() => document.querySelectorAll('.mask')[2].data.filter((one) => one.name).map((one) => one.name)")
    assert got == [each["name"] for each in wanted.data if "name" in each]
    typed(page, "another")
    expect(page.locator("[data-part=changes] button")).to_have_text("cross.2.3:zero ✕")
    page.locator("[data-part=changes] button").click()
    expect(page.locator("[data-part=changes] button")).to_have_count(0)


@pytest.mark.slow
def test_how_it_writes(pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page(pages["german"])
    page.get_by_text("How it writes").click()
    page.select_option("[data-option=strategy]", "sample")
    for name, value in {"temperature": "3", "top_k": "9", "seed": "4", "prefix": "the dog", "ban": "man <unk>"}.items():
        page.fill(f"[data-option={name}]", value)
    typed(page, "der Hund sieht den Mann")
    trace = saved(page, tmp_path)
    options: dict[str, Any] = {"strategy": "sample", "temperature": 3.0, "top_k": 9, "seed": 4}
    ours = tv.decode(
        tv.load_checkpoint("german", device="cpu"), trace.source, prefix=["the", "dog"], ban=["man", "<unk>"], **options
    )
    assert trace.output_tokens == ours.output_tokens
    assert not [one for one in tv.diff(ours, trace).differences if one.what in ("settings", "changes")]
    assert trace.steps[2].sampling_probability == pytest.approx(ours.steps[2].sampling_probability, abs=1e-3)
    page.fill("[data-option=top_k]", "0")
    expect(page.locator(TOLD)).to_contain_text("top_k = 0 is not possible")


@pytest.mark.slow
def test_the_address_brings_everything_back(pages: dict[str, str], open_page: Callable[..., Page]) -> None:
    page = open_page(pages["reverse"])
    typed(page, "link & #?")
    page.get_by_text("How it writes").click()
    page.fill("[data-option=ban]", "k")
    page.wait_for_function("() => !document.querySelector('[data-part=output]').textContent.includes('k')")
    go(page, "decoder", 1, 2, 3)
    page.get_by_text("Switch this head off").click()
    page.wait_for_function("() => location.hash.includes('zero') && location.hash.includes('ban=k')")
    tokens, address = page.locator(STRIP).all_text_contents(), page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function("() => document.title.startsWith('link␣&␣#? →')")
    assert page.locator(STRIP).all_text_contents() == tokens
    assert page.locator(f"{STRIP}.now").count() == 1
    expect(page.locator("[data-box=kind]")).to_have_value("decoder")
    expect(page.locator("[data-part=changes] button")).to_have_text("decoder.2.3:zero ✕")
    page.evaluate("location.hash = 'text=other'")
    page.wait_for_function("() => document.title.startsWith('other →')")


@pytest.mark.slow
def test_an_address_from_outside_is_read_though_a_press_was_about_to_write_another(
    pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(pages["reverse"])
    page.goto("about:blank")
    page.goto(f"{(tmp_path / 'run.html').as_uri()}#kind=cross&layer=1&head=2&step=3&text=reversethis")
    sentence = page.locator("[data-part=sentence]")
    expect(sentence).to_contain_text("Step 3 of 12")
    page.wait_for_function("() => location.hash.includes('step=3') && document.querySelector('.js-plotly-plot')")
    page.evaluate(
        """() => {
          // What waits until somebody rests is due at once.
          const due = [], real = window.setTimeout;
          window.setTimeout = (act, ms, ...more) => (ms >= 300 ? due.push(act) : real(act, ms, ...more));
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
          location.hash = "kind=cross&layer=1&head=2&step=7&text=reversethis";
          window.wrote = due.length;
          for (const act of due) act();
          window.setTimeout = real;
        }"""
    )
    assert page.evaluate("window.wrote") > 0
    expect(sentence).to_contain_text("Step 7 of 12")
    assert "step=7" in page.url


@pytest.mark.parametrize(
    "text",
    ["<img src=x onerror=alert(1)>", *map(slow, ("Ω", "\u202eabc", "a" * 33, "</script><script>alert(1)</script>"))],
)
def test_hostile_texts_do_nothing_but_say_so(pages: dict[str, str], open_page: Callable[..., Page], text: str) -> None:
    page = open_page(pages["reverse"])
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.fill(TEXT, text)
    page.wait_for_function(
        "(text) => document.querySelector('[data-part=told]').textContent || document.title[0] === text[0]", arg=text
    )
    assert page.locator("main img").count() == 0
    typed(page, "fine")


@pytest.mark.slow
@pytest.mark.parametrize(
    "hash",
    [
        "kind=__proto__&layer=9&head=x&step=-1",
        *map(slow, ("text=%00%ff", "edits=<b>,cross:9-9,,x", "strategy=beam&seed=1e9&text=ab")),
    ],
)
def test_hostile_addresses_leave_the_page_whole(
    pages: dict[str, str], open_page: Callable[..., Page], hash: str, tmp_path: Path
) -> None:
    page = open_page(pages["reverse"])
    page.goto("about:blank")
    page.goto(f"{(tmp_path / 'run.html').as_uri()}#{hash}")
    expect(page.locator(STRIP).first).to_be_visible()
    page.evaluate(f"location.hash = '{hash}&x'")
    typed(page, "fine")


@pytest.mark.slow
def test_damaged_weights_are_told_and_the_example_stays(pages: dict[str, str], open_page: Callable[..., Page]) -> None:
    whole = pages["reverse"]
    place = whole.index('"weights":{"data":"') + 5000
    page = open_page(whole[:place] + ("AAAA" if whole[place : place + 4] != "AAAA" else "BBBB") + whole[place + 4 :])
    expect(page.locator(f"{FOCUS} .main-svg").first).to_be_visible()
    expect(page).to_have_title("reversethis · reverse")
    page.fill(TEXT, "abc")
    expect(page.locator(TOLD)).to_have_text("The weights in this file are damaged. Copy or download the file again.")
    page.get_by_label("Step on").click()
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 2 of 12")


def test_it_opens_at_the_first_step_and_play_leads_through_all(
    pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(pages["reverse"])
    sentence, said = page.locator("[data-part=sentence]"), page.locator("[data-part=answer]")
    expect(sentence).to_contain_text("Step 1 of 12")
    assert page.locator(STRIP).all_text_contents() == ["s", *[""] * 11]
    assert "sihtesrever" not in page.locator("body").inner_text()
    play = page.get_by_role("button", name="Play", exact=True)
    for _ in range(2):  # at the end it starts over
        play.click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        expect(sentence).to_contain_text("Step 3 of 12")
        expect(sentence).to_contain_text("Step 12 of 12")
        expect(said).to_contain_text("right")
        expect(play).to_be_visible()
    assert page.locator(STRIP).all_text_contents() == [*"sihtesrever", "<end>"]
    # A text of one's own begins there too; where an address says something, all is there.
    page.fill(TEXT, "planet")
    expect(sentence).to_contain_text("Step 1 of 7")
    page.goto("about:blank")
    page.goto(f"{(tmp_path / 'run.html').as_uri()}#text=planet&kind=cross&layer=1&head=1&step=2")
    expect(sentence).to_contain_text("Step 2 of 7")
    assert page.locator(STRIP).all_text_contents() == [*"tenalp", "<end>"]


@pytest.mark.slow
def test_other_programs_may_ask(pages: dict[str, str], open_page: Callable[..., Page]) -> None:
    """`window.transformerViz.decode`, also several at once and while somebody types."""
    page, checkpoint = open_page(pages["reverse"]), tv.load_checkpoint("reverse", device="cpu")
    for text in ("ask", "another one"):
        run, ours = page.evaluate(DECODE, [text, {}]), tv.decode(checkpoint, text)
        assert run["text"] == ours.text
        assert tuple(run["tokens"]) == ours.output_tokens
        assert tuple(run["source"]) == ours.source_tokens
        assert run["probabilities"] == pytest.approx([step.probability for step in ours.steps], abs=5e-4)
        for kind, attention in ours.attentions.items():
            shape = run["attentions"][kind]["shape"]
            assert tuple(shape) == attention.weights.shape
    texts = page.evaluate(
        """async () => {
          const all = ["one", "two", "three"].map((text) => window.transformerViz.decode(text));
          document.querySelector("[data-part=text]").value = "typed";
          document.querySelector("[data-part=text]").dispatchEvent(new Event("input", { bubbles: true }));
          return (await Promise.all(all)).map(({ text }) => text);
        }"""
    )
    assert texts == ["eno", "owt", "eerht"]
    said = page.evaluate("() => window.transformerViz.decode('ab', {beam_size: 3}).catch((error) => error.message)")
    assert "There is no option “beam_size”" in said


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
def test_nothing_is_wrong_for_eyes_and_screen_readers(
    pages: dict[str, str], open_page: Callable[..., Page], scheme: str, width: int
) -> None:
    page = open_page(pages["reverse"], width=width, height=3600, scheme=scheme)
    typed(page, "hear")
    page.get_by_text("Switch this head off").click()
    expect(page.locator("[data-part=changes] button")).to_have_count(1)
    for fold in page.locator("summary").all():
        fold.click()
    page.select_option("[data-option=strategy]", "sample")
    page.locator(".masks .main-svg").last.wait_for()
    assert not [*faults(page)]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_a_tile_opens_its_head(pages: dict[str, str], open_page: Callable[..., Page]) -> None:
    page = open_page(pages["reverse"])
    typed(page, "tiles")
    click_tile(page, ".mosaics .chart:nth-child(2)", 1, 2)
    expect(page.locator("[data-box=kind]")).to_have_value("decoder")
    expect(page.locator("[data-box=head]")).to_have_value("2")


def test_the_file_is_small_and_its_policy_strict(pages: dict[str, str], tmp_path: Path) -> None:
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    live_page(checkpoint, tmp_path / "bare.html", plotlyjs=False)
    assert (tmp_path / "bare.html").stat().st_size < 2.5e6
    assert len(pages["reverse"].encode()) < 7e6
    assert "worker-src blob:;" in pages["reverse"]
    assert "connect-src" not in pages["reverse"]
    assert "default-src &#39;none&#39;" in pages["reverse"]
    with pytest.raises(OptionError, match="html"):
        live_page(checkpoint, tmp_path / "live.pdf")
