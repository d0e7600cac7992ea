"""The widget's script in a page, with what a notebook gives it: cells of one widget, and a Python that may be silent."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from tests.needs import needs

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs("anywidget")]

# What anywidget does: `initialize` once, `render` for each cell, and to each of them a model of its own that knows one state.
NOTEBOOK = """async ([script, focus, longest]) => {
  const state = { focus, longest }, hears = [];
  window.asked = [];
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  const tell = (event, ...words) => hears.filter(([name]) => name === event).forEach(([, act]) => act(...words));
  window.hear = (words, buffers) => tell("msg:custom", words, buffers.map(bytes));
  window.put = (focus) => { state.focus = focus; tell("change:focus"); };
  const model = () => ({
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    save_changes: () => tell("change:focus"),
    send: (words) => window.asked.push(words),
    on: (event, act) => hears.push([event, act]),
    off: (event, act) => hears.splice(hears.findIndex(([name, own]) => name === event && own === act), 1),
  });
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const widget = await module.default();
  await widget.initialize({ model: model() });
  window.cell = () => {
    const el = document.createElement("div");
    const end = widget.render({ model: model(), el });
    return { el, end };
  };
}"""


class Notebook:
    """A page with a widget, whose questions Python answers when it is told to."""

    def __init__(self, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page, self.widget = page, tv.widget(tv.load_checkpoint("reverse", device="cpu"), "hello", head="cross.2.1")
        self.asked: list[str] = []
        monkeypatch.setattr(self.widget, "send", self._send)
        page.evaluate(NOTEBOOK, [self.widget._esm, self.widget.focus, self.widget.longest])

    def answer(self) -> None:
        """Answers until nothing is asked any more."""
        quiet = 0
        while quiet < 5:
            questions = self.page.evaluate("window.asked.splice(0)")
            for words in questions:
                self.asked.append(words["ask"])
                self.widget._handle_custom_msg(words, [])
            quiet = 0 if questions else quiet + 1
            self.page.wait_for_timeout(100)

    def _send(self, words: dict[str, Any], buffers: Any = ()) -> None:
        packed = [base64.b64encode(one).decode() for one in buffers or ()]
        self.page.evaluate("([words, buffers]) => window.hear(words, buffers)", [words, packed])


@pytest.fixture
def notebook(open_page: Callable[..., Page], monkeypatch: pytest.MonkeyPatch) -> Notebook:
    page = open_page("<!DOCTYPE html><meta charset=utf-8><title>notebook</title><body style='background: white'>")
    return Notebook(page, monkeypatch)


def test_a_cell_that_is_made_before_it_stands_in_the_page_looks_as_the_page_does(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate("window.made = window.cell()")
    notebook.answer()
    page.evaluate("document.body.append(window.made.el)")
    cell = page.locator(".transformer-viz")
    expect(cell.locator("[data-part=maps] .js-plotly-plot").first).to_be_visible()
    expect(cell).not_to_have_class("transformer-viz dark")
    page.evaluate("document.body.style.background = '#111'")
    expect(cell).to_have_class("transformer-viz dark")


def test_two_cells_of_a_widget_share_its_run_and_its_focus_and_one_outlives_the_other(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate("window.cells = [window.cell(), window.cell()]; document.body.append(...window.cells.map(({ el }) => el))")
    notebook.answer()
    assert [notebook.asked.count(what) for what in ("run", "plotly", "head")] == [1, 1, 1]
    one, other = (page.locator(".transformer-viz").nth(place) for place in (0, 1))
    one.get_by_label("Head", exact=True).select_option("head 3")
    notebook.answer()
    for cell in (one, other):
        expect(cell.locator("[data-part=sentence]")).to_contain_text("layer 2 head 3")
    assert notebook.asked.count("head") == 2
    page.evaluate("window.cells[0].end(); window.cells[0].el.remove()")
    page.evaluate("(focus) => window.put(focus)", {**notebook.widget.focus, "head": 3})
    notebook.answer()
    expect(page.locator("[data-part=sentence]")).to_contain_text("layer 2 head 4")


def test_where_python_does_not_answer_it_is_said_beside_the_map(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate("document.body.append(window.cell().el)")
    notebook.answer()
    late = page.locator("[data-part=late]")
    expect(late).to_be_hidden()
    page.get_by_label("Head", exact=True).select_option("head 2")
    expect(late).to_be_visible()
    expect(late).to_contain_text("run this cell again")
    notebook.answer()
    expect(late).to_be_hidden()
    expect(page.locator("[data-part=sentence]")).to_contain_text("layer 2 head 2")


# What Lumino does with a key that JupyterLab has for `:focus`: it asks each element, from the one in focus on, whether its keys
# are its own, and whether it is meant.
TAKES_KEYS = """() => document.addEventListener("keydown", (event) => {
  for (let one = event.target; one && !one.hasAttribute("data-lm-suppress-shortcuts"); one = one.parentElement) {
    if (one.matches(":focus")) return event.stopPropagation();
  }
}, true)"""


def test_arrows_step_where_the_notebook_has_them_for_its_headings(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate(TAKES_KEYS)
    page.evaluate("document.body.append(window.cell().el)")
    notebook.answer()
    sentence = page.locator("[data-part=sentence]")
    page.locator("[data-part=output] .token").first.click()
    expect(sentence).to_contain_text("Step 1 of 6")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("Step 2 of 6")
