"""A trace file has the switch of a run for the measures that it holds, and refuses by name those that it does not."""

from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.views.drawn import CODE, Start, codes, said
from tests.views.viewer import array, beside, viewer
from tests.views.viewer import measured as shown
from transformer_viz.trace.store import load_trace, to_bytes
from transformer_viz.views.components.opened import Opened


@pytest.fixture(scope="module")
def measured() -> tv.Trace:
    """Cause by word and ALTI+ of cross-attention, and norms of both kinds that have them; by position there is nothing."""
    model = tv.load_checkpoint("reverse-small", "cpu")
    trace = tv.decode(model, "hello")
    for method, kind in (("occlusion", "cross"), ("alti", "cross"), ("value_weighted", "cross"), ("value_weighted", "decoder")):
        trace = trace.with_attribution(tv.attribute(model, trace, method, kind=kind))
    return trace


def opened(start: Start, trace: tv.Trace, **link: str) -> AppTest:
    return start(None, {"run.npz": Opened(load_trace(to_bytes(trace)), "run.npz", "f-run")}, checkpoint="trace file", **link)


def test_what_the_file_holds_is_shown_as_of_a_run(start, measured):
    last = {"kind": "cross", "step": str(measured.n_steps)}
    at = opened(start, measured, **last, measure="cause", **CODE)
    sent = viewer(at)
    assert [each["value"] for each in sent["parts"]["measures"]] == ["weights", "value", "cause"]
    assert sent["start"]["measure"] == "cause"
    np.testing.assert_allclose(beside(at), measured.attributions["occlusion_word_cross"].values, atol=1e-6)
    assert len(shown(at)["measured"][0][0]) == measured.n_steps
    assert "measure = trace.attributions['occlusion_word_cross']" in codes(at)


def test_by_value_is_of_every_kind_that_has_it(start, measured):
    at = opened(start, measured, kind="decoder", measure="value", **CODE)
    for kind in ("decoder", "cross"):
        np.testing.assert_allclose(
            array(shown(at, kind)["weights"]), measured.attributions[f"value_weighted_{kind}"].values, atol=1e-6
        )
    assert all(f" = trace.attributions['value_weighted_{kind}']" in codes(at) for kind in ("decoder", "cross"))


def test_what_it_does_not_hold_is_refused_by_name(start, measured):
    at = opened(start, measured, kind="decoder", measure="cause")
    assert "This file holds cause by word of cross-attention, and none of decoder self-attention" in said(at)
    at = opened(start, measured, kind="cross", measure="cause", cause_mode="position")
    assert "This file holds no cause by position; it holds" in said(at) and "cause by word of cross-attention" in said(at)
    bare = replace(measured, attributions={})
    assert viewer(opened(start, bare))["parts"]["measures"] is None
    at = opened(start, bare, measure="value")
    assert "This file holds no value-weighted norm; it holds no measure at all" in said(at)
    assert [each["value"] for each in viewer(at)["parts"]["measures"]] == ["weights", "value"], "there is a way back"


def test_a_hidden_answer_shows_no_measure(start, measured):
    at = opened(start, measured, hide_answer="true", measure="cause")
    assert "as the file has it" not in said(at) and not shown(at) and viewer(at)["parts"]["measures"] is None
