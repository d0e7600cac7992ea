"""The viewer by itself, in a page of two: its state, what it tells, what it hides, and numbers that come a head at a time."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import ROWS_UNCOVERED
from tests.figures.conftest import build
from transformer_viz.export.assets import templates
from transformer_viz.export.content import content
from transformer_viz.figures import page_templates
from transformer_viz.figures.figure_data import typed
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import modules, plotly_js

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><meta charset="utf-8"><style>{style}</style>
<section id="first">{viewer}</section><section id="second">{viewer}</section>
<script>{plotly}</script><script type="application/json" id="data">{data}</script>
<script>{script}
window.run = JSON.parse(document.getElementById("data").textContent);
window.heard = [];
const viewerOf = (id) => new Viewer(document.querySelector(`#${{id}} .viewer`), {{
  heard: (state, why) => window.heard.push([id, why, state]), chosenWay: (way) => window.heard.push([id, way]),
}});
window.first = viewerOf("first");
window.second = viewerOf("second");
</script>"""
DRAWN = """(id) => [...document.querySelectorAll(`#${id} .chart`)].every((chart) => chart.data && !chart.ariaBusy)"""
"""Whether Plotly has drawn every chart of a viewer."""


def run_of(trace: Trace, **more: Any) -> dict[str, Any]:
    made = content(trace, theme="light", large=False, with_answer=True)
    return {**made, "run": "one", **more}


@pytest.fixture
def open_viewers(open_page: Callable[..., Page]) -> Callable[[dict[str, Any]], Page]:
    def show(run: dict[str, Any]) -> Page:
        parts = {
            "style": modules.styles("player.css", "lines.css", "measures.css", "viewer.css"),
            "viewer": templates().get_template("viewer.html").render(),
            "plotly": plotly_js.path().read_text(encoding="utf-8"),
            "data": json.dumps(run, default=typed).replace("<", "\\u003c"),
            "script": modules.script("viewer.js"),
        }
        return open_page(PAGE.format(**parts))

    return show


Viewers = Callable[[dict[str, Any]], Page]


def test_a_press_is_told_at_once_and_nothing_else_is(open_viewers: Viewers) -> None:
    page = open_viewers(run_of(build()))
    state = page.evaluate("() => { first.show(run, { kind: 'cross', layer: 1, head: 2, step: 3 }); return first.state; }")
    assert state == {
        **{"run": "one", "kind": "cross", "layer": 1, "head": 2, "step": 3},
        **{"pin": [], "lines": "auto", "measure": "weights"},
    }
    assert page.evaluate("heard") == []
    told = page.evaluate(
        """() => {
          first.set({ head: 2 }, "head");
          first.set({ head: "mean" }, "head");
          first.set({ step: 99 }, "step");
          first.set({ pin: [1, null] }, "pin");
          first.set({ layer: 0 }, "layer");
          first.set({ kind: "encoder" }, "kind");
          return heard.map(([id, why, { kind, layer, head, step, pin }]) => [id, why, kind, layer, head, step, pin]);
        }"""
    )
    last = len(build().rows) - 1
    assert told == [
        ["first", "head", "cross", 1, "mean", 3, []],
        ["first", "step", "cross", 1, "mean", last, []],
        ["first", "pin", "cross", 1, "mean", last, [1, None]],
        ["first", "layer", "cross", 0, "mean", last, [1, None]],
        ["first", "kind", "encoder", 0, "mean", last, []],
    ]


def test_a_run_that_is_shown_draws_nothing_again(open_viewers: Viewers) -> None:
    page = open_viewers(run_of(build()))
    page.evaluate("first.show(run, { step: 2 })")
    page.wait_for_function(DRAWN, arg="first")
    count = """() => {
      let drawings = 0;
      const { react } = Plotly;
      Plotly.react = (...all) => { drawings += 1; return react(...all); };
      const changes = new MutationObserver(() => { drawings += 1; });
      changes.observe(document.getElementById("first"), { subtree: true, childList: true, attributes: true });
      first.show(run, { step: 2 });
      first.show(run);
      return new Promise((done) => setTimeout(() => done(drawings + changes.takeRecords().length), 500));
    }"""
    assert page.evaluate(count) == 0


