"""The app's charts, in the page, and waiting for them: each wait is for a condition, and none for a time."""

import re
from typing import Any, cast

import numpy as np
from playwright.sync_api import Locator, Page, TimeoutError

from transformer_viz.terms import Head, Kind

PICTURE = ".st-key-picture .viewer"
FOCUS = ".st-key-picture [data-part=focus]"
"""The large map."""
TREE = ".st-key-search-tree .chart"
IS_DRAWN = """((chart) => {
  const viewer = chart?.closest('.viewer, .pair, .masked, .heads, .learned, .one-head');
  return viewer ? Boolean(chart.data) && !chart.ariaBusy && viewer.ariaBusy !== 'true' : Boolean(chart?.__drawn);
})"""
"""Whether Plotly has drawn what was pressed last."""
STEP = """((chart) => {
  const isNow = (cell) => cell.classList.contains('now');
  return [...chart.closest('.viewer, .learned').querySelectorAll('[data-part=output] .token')].findIndex(isNow);
})"""
AT_REST = """async () => {
  const look = LOOK, end = performance.now() + PATIENCE_MS;
  const isIdle = () => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && !(window.__asked > window.__heard)
    && [...document.querySelectorAll('.chart')].every((chart) => IS_DRAWN(chart) || !chart.clientWidth);
  let last = null, since = 0, failure = null;
  while (performance.now() < end) {
    let now = null;
    try {
      if (isIdle()) now = JSON.stringify([location.href, look(), window.__asked]);
      failure = null;
    } catch (error) {
      failure = error;  // what is looked for is not there yet
    }
    if (now === null || now !== last) [last, since] = [now, performance.now()];
    else if (performance.now() - since > REST_MS) return JSON.parse(now)[1];
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw failure ?? Error('the page does not come to rest');
}"""
"""Until Python and the charts have nothing to do, and for REST_MS nothing of what LOOK sees has changed."""
REST_MS = 450
"""More than the 400 after which a viewer tells again, and Plotly draws, once nothing more is pressed."""
PATIENCE_MS = 60_000
ROWS_UNCOVERED = """(chart) => {
  const { meta, yaxis: { range: [bottom, top] }, plot_bgcolor: paper } = chart.layout;
  const cover = chart.querySelector(".later"), edges = /M[\\d.-]+ ([\\d.-]+)H[\\d.-]+V([\\d.-]+)H/g;
  const cell = chart.querySelector(".nsewdrag").getBoundingClientRect().height / Math.abs(top - bottom);
  const covered = [...cover.getAttribute("d").matchAll(edges)].map(([, from, to]) => Math.round((to - from) / cell));
  const isOfAll = covered.length === meta.tiles.length && new Set(covered).size === 1;
  return isOfAll && cover.getAttribute("fill") === paper ? meta.rows - covered[0] : null;
}"""
"""How many rows of each small map no cover of the paper's colour lies over, which are those that are to come."""
ROWS = """(chart) => {
  const { z } = chart.data[0];
  if (!z.bdata) return z;
  const bytes = Uint8Array.from(atob(z.bdata), (letter) => letter.charCodeAt(0)), columns = Number(z.shape.split(',')[1]);
  const numbers = new { f4: Float32Array, f8: Float64Array, u1: Uint8Array }[z.dtype](bytes.buffer);
  const row = (place) => [...numbers.subarray(place * columns, (place + 1) * columns)];
  return Array.from({ length: numbers.length / columns }, (_, place) => row(place));
}"""
"""The numbers of a chart's first map, row by row."""
NUMBERS = f"""([selector, wanted, tolerance]) => {{
  const chart = document.querySelector(selector), rows = chart?.data && ({ROWS})(chart);
  const isSame = (have, want) => want === null ? have === null || Number.isNaN(have) : Math.abs(have - want) <= tolerance;
  return rows?.length === wanted.length && wanted.every((row, i) => row.every((want, k) => isSame(rows[i][k], want)));
}}"""
TEXTS = """([selector, kind]) => {
  const chart = document.querySelector(selector), origin = chart.getBoundingClientRect();
  const isKind = (name) => RegExp(`^(${kind})$`).test(name);
  const isMeant = (text) => [...text.classList, ...text.parentElement.classList].some(isKind);
  return [...chart.querySelectorAll('.main-svg text')].filter(isMeant).map((text) => {
    const { left, top, width, height } = text.getBoundingClientRect();
    return { text: text.textContent, box: [left - origin.left, top - origin.top, width, height] };
  });
}"""
"""The texts of a kind that a chart has, as `xtick`, and where they are in it."""
AREA = """(selector, name = 'xy') => {
  const chart = document.querySelector(selector), { left, top } = chart.getBoundingClientRect();
  const [x, y] = name.slice(1).split('y');
  const { [`xaxis${x}`]: across, [`yaxis${y}`]: down } = chart._fullLayout;
  return {
    right: (value) => left + across._offset + across.d2p(value), down: (value) => top + down._offset + down.d2p(value),
    x: left + across._offset, y: top + down._offset, width: across._length, height: down._length,
  };
}"""
"""Where on the screen a chart has a map, or the values of its axes."""
HEAD = """() => {
  const box = (name) => document.querySelector(`.st-key-picture [data-box=${name}]`);
  return [box('kind')?.querySelector('[aria-pressed=true]')?.value, box('layer')?.value, box('head')?.value];
}"""
HOVER = f"{FOCUS} .hovertext"
"""What Plotly says at the hand."""


