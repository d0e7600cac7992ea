"""The exported page's small maps, masks and numbers; hostile tokens; in a notebook, and beside or without plotly.js."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.browser.drawn import DRAWN, FOCUS, plain, same_as_the_figure
from tests.figures.conftest import build
from tests.figures.test_hovers import run
from transformer_viz import figures
from transformer_viz.figures.theme import Style, ThemeName
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import plotly_js

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def edited() -> Trace:
    """Heads that differ in their masks."""
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    return tv.decode(checkpoint, "edit it", edits=["cross.2.3:4-5,decoder.1.2:off"])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_maps_are_the_figures_own(open_page: Callable[..., Page], scheme: ThemeName) -> None:
    trace = build()
    page = open_page(tv.export.html(trace, "cross.2.3"), scheme=scheme)
    page.wait_for_function(MOSAICS_DRAWN)
    for place, kind in enumerate(KINDS):
        wanted = plain(figures.mosaic(trace, kind, (1, 2) if kind == "cross" else None, style=Style(scheme)).to_dict())
        found = page.evaluate(f"() => ({PLAIN})(document.querySelector('[data-part=mosaics]').children[{place}].data)")
        # Rectangles end with a gap.
        assert [plain(trace)["z"] for trace in found if "z" in trace] == [
            drawn["z"] for drawn in wanted["data"] if "z" in drawn
        ]
        thin, *strong = [[drawn["x"], drawn["y"], drawn["line"]] for drawn in wanted["data"] if "line" in drawn]
        assert [[drawn["x"], drawn["y"], drawn["line"]] for drawn in found if "line" in drawn] == [thin]
        # The tile in focus is marked over the chart, with its caption.
        marks = page.locator("[data-part=mosaics] > div").nth(place).locator(".marks")
        captions = wanted["data"][-1]
        colour = strong[0][2]["color"] if strong else None
        named = [text for text, own in zip(captions["text"], captions["textfont"]["color"], strict=True) if own == colour]
        assert marks.locator("text").all_text_contents() == named
        d = marks.locator(".tile").get_attribute("d") or ""
        assert d.count("M") == len(named)
        if strong:
            assert marks.locator(".tile").get_attribute("stroke") == colour


MOSAICS_DRAWN = "() => [...document.querySelectorAll('[data-part=mosaics] > div')].every((chart) => chart.data)"
PLAIN = "(data) => JSON.parse(JSON.stringify(data))"
CELL = """([selector, key, query]) => {
  const chart = document.querySelector(selector), { xaxis, yaxis } = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.x + xaxis._offset + xaxis.l2p(key), box.y + yaxis._offset + yaxis.l2p(query)];
}"""


def hover(page: Page, chart: str, key: int, query: int) -> str:
    """What is said of a cell; both are counted from 0."""
    page.locator(chart).scroll_into_view_if_needed()
    page.mouse.move(*page.evaluate(CELL, [chart, key, query]))
    words = page.locator(f"{chart} .hovertext")
    expect(words).to_be_visible()
    return words.text_content() or ""


@pytest.mark.slow
def test_a_cell_whose_labels_were_left_out_is_named(open_page: Callable[..., Page]) -> None:
    """100 columns and 70 rows: the axes have room for every other one."""
    trace = run(100, 70)
    page = open_page(tv.export.html(trace, "cross.1.2"), height=1400)
    page.wait_for_function(DRAWN)
    ticks = page.locator(f"{FOCUS} .xtick, {FOCUS} .ytick").all_text_contents()
    assert not [tick for tick in ticks if tick.startswith(("22·", "62·"))]
    assert hover(page, FOCUS, 21, 61).startswith("query 62·t61→t62key 22·s21weight 0.")
    page.get_by_text("Masks in force").click()
    encoder = ".mask:nth-child(1)"
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData", arg=encoder)
    ticks = page.locator(f"{encoder} .xtick, {encoder} .ytick").all_text_contents()
    assert not [tick for tick in ticks if tick.startswith(("22·", "66·"))]
    # A cell is less than two pixels high: this one's middle is not on the edge of a pixel.
    assert hover(page, encoder, 21, 65) == "query 66·s65key 22·s21may look"


@pytest.mark.slow
def test_masks_and_numbers_are_a_click_away(open_page: Callable[..., Page], edited: Trace) -> None:
    page = open_page(tv.export.html(edited, "cross.2.3", 3))
    page.get_by_text("Masks in force").click()
    page.wait_for_function(
        "() => document.querySelectorAll('.mask').length === 3 && document.querySelectorAll('.mask')[2].data"
    )
    for place, kind in enumerate(KINDS):
        reasons = edited.attentions[kind].reasons
        reasons = reasons if reasons.ndim == 2 else reasons[1, 2]
        z, title = page.evaluate(
            f"(([c]) => [c.data[0].z.map((r) => [...r]), c.layout.title.text])([document.querySelectorAll('.mask')[{place}]])"
        )
        assert z == reasons.tolist()
        assert f"{(reasons > 0).sum()} of {reasons.size} cells masked" in title
        want = plain(figures.mask(edited, f"{kind}.2.3").to_dict())["data"][0]
        assert page.evaluate(f"document.querySelectorAll('.mask')[{place}].data[0].text") == np.asarray(want["text"]).tolist()
    page.get_by_text("This row in numbers").click()
    # A section fills itself when it opens, and its words are shown only once it is.
    page.wait_for_function("() => document.querySelector('.numbers dd')?.innerText")
    shown = page.locator(".numbers dd").all_inner_texts()
    masked = edited.cross.mask[1, 2, 3]
    for text, weight, is_masked in zip(shown, edited.cross.weights[1, 2, 3], masked, strict=True):
        assert text == "masked" if is_masked else float(text) == pytest.approx(weight, rel=1e-3, abs=5e-7)


def test_hostile_tokens_show_literally(open_page: Callable[..., Page]) -> None:
    tokens = (
        "</script>",
        "<img src=x onerror=document.title='ran'>",
        "$x$",
        "<!--",
        "{{data}}",
        "\u2028",
        "]]>",
        "e\u0301",
        "&lt;",
        "a",
        "b",
    )
    page = open_page(tv.export.html(build(source_tokens=tokens, source="</title><script>document.title='ran'</script>")))
    page.wait_for_function(DRAWN)
    assert page.locator("[data-part=source] span").all_text_contents() == [token.replace(" ", "␣") for token in tokens]
    assert page.locator("body img, [data-part=source] script").count() == 0
    assert page.title().startswith("</title><script>")
    ticks = page.locator(f"{FOCUS} .xaxislayer-above .xtick text").all_text_contents()
    assert ticks[0] == "1·</script>"
    assert ticks[2] == "3·$x$"


@pytest.mark.slow
def test_in_a_notebook_neither_reaches_the_other(open_page: Callable[..., Page]) -> None:
    trace = build()
    host = "<meta charset=windows-1252><style>button { display: none }</style><p id=p>notebook</p>" + str(trace._repr_html_())
    page = open_page(host)
    inner = page.frames[1]
    inner.wait_for_function(DRAWN)
    inner.get_by_role("button", name="Step back").click()
    expect(inner.locator("[data-part=sentence]")).to_contain_text("Step 5 of 7")
    assert inner.evaluate("(() => { try { return parent.document.title } catch { return 'walled off' } })()") == "walled off"
    assert page.evaluate("[typeof Plotly, document.styleSheets.length]") == ["undefined", 1]


@pytest.mark.slow
def test_plotly_beside_the_page_or_missing(open_page: Callable[..., Page], tmp_path: Path) -> None:
    beside = Path(shutil.copy(plotly_js.path(), tmp_path))
    trace = build()
    page = open_page(tv.export.html(trace, "cross.1.1", 2, plotlyjs=False))
    page.wait_for_function(DRAWN)
    same_as_the_figure(page, trace, "cross", 0, 0, 2)
    beside.unlink()
    page = open_page(tv.export.html(trace, "cross.1.1", 2, plotlyjs=False), lacks=beside.name)
    expect(page.get_by_text("plotly.js is not where this page looks for it")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 4 of 7")


@pytest.mark.slow
def test_the_bundle_draws_the_traces_that_are_said_and_the_whole_draws_others(open_page: Callable[..., Page]) -> None:
    page = open_page(tv.export.figure_html(go.Figure([go.Pie(labels=["a", "b"], values=[1, 2])])))
    page.wait_for_selector("#figure .slice")
    assert set(page.evaluate("Object.keys(Plotly.PlotSchema.get().traces)")) == plotly_js.CARTESIAN
    page = open_page(tv.export.figure_html(go.Figure(go.Sunburst(labels=["a", "b"], parents=["", "a"]))))
    page.wait_for_selector("#figure .slice")


@pytest.mark.slow
def test_any_figure_is_a_page(open_page: Callable[..., Page]) -> None:
    trace = build()
    figure = figures.mosaic(trace, "cross", style=figures.Style("dark"))
    page = open_page(tv.export.figure_html(figure, title="<b>x"))
    page.wait_for_function("() => document.querySelector('#figure').data")
    assert page.title() == "<b>x"
    rows = page.evaluate("document.querySelector('#figure')._fullData[0].z.length")
    assert rows == len(plain(figure.to_dict())["data"][0]["z"])
