"""What the maps of Explore show: the numbers of `tv.attribute`, refused by name where there are none, and nothing unasked."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.figures.sent import numbers
from tests.until import until
from tests.views.drawn import CODE, programs, said
from tests.views.test_long_jobs import finished, queue  # noqa: F401
from tests.views.viewer import array, beside, content, has_viewer, measured, press, viewer, weights
from transformer_viz.terms import MODES
from transformer_viz.trace.attribution import Attribution
from transformer_viz.views.cache import runs

HELLO = {"text": "hello"}


@pytest.fixture
def asked(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every measure that a page computes."""
    found: list[str] = []
    attribute = runs.attribute

    def counted(model: Any, trace: Any, method: str, **options: Any) -> Attribution:
        found.append(" ".join([method, *map(str, options.values())]).removesuffix(" None"))
        return attribute(model, trace, method, **options)

    monkeypatch.setattr(runs, "attribute", counted)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_a_cause_is_that_of_attribute_and_stands_beside_the_weights(start, model, mode):
    trace = tv.decode(model, "hello")
    at = start(**HELLO, step=str(trace.n_steps), measure="cause", cause_mode=mode, kind="decoder")
    wanted = tv.attribute(model, trace, "occlusion", mode=mode, kind="decoder").values
    np.testing.assert_allclose(beside(at), wanted, atol=1e-6)
    np.testing.assert_allclose(weights(at, "decoder"), trace.decoder.weights, atol=1e-6)
    assert "weights" not in measured(at), "they stay where they are"
    assert "It cannot say" in said(at)


def test_a_branch_of_a_search_is_measured_as_any_run(start, model):
    at = start(**HELLO, decoding="beam", measure="cause", kind="decoder")
    best = tv.decode(model, "hello", strategy="beam", beam_size=at.session_state["beam"])
    wanted = tv.attribute(model, best, "occlusion", mode="word", kind="decoder").values
    np.testing.assert_allclose(beside(at), wanted, atol=1e-6)


def test_by_value_large_and_small_maps_have_norms(start, model):
    trace = tv.decode(model, "hello")
    at = start(**HELLO, step=str(trace.n_steps), measure="value", layer="2", head="1")
    by_kind = {kind: tv.attribute(model, trace, "value_weighted", kind=kind).values for kind in ("cross", "decoder")}
    for kind, values in by_kind.items():
        sent = measured(at, kind)
        np.testing.assert_allclose(array(sent["weights"]), values, atol=1e-6)
        assert sent["full"] == pytest.approx(values.max()) and "second" not in sent
        figure = sent["mosaic"]
        rows, columns = values.shape[2:]
        tile = numbers(figure["data"][0]["z"])[:rows, :columns]
        seen = np.isfinite(tile)
        np.testing.assert_allclose(tile[seen], (values[0, 0] / values.max())[seen], atol=1e-6)
        assert figure["layout"]["title"]["text"].endswith(f": value-weighted norm, 0 to {values.max():.2g}")
    encoder = measured(at, "encoder")
    assert "weights" not in encoder and encoder["mosaic"]["layout"]["title"]["text"] == "encoder self-attention: weights"


def test_nothing_is_computed_unless_asked_and_once_if_asked(start, asked):
    at = start(**HELLO)
    assert not asked and viewer(at)["parts"]["measures"] is None, "a first visitor sees weights alone"
    at.toggle(key="all_controls").set_value(True).run()
    assert not asked and not measured(at)
    assert [button["value"] for button in viewer(at)["parts"]["measures"]] == ["weights", "value", "cause"]
    press(at, measure="cause")
    press(at, step=1)
    assert asked == ["occlusion word cross"]
    press(at, measure="value")
    assert asked[1:] == ["value_weighted word cross", "value_weighted word decoder"]
    at.toggle(key="hide_answer").set_value(True).run()
    press(at, measure="cause")
    assert viewer(at)["parts"]["measures"] is None
    assert len(asked) == 3, "it would tell the answer"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"measure": "cause", "kind": "encoder"}, "Encoder self-attention has no cause"),
        ({"measure": "value", "kind": "encoder"}, "Encoder self-attention has no value-weighted norm"),
    ],
)
def test_an_encoder_has_none_and_its_weights_stay(start, query, words):
    at = start(**HELLO, **query)
    assert words in said(at) and not {"second", "weights"} & measured(at).keys()
    assert content(at)["kinds"]["encoder"]["picture"]["wide"]["layout"]["coloraxis"]["cmax"] == 1


def test_models_of_transformers_are_measured_or_refused(start, models):
    at = start(checkpoint="tiny-gpt2", text="hello", measure="value")
    assert array(measured(at, "decoder")["weights"]).size
    at = start(checkpoint="tiny-gpt2", text="hello", measure="cause", cause_mode="word")
    assert "has no token for what it does not know; take mode position or deleted" in said(at)
    at = start(checkpoint="tiny-bert", text="hello", measure="cause")
    assert "Encoder self-attention has no cause" in said(at) and has_viewer(at)


def test_a_long_measure_is_waited_for_beside_the_weights(start, queue, own_folder, monkeypatch):  # noqa: F811
    attribute, goes_on = runs.attribute, threading.Event()

    def slow(*args: Any, on_progress: Any = None, **options: Any) -> Attribution:
        on_progress(0.25)
        assert goes_on.wait(60)
        return attribute(*args, **options)

    monkeypatch.setattr(runs, "attribute", slow)
    at = finished(start(**HELLO))
    press(at, measure="cause")
    until(lambda: at.session_state["long_job"].progress is not None)
    at.run()
    assert [*content(at)["kinds"]] == ["encoder", "decoder", "cross"] and not measured(at), "all else is there meanwhile"
    assert any("25 %" in str(element.proto) for element in at.get("progress"))
    goes_on.set()
    assert beside(finished(at)).size


@pytest.mark.parametrize(("measure", "n"), [("value", 2), ("cause", 1)])
def test_the_lines_of_python_make_the_file_that_is_offered(start, offered, run_code, tmp_path, measure, n):
    at = start(**HELLO, **CODE, measure=measure).button(key="data-npz").click().run()
    run_code(programs(at)[0])
    (made,) = tmp_path.glob("*.npz")
    again, there = tv.load_trace(made).attributions, tv.load_trace(offered[made.name]).attributions
    assert again.keys() == there.keys() and len(again) == n
    for name, result in again.items():
        np.testing.assert_array_equal(result.values, there[name].values)
