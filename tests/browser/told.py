"""What a page tells of a run: all that it holds, whether it can be seen or not."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from playwright.sync_api import Page

from transformer_viz.trace.trace import Trace

SENT = """async () => {
  const plain = (value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
  const shadows = (root) => [...root.querySelectorAll('*')].flatMap((one) => one.shadowRoot
    ? [one.shadowRoot, ...shadows(one.shadowRoot)] : []);
  const texts = [document, ...shadows(document)].map((root) => root.documentElement?.outerHTML ?? root.innerHTML);
  const charts = [...document.querySelectorAll('.chart')].map((chart) => JSON.stringify(
    [chart.data, chart.layout, chart.frames, chart._transitionData], (key, value) => plain(value)));
  const asked = performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/run/'));
  const runs = await Promise.all([...new Set(asked)].map(async (name) => {
    const answer = await fetch(name);
    return answer.ok ? answer.json() : null;
  }));
  return { texts: texts.join('\\n'), charts, runs };
}"""
"""Every element, also in shadows, what each chart was given, and the runs that the page has fetched."""


def weights_from(trace: Trace, row: int) -> set[str]:
    """Weights of this row and of all after it, in four places, that nothing else of the run has."""
    writers = [attention.weights for kind, attention in trace.attentions.items() if kind != "encoder"]
    hidden = np.concatenate([weights[:, :, row:].ravel() for weights in writers])
    shown = [*(weights[:, :, :row].ravel() for weights in writers), trace.attentions["encoder"].weights.ravel()]
    # A scale of colours has elevenths.
    known = np.concatenate([*shown, np.arange(12) / 11])
    found = {f"{value:.6f}"[:6] for value in map(float, hidden) if 0.02 < value < 0.98}
    found -= {words for value in map(float, known) for words in (f"{value:.4f}", f"{value:.9f}"[:6])}
    assert len(found) > 1
    return found


def told(page: Page, numbers: set[str]) -> set[str]:
    """Those of the numbers that the page holds."""
    sent = page.evaluate(SENT)
    fetched = {f"{value:.6f}"[:6] for run in sent["runs"] for value in _numbers(run)}
    return numbers & {*re.findall(r"0\.\d{4}", sent["texts"] + "".join(sent["charts"])), *fetched}


def _numbers(data: Any) -> Iterator[float]:
    """All that are in arrays and lists."""
    if isinstance(data, dict) and "bdata" in data:
        yield from map(float, np.frombuffer(base64.b64decode(data["bdata"]), data["dtype"]))
    elif isinstance(data, dict | list):
        for entry in data.values() if isinstance(data, dict) else data:
            yield from _numbers(entry)
    elif isinstance(data, float):
        yield data
