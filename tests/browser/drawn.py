"""What an exported page has drawn, beside what the figures draw."""

import base64
from typing import Any

import numpy as np
from playwright.sync_api import Page

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

FOCUS = "[data-part=focus]"
# Functions, not expressions: the page's policy allows nobody to evaluate a string, not even a test.
DRAWN = f"""() => {{
  const chart = document.querySelector('{FOCUS}');
  return chart?.data && !chart.ariaBusy;
}}"""
"""Whether Plotly has drawn what was pressed last; until then the chart is busy, and a sketch stands over it."""
MARKS = f"""() => {{
  const chart = document.querySelector('{FOCUS}'), {{ left, top }} = chart.getBoundingClientRect();
  const area = chart.querySelector('.nsewdrag[data-subplot=xy]').getBoundingClientRect();
  const [x0, x1] = chart.layout.xaxis.range, [y0, y1] = chart.layout.yaxis.range;
  const x = (pixel) => x0 + (x1 - x0) * (pixel + left - area.left) / area.width;
  const y = (pixel) => y1 + (y0 - y1) * (pixel + top - area.top) / area.height;
  const found = (name, form) => [...(chart.querySelector(`.marks .${{name}}`).getAttribute('d') ?? '').matchAll(form)]
    .map((numbers) => numbers.slice(1).map(Number));
  const rows = found('row', /M(.*?) (.*?)H(.*?)V(.*?)H/g).map(([a, b, c, d]) => [x(a), y(b), x(c), y(d)]);
  const rings = ['rings', 'ring'].flatMap((name) => {{
    const width = Number(chart.querySelector(`.marks .${{name}}`).getAttribute('stroke-width'));
    return found(name, /M(.*?) (.*?)a(.*?) /g).map(([a, b, radius]) => [x(a + radius), y(b), 2 * radius, width]);
  }});
  return {{ rows, rings }};
}}"""
"""The outline of the step's row and the rings over the large map, in cells; of a ring its size and its width too."""


def go(page: Page, kind: Kind, layer: int, head: Head, step: int) -> None:
    words = head if isinstance(head, str) else head + 1
    page.evaluate(f"location.hash = 'kind={kind}&layer={layer + 1}&head={words}&step={step + 1}'")
    page.wait_for_function(
        "([kind, layer, head]) => ['kind', 'layer', 'head'].every((name, i) => "
        "document.querySelector(`[data-box=${name}]`).value === [kind, layer, head][i])",
        arg=[kind, str(layer), str(head)],
    )
    page.wait_for_function(f"() => document.querySelector('[data-part=output]').children[{step}]?.classList.contains('now')")


def drawn(page: Page) -> dict[str, Any]:
    """Data and layout that the page gave to Plotly; NaN is None."""
    page.wait_for_function(DRAWN)
    return page.evaluate(f"""() => {{
      const plain = (value) => ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, plain)
        : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]))
        : typeof value === 'number' && isNaN(value) ? null : value;
      const chart = document.querySelector('{FOCUS}');
      return plain({{ data: chart.data, layout: chart.layout }});
    }}""")


def plain(value: Any) -> Any:
    """A figure's JSON with arrays as lists and NaN as None."""
    if isinstance(value, dict) and "bdata" in value:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        shape = [int(n) for n in str(value.get("shape", len(flat))).split(",")]
        return plain(flat.reshape(shape).tolist())
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def same_as_the_figure(page: Page, trace: Trace, kind: Kind, layer: int, head: Head, step: int, **looks: Any) -> None:
    """Every number, label and colour that `figures.player` gives for this step; the row and the rings are marks over it."""
    figure = plain(figures.player(trace, map_address(kind, layer, head), step, **looks).to_dict())
    got = drawn(page)
    # Where heads differ in their masks the page has a trace for every reason; an empty one draws nothing.
    wanted, full = _not_empty([one for one in figure["data"] if not _is_mark(one)]), _not_empty(got["data"])
    assert [entry["type"] for entry in full] == [entry["type"] for entry in wanted]
    for want, have in zip(wanted, full, strict=True):
        for key, value in want.items():
            assert have.get(key) == value, (kind, layer, head, step, key)
    for key, value in figure["layout"].items():
        if key in ("meta", "template"):
            continue
        have = got["layout"].get(key)
        if isinstance(value, dict):  # Plotly notes more than it was given
            have = {name: have.get(name) for name in value}
        assert have == value, (kind, layer, head, step, key)
    same_marks(page, [one for one in figure["data"] if _is_mark(one)])


def same_marks(page: Page, traces: list[dict[str, Any]]) -> None:
    """The row of the step and the rings that these traces have."""
    marks = page.evaluate(MARKS)
    rows = [[min(one["x"]), min(one["y"]), max(one["x"]), max(one["y"])] for one in traces if one["mode"] == "lines"]
    np.testing.assert_allclose(np.reshape(marks["rows"], (-1, 4)), np.reshape(rows, (-1, 4)), atol=0.02)
    rings = [
        [x, y, one["marker"]["size"], width]
        for one in traces
        if one["mode"] == "markers"
        for x, y, width in zip(one["x"], one["y"], one["marker"]["line"]["width"], strict=True)
    ]
    found = sorted(marks["rings"], key=lambda ring: ring[1])
    np.testing.assert_allclose(np.reshape(found, (-1, 4)), np.reshape(rings, (-1, 4)), atol=0.02)


def _is_mark(entry: dict[str, Any]) -> bool:
    """Whether it is the row of the step, or the rings."""
    is_ring = entry.get("marker", {}).get("symbol") == "circle-open"
    return is_ring or (entry["type"] == "scatter" and entry.get("mode") == "lines" and "fill" not in entry)


def _not_empty(traces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without heatmaps of nothing and hatching around nothing."""

    def has_something(entry: dict[str, Any]) -> bool:
        if "z" in entry:
            return any(cell is not None for row in entry["z"] for cell in row)
        return bool(entry["x"]) or not entry.get("fill")

    return [entry for entry in traces if has_something(entry)]
