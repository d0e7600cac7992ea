"""The map of A − B that the viewers fill into a template is the third of `figures.difference`, number by number."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.made_runs import run
from tests.attentions import with_parts
from tests.figures.sent import numbers, spec
from tests.needs import needs
from tests.node import node
from tests.viewer.test_second_map import plain
from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.comparison.compare import compare
from transformer_viz.figures import page_templates
from transformer_viz.figures.figure_data import typed
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace

pytestmark = needs("playwright", "libatomic1")


def side(trace: Trace, kind: Kind, layer: int, head: Head) -> dict[str, Any]:
    attention = trace.attentions[kind]
    weights, reasons = attention.head(layer, head), attention.head_reasons(layer, head)
    return {"weights": plain(weights.ravel()), "reasons": plain(reasons.ravel()), "columns": weights.shape[1]}


def filled(a: Trace, b: Trace, kind: Kind, place: tuple[int, Head], b_place: tuple[int, Head]) -> dict[str, Any]:
    program = node()
    assert program is not None
    template = page_templates.difference_template(a, b, kind)
    asked = json.dumps({"template": template, "a": side(a, kind, *place), "b": side(b, kind, *b_place)}, default=typed)
    asker = Path(__file__).with_name("ask_difference.js")
    done = subprocess.run([program, asker], input=asked, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def drawn(traces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What draws something, with plain numbers and without the axes that it stands on."""
    arrays = [{key: plain(numbers(value)) if key == "z" else value for key, value in one.items()} for one in traces]
    return [{key: value for key, value in one.items() if key not in ("xaxis", "yaxis")} for one in arrays if shows(one)]


def shows(trace: dict[str, Any]) -> bool:
    """A template has a trace for each reason that a cell can have; one without a cell draws nothing."""
    cells = [cell for row in trace["z"] for cell in row] if "z" in trace else trace["x"]
    return any(cell is not None for cell in cells)


def broken(trace: Trace) -> Trace:
    """With a weight that is not a number."""
    weights = trace.attentions["cross"].weights.copy()
    weights[0, :, 0, 0] = np.nan
    return replace(trace, attentions=with_parts(trace, "cross", weights=weights), mistake="mask after softmax")


A, B, OTHER = run(3, 2, 3, 5, 7), run(4, 3, 2, 7, 2), run(5, 2, 3, 5, 7)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize(("a", "b"), [(A, B), (B, A), (A, OTHER), (broken(A), OTHER)])
def test_a_difference_is_the_figures_own(a: Trace, b: Trace, kind: Kind) -> None:
    for place in ((0, 1), (1, "mean")):
        figure = spec(figures.difference(a, b, map_address(kind, *place)))
        wanted = drawn([one for one in figure["data"] if one.get("xaxis") == "x3"])
        made = filled(a, b, kind, place, place)
        got = drawn(made["data"])
        assert len(got) == len(wanted) >= 1
        for want, have in zip(wanted, got, strict=True):
            if "z" in want:
                np.testing.assert_allclose(np.array(have["z"], float), np.array(want["z"], float), atol=1e-6)
            assert {**have, "z": None} == {**want, "z": None}
        sizes = np.abs(np.nan_to_num(compare(a, b).difference(map_address(kind, *place))))
        row, column = np.unravel_index(sizes.argmax(), sizes.shape)
        assert made["farthest"] == {"row": row, "column": column}
