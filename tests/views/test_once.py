"""What a chart must not have, so that Streamlit's second drawing of it costs nothing."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from transformer_viz.terms import KINDS


@pytest.fixture(scope="module")
def sent() -> dict[str, dict]:
    """The figures of Explore, by their keys, as the browser gets them."""
    at = AppTest.from_file("../../app.py", default_timeout=60).run()
    charts = [element.proto for element in at.get("plotly_chart")]
    return {next(key for key in KEYS if chart.id.endswith(f"-{key}")): json.loads(chart.spec) for chart in charts}


KEYS = ("focus-chart", *(f"mosaic-chart-{kind}" for kind in KINDS))


@pytest.mark.parametrize("key", KEYS)
def test_nothing_is_sent_that_plotly_takes_for_a_change(sent, key):
    """Guards a template, shapes or an object as `meta` in a chart of the player: each makes Plotly draw everything twice."""
    layout = sent[key]["layout"]
    assert not {"template", "shapes"} & set(layout)
    assert isinstance(layout["meta"], list)
    assert layout["datarevision"] == 1
    assert layout["autosize"]
    lines = [drawn for drawn in sent[key]["data"] if drawn["type"] == "scatter"]
    assert all(isinstance(drawn.get(axis, []), list) for drawn in lines for axis in "xy")