def test_two_viewers_on_a_page_do_not_know_each_other(open_viewers: Viewers) -> None:
    page = open_viewers(run_of(build()))
    page.evaluate("first.show(run, { step: 1 }); second.show(run, { step: 4, kind: 'decoder' })")
    page.wait_for_function(DRAWN, arg="first")
    page.wait_for_function(DRAWN, arg="second")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[first.state.step, second.state.step]") == [2, 4]
    page.locator("#second [data-part=source] .token").nth(1).click()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("[first.state.step, second.state.step]") in ([2, 3], [2, 4])
    page.locator("#second [data-part=next]").click()
    page.keyboard.press("Home")
    assert page.evaluate("[first.state.step, second.state.step]") == [2, 0]
    expect(page.locator("#first [data-part=sentence]")).to_contain_text("Step 3 of 7")
    page.evaluate("second.end()")
    page.keyboard.press("End")
    assert page.evaluate("second.state.step") == 0


def test_what_is_to_come_is_neither_in_the_page_nor_in_a_chart(open_viewers: Viewers) -> None:
    """Tokens that nobody could guess stand for what is hidden."""
    output = tuple(f"secret{t}" for t in range(7))
    trace = build(output_tokens=output, target_tokens=("<start>", *output[:-1]), text="".join(output), steps=())
    page = open_viewers(run_of(trace, unfolds=True))
    told = """(id) => {
      const root = document.getElementById(id), charts = [...root.querySelectorAll(".chart")];
      const words = root.outerHTML + JSON.stringify(charts.map(({ data, layout }) => [data, layout]));
      return [...new Set(words.match(/secret\\d/g) ?? [])].sort();
    }"""
    rows = f"""() => [...document.querySelectorAll("#first .mosaics .chart")].slice(1).map({ROWS_UNCOVERED})"""
    page.evaluate("first.show(run, { kind: 'cross', step: 1 })")
    page.wait_for_function(DRAWN, arg="first")
    assert page.evaluate(told, "first") == ["secret0", "secret1"]
    assert page.evaluate(rows) == [2, 2]
    page.evaluate("first.set({ step: 3 }, 'step')")
    page.wait_for_function(DRAWN, arg="first")
    assert page.evaluate(told, "first") == ["secret0", "secret1", "secret2", "secret3"]
    assert page.evaluate(rows) == [4, 4]
    page.evaluate("first.set({ step: 0, kind: 'decoder' }, 'step')")
    page.wait_for_function(DRAWN, arg="first")
    assert page.evaluate(told, "first") == ["secret0"]
    expect(page.locator("#first [data-part=output] .token").nth(2)).to_have_attribute("aria-label", "step 3: not written yet")


def test_ways_terms_and_measures(open_viewers: Viewers) -> None:
    trace = build()
    rows, keys = trace.cross.weights.shape[2:]
    values = np.arange(rows * keys, dtype=np.float32).reshape(rows, keys) / 10
    result = Attribution("occlusion", "cross", values, "word", "nats")
    run = run_of(trace, ways={2: {"why": "why there?"}}, terms={"token": {"means": "A piece of text."}})
    run["hint"] = [("term", "token"), ("plain", " by token")]
    run["measures"] = [{"value": "weights", "words": "weights", "title": ""}, {"value": "cause", "words": "cause", "title": ""}]
    picture = page_templates.player_template(trace, "cross", measure=result)
    said = [[[[place] for place in range(rows)]]]
    run["pieces"] = [["plain", f"measured {t}"] for t in range(rows)] + run["pieces"]
    for kind in run["kinds"].values():
        kind["sentences"] = [[[[n + rows for n in one] for one in head] for head in layer] for layer in kind["sentences"]]
    second = {"values": values, "words": "cause by word", "unit": "nats"}
    run["kinds"]["cross"]["measures"] = {"cause": {"picture": picture, "second": second, "measured": said}}
    page = open_viewers(run)
    page.evaluate("first.show(run, { kind: 'cross', layer: 0, head: 1, step: 1 })")
    page.wait_for_function(DRAWN, arg="first")
    root = page.locator("#first")
    expect(root.locator("[data-part=hint] dfn")).to_have_attribute("aria-description", "A piece of text.")
    page.keyboard.press("ArrowRight")
    root.get_by_role("button", name="why there?").click()
    assert page.evaluate("heard.at(-1)") == ["first", "why"]
    root.get_by_role("button", name="cause").click()
    assert page.evaluate("[heard.at(-1)[1], heard.at(-1)[2].measure]") == ["measure", "cause"]
    expect(root.locator(".measured")).to_have_text(" measured 2")
    page.wait_for_function(DRAWN, arg="first")
    got = page.evaluate(
        """() => document.querySelector("#first [data-part=focus]").data.find(({ xaxis, z }) => xaxis === "x3" && z).z
          .map((row) => [...row].map((cell) => (isNaN(cell) ? null : cell)))"""
    )
    np.testing.assert_allclose(np.array(got[:3], float), values[:3], atol=1e-6)
    assert all(cell is None for row in got[3:] for cell in row)
    page.evaluate("first.set({ pin: [1, 2] }, 'pin')")
    expect(root.locator("[data-part=sentence]")).to_contain_text(f"cause by word +{values[1, 2]:.2f} nats")


