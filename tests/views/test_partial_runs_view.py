"""The step player's page shows runs that somebody else made: one kind alone, no outputs, no probabilities."""

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import pictures
from transformer_viz import Trace
from transformer_viz.views.cache import runs
from transformer_viz.views.components import player
from transformer_viz.views.state.focus import Focus

TOKENS = ["<s>", "<b>x</b>", "c", "d", "e"]
RUNS = {
    "encoder": Trace.from_arrays(encoder=np.full((2, 3, 3), 1 / 3), source_tokens=TOKENS[:3]),
    "decoder": Trace.from_arrays(decoder=np.eye(5), target_tokens=TOKENS, masks={"decoder": "causal"}),
    "cross": Trace.from_arrays(
        cross=np.full((2, 3, 5, 3), 1 / 3), source_tokens=TOKENS[:3], target_tokens=TOKENS, output_tokens=TOKENS
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_page_shows_it(start: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    trace = RUNS[name]
    monkeypatch.setattr(runs, "run", lambda *arguments: trace)
    at = start()
    assert not at.exception
    charts = pictures(at)
    assert len(charts) == 2, "the focus map and one mosaic"
    assert charts[0]["layout"]["meta"]["steps"] == len(trace.rows)
    for tab in ("Masks", "Export"):
        at.session_state["explore_tab"] = tab
        assert not at.run().exception


@pytest.mark.parametrize("name", RUNS)
def test_the_strip_has_a_cell_for_each_row_and_claims_nothing_unknown(name: str) -> None:
    trace = RUNS[name]
    content = player.data(trace, Focus("run", trace.kinds[0], 0, 0, 0), hint="", large=False, dark=False)
    assert len(content["output"]) == len(content["sentences"]) == len(content["looked"]) == len(trace.rows)
    assert content["source"] == [] or trace.writes
    assert not any("tint" in cell or "p =" in cell["title"] for cell in content["output"])
    if name == "decoder":
        assert content["output"][2]["title"] == "row 3: has read c"
    if name == "cross":
        assert content["output"][2]["title"] == "step 3: c"