def at_rest(page: Page, look: str = "() => null") -> Any:
    """What `look` sees once the page has come to rest.

    Args:
        page: with the app.
        look: a function in JavaScript; what it returns must not change any more.
    """
    source = (
        AT_REST.replace("LOOK", look)
        .replace("IS_DRAWN", IS_DRAWN)
        .replace("REST_MS", str(REST_MS))
        .replace("PATIENCE_MS", str(PATIENCE_MS))
    )
    return page.evaluate(source)


def link_of(page: Page) -> str:
    """The page's link, once it is written to its end."""
    at_rest(page)
    return page.url


def drawn(page: Page, chart: str = FOCUS) -> np.ndarray:
    """The weights that the browser holds, (query, key); what is blank or masked is NaN."""
    z = page.evaluate(f"({ROWS})(document.querySelector('{chart}')).map((row) => [...row].map((w) => (isNaN(w) ? null : w)))")
    return np.array([[np.nan if w is None else w for w in row] for row in z])


def wait_for_weights(page: Page, weights: np.ndarray, atol: float, chart: str = FOCUS) -> None:
    """Until the chart holds these numbers, (query, key), up to `atol`; NaN is a blank cell."""
    wanted = [[None if np.isnan(weight) else float(weight) for weight in row] for row in weights]
    try:
        page.wait_for_function(NUMBERS, arg=[chart, wanted, atol])
    except TimeoutError:
        np.testing.assert_allclose(drawn(page, chart), weights, atol=atol)
        raise


def bring_into_view(box: Locator) -> None:
    """Until the page has stopped scrolling: an open list closes when it scrolls."""
    box.evaluate(
        """(box) => new Promise((done) => {
          box.scrollIntoView({ block: 'center', behavior: 'instant' });
          let last = NaN, same = 0;
          const look = () => {
            const now = box.getBoundingClientRect().top;
            [same, last] = [now === last ? same + 1 : 0, now];
            same > 10 ? done() : requestAnimationFrame(look);
          };
          look();
        })"""
    )


def point_at(page: Page, chart: str, x: float, y: float) -> None:
    """Moves the mouse to where these values of a chart's axes are."""
    right, down = page.evaluate(
        f"([chart, x, y]) => {{ const area = ({AREA})(chart); return [area.right(x), area.down(y)]; }}", [chart, x, y]
    )
    page.mouse.move(right, down)