def test_numbers_come_a_head_at_a_time_and_the_newest_press_wins(open_viewers: Viewers) -> None:
    trace = build()
    run = run_of(trace)
    cross = run["kinds"]["cross"]
    whole = cross.pop("weights")
    cross |= {"shape": whole.shape, "sentences": None}
    reasons = cross.pop("reasons")
    run["parts"] = {f"{layer} {head}": whole[layer, head] for layer in range(2) for head in range(3)}
    run["grey"] = reasons if reasons.ndim == 2 else reasons[0, 0]
    page = open_viewers(run)
    page.evaluate(
        """() => {
          window.answers = {};
          run.part = (kind, layer, head) => new Promise((done) => {
            answers[`${layer} ${head}`] = () => done({ weights: run.parts[`${layer} ${head}`], reasons: run.grey,
              sentences: Array.from({ length: 7 }, (_, t) => [["plain", `L${layer} H${head}, step ${t}`]]) });
          });
          first.show(run, { kind: "cross", layer: 0, head: 1, step: 6 });
        }"""
    )
    tokens = page.locator("#first [data-part=output] .token")
    assert tokens.count() == len(trace.output_tokens)
    page.evaluate("first.set({ head: 2 }, 'head')")
    page.evaluate("answers['0 2']()")
    expect(page.locator("#first [data-part=sentence]")).to_have_text("L0 H2, step 6")
    page.evaluate("answers['0 1']()")
    page.wait_for_function(DRAWN, arg="first")
    expect(page.locator("#first [data-part=sentence]")).to_have_text("L0 H2, step 6")
    z = page.evaluate("() => document.querySelector('#first [data-part=focus]').data[0].z.map((row) => [...row])")
    shown = np.where(np.array(run["grey"]) > 0, np.nan, whole[0, 2])
    np.testing.assert_allclose(np.array(z, float), shown, atol=1e-7)
    page.evaluate("first.set({ head: 1 }, 'head')")
    expect(page.locator("#first [data-part=sentence]")).to_have_text("L0 H1, step 6")
    page.evaluate("first.set({ head: 0 }, 'head')")
    assert page.evaluate("Object.keys(answers)") == ["0 1", "0 2", "0 0"]


MOVES = """() => ['band', 'dot', 'drop'].map((name) => document.querySelectorAll(`#first .travel .${name}`).length)"""


def test_a_look_travels_over_a_step_that_is_drawn_already(open_viewers: Viewers) -> None:
    page = open_viewers(run_of(build()))
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("first.show(run, { kind: 'cross', layer: 0, head: 0, step: 1 })")
    page.wait_for_function(DRAWN, arg="first")
    weights = build().cross.head(0, 0)
    seen = int((weights[2] >= 0.02).sum())
    assert seen > 1
    press = """(repeat) => {
      document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, repeat }));
      const { step } = first.state, now = document.querySelector('#first [data-part=output] .now').textContent;
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done([step, now]))));
    }"""
    # The end state first, in the press itself; then each token that is looked at has a band, a letter, and a cell to fall into.
    assert page.evaluate(press, False) == [2, build().output_tokens[2]]
    assert page.evaluate(MOVES) == [seen, seen, seen]
    page.wait_for_function(f"() => ({MOVES})().every((n) => n === 0)")
    # A key that is held has the bands alone.
    page.evaluate(press, True)
    assert page.evaluate(MOVES) == [int((weights[3] >= 0.02).sum()), 0, 0]
    page.evaluate("first.set({ step: 0 }, 'step')")
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(press, False)
    assert page.evaluate(MOVES) == [0, 0, 0]


def test_a_look_travels_along_its_line(open_viewers: Viewers) -> None:
    page = open_viewers(run_of(build()))
    page.emulate_media(reduced_motion="no-preference")
    for kind in ("cross", "decoder"):
        page.evaluate("(kind) => first.show(run, { kind, layer: 0, head: 0, step: 1, lines: 'step' })", kind)
        page.wait_for_function(DRAWN, arg="first")
        bands, lines = page.evaluate(
            """() => {
              document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
              const along = (name) => [...document.querySelectorAll(`#first ${name}`)].map((path) => path.getAttribute('d'));
              const frames = (n, then) => requestAnimationFrame(() => (n ? frames(n - 1, then) : then()));
              return new Promise((done) => frames(1, () => done([along('.travel .band'), along('svg.lines path')])));
            }"""
        )
        assert bands and set(bands) <= set(lines), kind
