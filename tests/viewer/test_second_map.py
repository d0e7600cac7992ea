"""The second map that the viewer fills into a template is that of `figures.player`, number by number."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.figures.conftest import build
from tests.figures.sent import numbers, spec
from tests.figures.test_measures import cause, second, shape_of
from tests.needs import needs
from tests.node import node
from transformer_viz import figures
from transformer_viz.figures import page_templates
from transformer_viz.figures.figure_data import typed
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

pytestmark = needs("playwright", "libatomic1")


def plain(value: Any) -> Any:
    """Arrays as lists, NaN as None."""
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def filled(run: Trace, result: Attribution, step: int) -> list[dict[str, Any]]:
    program = node()
    assert program is not None
    template = page_templates.player_template(run, result.kind, measure=result)["second"]
    asked = {"template": template, "values": plain(result.values.ravel()), "shape": result.values.shape, "until": step + 1}
    asker = Path(__file__).with_name("ask_second.js")
    given = json.dumps(asked, default=typed)
    done = subprocess.run([program, asker], input=given, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_empty(trace: dict[str, Any]) -> bool:
    """A template has a trace for each reason that a cell can have; one without a cell draws nothing."""
    cells = [cell for row in trace["z"] for cell in row] if "z" in trace else trace["x"]
    return not any(cell is not None for cell in cells) and ("fill" in trace or "showscale" in trace)


@pytest.mark.parametrize("step", [0, 2, 5])
@pytest.mark.parametrize("name", ["cross", "decoder", "by row"])
def test_a_second_map_is_the_figures_own(name: str, step: int) -> None:
    run = build()
    if name == "by row":
        values = np.random.default_rng(3).random(shape_of(run, "cross")).astype(np.float32)
        values[1] = 0
        result = Attribution("gradient", "cross", values)
    else:
        result = cause(run, "decoder" if name == "decoder" else "cross")
    drawn = second(spec(figures.player(run, f"{result.kind}.1.1", step, measure=result)))
    wanted = [
        {key: plain(numbers(value)) if key == "z" else value for key, value in one.items()}
        for one in drawn
        if one.get("mode") not in ("lines", "markers") or "fill" in one
    ]
    got = filled(run, result, step)
    wanted, got = ([one for one in traces if not is_empty(one)] for traces in (wanted, got))
    assert len(got) == len(wanted) >= 1
    for want, have in zip(wanted, got, strict=True):
        for key, value in want.items():
            if key == "z":
                np.testing.assert_allclose(np.array(have["z"], float), np.array(value, float), atol=1e-6)
            else:
                assert have.get(key) == value, key
