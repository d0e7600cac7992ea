"""A trace file has the switch of a run for the measures that it holds, and refuses by name those that it does not."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.figures.sent import numbers
from tests.views.drawn import pictures
from tests.views.widgets import link_of
from transformer_viz.trace.store import load_trace, to_bytes
from transformer_viz.views.components.opened import Opened

Start = Callable[..., AppTest]


@pytest.fixture(scope="module")
def measured() -> tv.Trace:
    """Cause by word and ALTI+ of cross-attention, and norms of both kinds that have them; by position there is nothing."""
    model = tv.load_checkpoint("reverse-small", "cpu")
    trace = tv.decode(model, "hello")
    for method, kind in (("occlusion", "cross"), ("alti", "cross"), ("value_weighted", "cross"), ("value_weighted", "decoder")):
        trace = trace.with_attribution(tv.attribute(model, trace, method, kind=kind))
    return trace


def opened(start: Start, trace: tv.Trace, **link: str) -> AppTest:
    file = Opened(load_trace(to_bytes(trace)), "run.npz", "f-run")
    at = start(None, {"run.npz": file}, checkpoint="trace file", **link)
    assert not at.exception
    return at


def player(at: AppTest) -> dict[str, Any]:
    (part,) = [part for part in at.get("bidi_component") if part.proto.component_name == "transformer-viz-player"]
    return json.loads(part.proto.json)


def said(at: AppTest) -> str:
    return "\n".join(str(element.value) for element in [*at.markdown, *at.info, *at.warning]).replace("\\", "")


def second(at: AppTest) -> np.ndarray:
    (beside,) = [trace for trace in pictures(at)[0]["data"] if trace.get("xaxis") == "x3" and trace["type"] == "heatmap"]
    return numbers(beside["z"])


def test_what_the_file_holds_is_shown_as_of_a_run(start: Start, measured: tv.Trace) -> None:
    at = opened(
        start, measured, kind="cross", step=str(measured.n_steps), measure="cause", explore_tab="Export", export_format="code"
    )
    sent = player(at)
    assert [each["value"] for each in sent["measures"]] == ["weights", "value", "cause", "more"] and sent["measure"] == "cause"
    np.testing.assert_allclose(second(at), measured.attributions["occlusion_word_cross"].values, atol=1e-6)
    assert len(sent["measured"]) == measured.n_steps
    assert "measure = trace.attributions['occlusion_word_cross']" in "".join(block.value for block in at.code)
    assert link_of(at)["measure"] == "cause"
    at = opened(start, measured, kind="cross", step=str(measured.n_steps), measure="more")
    assert at.session_state["other_measure"] == "alti"
    assert all("share" in token for token in player(at)["output"][:-1])


def test_by_value_is_of_every_kind_that_has_it(start: Start, measured: tv.Trace) -> None:
    at = opened(start, measured, kind="decoder", measure="value", explore_tab="Export", export_format="code")
    text = json.dumps(pictures(at))
    assert text.count("value-weighted norm") >= 2
    code = "".join(block.value for block in at.code)
    assert all(f" = trace.attributions['value_weighted_{kind}']" in code for kind in ("decoder", "cross"))


def test_what_it_does_not_hold_is_refused_by_name(start: Start, measured: tv.Trace) -> None:
    at = opened(start, measured, kind="decoder", measure="cause")
    assert "This file holds cause by word of cross-attention, and none of decoder self-attention" in said(at)
    at = opened(start, measured, kind="cross", measure="cause", cause_mode="position")
    assert "This file holds no cause by position; it holds" in said(at) and "cause by word of cross-attention" in said(at)
    bare = replace(measured, attributions={})
    at = opened(start, bare, measure="value")
    assert "This file holds no value-weighted norm; it holds no measure at all" in said(at)
    assert [each["value"] for each in player(at)["measures"]] == ["weights", "value"], "there is a way back"


def test_a_file_without_measures_has_no_switch_and_a_hidden_answer_none_either(start: Start, measured: tv.Trace) -> None:
    bare = replace(measured, attributions={})
    assert "measure" not in player(opened(start, bare))
    at = opened(start, measured, hide_answer="true", measure="cause")
    assert "as the file has it" not in said(at) and "cause" not in json.dumps(pictures(at))
