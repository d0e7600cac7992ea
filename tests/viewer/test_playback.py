"""The picture of a training that the viewer makes of the numbers of all moments is that of `figures.training_playback`."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.figures.conftest import build
from tests.figures.sent import numbers, spec
from tests.needs import needs
from tests.node import node
from tests.training.test_figures import with_numbers_of
from transformer_viz import figures
from transformer_viz.figures.figure_data import typed
from transformer_viz.figures.theme import Style
from transformer_viz.terms import KINDS, Kind, row_labels
from transformer_viz.training.result import TrainingSnapshot, course, snapshot_sentence
from transformer_viz.views.train.picture import content

pytestmark = needs("playwright", "libatomic1", "streamlit")

STEPS = (0, 3, 150, 12_500)


def moments() -> list[TrainingSnapshot]:
    """Four moments whose weights and candidates all differ."""
    whole, found = build(), []
    for i, step in enumerate(STEPS):
        attentions = {kind: replace(each, weights=np.roll(each.weights, i, axis=1)) for kind, each in whole.attentions.items()}
        n = len(whole.steps)
        steps = tuple(with_numbers_of(step, whole.steps[(t + i) % n]) for t, step in enumerate(whole.steps))
        run = replace(whole, attentions=attentions, steps=steps)
        found.append(TrainingSnapshot(step=step, written=run, forced=run, target="answer"))
    return found


def filled(found: list[TrainingSnapshot], kind: Kind, place: dict[str, int]) -> dict[str, Any]:
    program, first = node(), found[0].forced
    assert program is not None
    rows = row_labels(first.target_tokens, first.output_tokens)
    run = content(found, rows, Style(), tuple)
    given = json.dumps({"kind": run.pop("kinds")[kind], "run": run, "place": place}, default=typed)
    asker = Path(__file__).with_name("ask_playback.js")
    done = subprocess.run([program, asker], input=given, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def z_of(trace: dict[str, Any]) -> Any:
    return [np.array(row, float) for row in trace["z"]] if isinstance(trace["z"], list) else numbers(trace["z"])


def on(traces: list[dict[str, Any]], **looks: Any) -> list[dict[str, Any]]:
    return [trace for trace in traces if all(trace.get(name) == value for name, value in looks.items())]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layer", "head", "moment", "position"), [(0, 0, 3, 0), (2, 4, 1, 5), (1, 2, 0, 2)])
def test_the_picture_is_the_figures_own(kind: Kind, layer: int, head: int, moment: int, position: int) -> None:
    found = moments()
    attention = found[0].forced.attentions[kind]
    layer, head = min(layer, attention.n_layers - 1), min(head, attention.n_heads - 1)
    number = attention.layers[layer]
    drawn = spec(figures.training_playback(found, f"{kind}.{number + 1}.{head + 1}", moment, position))
    have = filled(found, kind, {"layer": layer, "head": head, "moment": moment, "position": position})
    maps, wanted = on(have["traces"], type="heatmap"), on(drawn["data"], type="heatmap")
    assert len(maps) == len(wanted) >= 1
    for got, want in zip(maps, wanted, strict=True):
        np.testing.assert_array_equal(np.array(z_of(got), float), np.array(z_of(want), float))
    (bars,), (want_bars,) = on(have["traces"], type="bar"), on(drawn["data"], type="bar")
    for name in ("text", "customdata", "textposition"):
        assert bars[name] == want_bars[name], name
    np.testing.assert_array_equal(bars["x"], numbers(want_bars["x"]))
    assert have["names"] == drawn["layout"]["yaxis3"]["ticktext"]
    # The heads' ways, and where the one in focus stands now.
    lines, want_lines = on(have["traces"], type="scatter", xaxis="x2"), on(drawn["data"], type="scatter", xaxis="x2")
    assert len(lines) == len(want_lines) == 4
    for got, want in zip(lines, want_lines, strict=True):
        assert got["mode"] == want["mode"] and got.get("text") == want.get("text")
        np.testing.assert_array_equal(np.array(got["x"], float), numbers(want["x"]))
        np.testing.assert_array_equal(np.array(got["y"], float), numbers(want["y"]))
    assert lines[3]["textposition"] == want_lines[3]["textposition"]
    # The ring of each row, and which one is thick.
    (rings,), (want_rings,) = on(have["traces"], mode="markers"), on(drawn["data"], mode="markers")
    assert (rings["x"], rings["y"]) == (list(numbers(want_rings["x"])), list(numbers(want_rings["y"])))
    assert rings["marker"]["line"]["width"] == list(numbers(want_rings["marker"]["line"]["width"]))
    said = snapshot_sentence(found[moment], moment, course(found, kind), kind, number, head)
    assert have["said"] == "".join(text for _, text in said)
    row = attention.weights[layer, head, 0] if kind != "cross" else found[moment].forced.cross.weights[layer, head, position]
    assert have["looked"] == (int(row.argmax()) if kind == "cross" and row.any() else None)