def click_point(page: Page, chart: str, x: float, y: float) -> None:
    """A click there."""
    point_at(page, chart, x, y)
    page.mouse.down()
    page.mouse.up()


def click_tile(page: Page, chart: str, row: int, column: int) -> None:
    """Clicks into a tile of a mosaic, or a cell of an overview."""
    bring_into_view(page.locator(chart))
    x, y = page.evaluate(
        f"""([selector, row, column]) => {{
          const grid = document.querySelector(selector).layout.meta, area = ({AREA})(selector);
          return [area.right((column + 0.5) * grid.pitch_x), area.down((row + 0.4) * grid.pitch_y)];
        }}""",
        [chart, row, column],
    )
    page.mouse.click(x, y)


def small(kind: Kind) -> str:
    """The small maps of a kind."""
    return f"{PICTURE} [data-part=mosaics] [data-kind={kind}]"


def wait_until_drawn(page: Page, chart: str = FOCUS) -> None:
    """Until there is such a chart, and it is drawn."""
    page.wait_for_function(f"(chart) => {IS_DRAWN}(document.querySelector(chart))", arg=chart)


def head_of(page: Page) -> tuple[str, int, Head]:
    """Kind, layer and head of the viewer, counted from 0."""
    kind, layer, head = page.evaluate(HEAD)
    return kind, int(layer), int(head) if head.isdigit() else cast(Head, head)


def wait_for_head(page: Page, kind: str, layer: int, head: int | str) -> None:
    """Until the focus map of that head is drawn, counted from 0."""
    page.wait_for_function(
        f"([chart, ...head]) => {IS_DRAWN}(document.querySelector(chart)) && ({HEAD})().join() === head.join()",
        arg=[FOCUS, kind, str(layer), str(head)],
    )


def step_of(page: Page) -> int:
    """Where the player stands, from 0; a press is there in the same frame."""
    return page.evaluate(f"{STEP}(document.querySelector('{FOCUS}'))")


def wait_for_step(page: Page, step: int) -> None:
    """Until the focus map is drawn and stands at that step, from 0."""
    page.wait_for_function(
        f"""([chart, step]) => {{
          const found = document.querySelector(chart);
          return {IS_DRAWN}(found) && {STEP}(found) === step;
        }}""",
        arg=[FOCUS, step],
    )


def choose_kind(page: Page, words: str) -> None:
    """A kind of attention in the viewer."""
    page.locator(f"{PICTURE} [data-box=kind]").get_by_role("button", name=words, exact=True).click()


def texts(page: Page, kind: str, chart: str = FOCUS) -> list[str]:
    """The texts of a kind that a chart has, as `xtick`; several kinds with a bar between them."""
    return [text["text"] for text in page.evaluate(TEXTS, [chart, kind])]


def area(page: Page, chart: str = FOCUS, name: str = "xy") -> dict[str, float]:
    """Where on the screen a map lies between its axes."""
    return page.evaluate(
        f"([chart, name]) => {{ const {{ x, y, width, height }} = ({AREA})(chart, name); return {{ x, y, width, height }}; }}",
        [chart, name],
    )


def wait_for_link(page: Page, **wanted: str) -> None:
    """Until the page's link says so of these boxes."""
    page.wait_for_function(
        """(wanted) => {
          const said = new URLSearchParams(location.search);
          return Object.entries(wanted).every(([key, value]) => said.get(key) === value);
        }""",
        arg=wanted,
    )


def choose(page: Page, label: str, option: str) -> None:
    """Chooses an option in the box of this label."""
    box = page.get_by_role("combobox", name=label)
    if box.evaluate("(box) => box.tagName") == "SELECT":
        box.select_option(label=option)
        return
    bring_into_view(box)
    box.click()
    # Below it there may be a note, which is a part of its name and not of its text.
    page.get_by_role("option").filter(has_text=re.compile(f"^{re.escape(option)}$")).click()
