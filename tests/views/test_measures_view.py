"""Explore's switch of what the maps show: its numbers are those of `tv.attribute`, links and files keep it, what cannot be had
is refused by name, and nothing is computed unless asked."""

import json
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.figures.sent import numbers
from tests.until import until
from tests.views.drawn import pictures
from tests.views.test_long_jobs import finished, queue  # noqa: F401
from tests.views.widgets import link_of
from transformer_viz.attribution.methods import occlusion
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import MODES
from transformer_viz.trace.attribution import Attribution
from transformer_viz.views.cache import runs
from transformer_viz.views.cache.job_queue import JobQueue
from transformer_viz.views.explore import export_tab

Start = Callable[..., AppTest]
HELLO = {"text": "hello"}


def player(at: AppTest) -> dict[str, Any]:
    """What the component was sent."""
    assert not at.exception
    (part,) = [part for part in at.get("bidi_component") if part.proto.component_name == "transformer-viz-player"]
    return json.loads(part.proto.json)


def said(at: AppTest) -> str:
    assert not at.exception
    elements = [*at.markdown, *at.info, *at.warning]
    return "\n".join(str(element.value) for element in elements).replace("\\", "")


def second(at: AppTest) -> list[dict[str, Any]]:
    return [trace for trace in pictures(at)[0]["data"] if trace.get("xaxis") == "x3"]


@pytest.fixture
def model(folder: Path) -> tv.Checkpoint:
    return tv.load_checkpoint(str(folder / "reverse"), "cpu")


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


def last(trace: tv.Trace) -> str:
    return str(trace.n_steps)


@pytest.mark.parametrize("mode", MODES)
def test_a_cause_is_that_of_attribute_and_stands_beside_the_weights(start: Start, model: tv.Checkpoint, mode: str) -> None:
    trace = tv.decode(model, "hello")
    at = start(**HELLO, step=last(trace), measure="cause", cause_mode=mode, kind="decoder")
    wanted = tv.attribute(model, trace, "occlusion", mode=mode, kind="decoder").values
    np.testing.assert_allclose(numbers(second(at)[0]["z"]), wanted, atol=1e-6)
    weights = np.where(trace.decoder.mask, np.nan, trace.decoder.weights[st_layer(at), st_head(at)])
    np.testing.assert_allclose(numbers(pictures(at)[0]["data"][0]["z"]), weights, atol=1e-6)
    assert "It cannot say" in said(at)


def test_a_branch_of_a_search_is_measured_as_any_run(start: Start, model: tv.Checkpoint) -> None:
    at = start(**HELLO, decoding="beam", measure="cause", kind="decoder")
    best = tv.decode(model, "hello", strategy="beam", beam_size=at.session_state["beam"])
    wanted = tv.attribute(model, best, "occlusion", mode="word", kind="decoder").values
    beside = [trace for picture in pictures(at) for trace in picture["data"] if trace.get("xaxis") == "x3"]
    np.testing.assert_allclose(numbers(beside[0]["z"]), wanted, atol=1e-6)


def st_layer(at: AppTest) -> int:
    return at.session_state["layer"]


def st_head(at: AppTest) -> int:
    return at.session_state["head"]


def test_by_value_large_and_small_maps_have_norms(start: Start, model: tv.Checkpoint) -> None:
    trace = tv.decode(model, "hello")
    at = start(**HELLO, step=last(trace), measure="value", layer="2", head="1")
    by_kind = {kind: tv.attribute(model, trace, "value_weighted", kind=kind).values for kind in ("cross", "decoder")}
    large, encoder, decoder, cross = pictures(at)
    np.testing.assert_allclose(numbers(large["data"][0]["z"]), by_kind["cross"][1, 0], atol=1e-6)
    for figure, values in ((decoder, by_kind["decoder"]), (cross, by_kind["cross"])):
        rows, columns = values.shape[2:]
        tile = numbers(figure["data"][0]["z"])[:rows, :columns]
        seen = np.isfinite(tile)
        np.testing.assert_allclose(tile[seen], (values[0, 0] / values.max())[seen], atol=1e-6)
        assert figure["layout"]["title"]["text"].endswith(f": value-weighted norm, 0 to {values.max():.2g}")
    assert encoder["layout"]["title"]["text"] == "encoder self-attention: weights"


@pytest.mark.parametrize("method", ["value_weighted_sum", "rollout", "gradient", "alti"])
def test_other_measures_are_behind_more(start: Start, model: tv.Checkpoint, method: str) -> None:
    trace = tv.decode(model, "hello")
    at = start(**HELLO, step=last(trace), measure="more", other_measure=method)
    values = tv.attribute(model, trace, method).values
    if method == "value_weighted_sum":
        values = values[st_layer(at), 0]
    if method == "gradient":
        values = values / values.max(-1, keepdims=True)
    np.testing.assert_allclose(numbers(second(at)[0]["z"]), values, atol=1e-6)
    assert any("share" in token for token in player(at)["output"]) == (method == "alti")


def test_shares_of_source_and_prefix_stand_on_the_tokens_and_in_words(start: Start, model: tv.Checkpoint) -> None:
    trace = tv.decode(model, "hello")
    shares = tv.attribute(model, trace, "alti").values.sum(-1)
    for kind in ("cross", "decoder", "encoder"):
        sent = player(start(**HELLO, measure="more", other_measure="alti", kind=kind))
        assert [token["share"] for token in sent["output"]] == pytest.approx(shares, abs=5.1e-5)
        for step, share in enumerate(shares):
            words = f"{percent_words(share)} from the source, {percent_words(1 - share)} from the prefix"
            assert words in sent["output"][step]["title"]
            assert words in "".join(text for _, text in sent["measured"][step])


def test_nothing_is_computed_unless_asked_and_once_if_asked(start: Start, asked: list[str]) -> None:
    at = start(**HELLO)
    assert not asked and "measures" not in player(at), "a first visitor sees weights alone"
    at.toggle(key="all_controls").set_value(True).run()
    assert not asked and not second(at) and "measured" not in player(at)
    assert [button["value"] for button in player(at)["measures"]] == ["weights", "value", "cause", "more"]
    at.session_state["measure"] = "cause"
    at.run()
    at.session_state["step"] = "2"
    at.run()
    assert asked == ["occlusion word cross"]
    at.session_state["measure"] = "value"
    at.run()
    assert asked[1:] == ["value_weighted word cross", "value_weighted word decoder"]
    at.session_state["hide_answer"] = True
    at.session_state["measure"] = "more"
    at.run()
    assert not at.exception and len(asked) == 3, "it would tell the answer"


def test_the_choice_is_in_the_link_and_outlives_another_page(start: Start, visit: Callable[..., AppTest]) -> None:
    at = start(**HELLO, measure="cause", cause_mode="position")
    assert link_of(at)["measure"] == "cause" and link_of(at)["cause_mode"] == "position"
    visit(at, "masks")
    visit(at, None)
    assert second(at) and at.session_state["cause_mode"] == "position"
    at.session_state["measure"] = "more"
    at.session_state["other_measure"] = "rollout"
    at.run()
    assert "cause_mode" not in link_of(at) and "other_measure" in link_of(at)
    wrong = start(**HELLO, measure="more", other_measure="guess")
    assert "other_measure=guess (possible: " in said(wrong)
    assert tuple(occlusion.MODES) == MODES


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"measure": "cause", "kind": "encoder"}, "Encoder self-attention has no cause"),
        ({"measure": "value", "kind": "encoder"}, "Encoder self-attention has no value-weighted norm"),
    ],
)
def test_an_encoder_has_none_and_its_weights_stay(start: Start, query: dict[str, str], words: str) -> None:
    at = start(**HELLO, **query)
    assert words in said(at) and not second(at)
    assert pictures(at)[0]["layout"]["coloraxis"]["cmax"] == 1


def test_what_a_reader_cannot_give_is_refused_by_name(start: Start, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: Any, **__: Any) -> Attribution:
        raise OptionError("ALTI+ is not available for *mine*: it is not known where norms and residual connections are.")

    monkeypatch.setattr(runs, "attribute", cannot)
    at = start(**HELLO, measure="more", other_measure="alti")
    assert "ALTI+ is not available for *mine*" in said(at)
    assert len(pictures(at)) == 4 and not second(at)


def test_models_of_transformers_are_measured_or_refused(start: Start, models: Path) -> None:
    at = start(checkpoint="tiny-gpt2", text="hello", measure="more", other_measure="alti")
    assert second(at) and not any("share" in token for token in player(at)["output"]), "all of it is prefix"
    at = start(checkpoint="tiny-gpt2", text="hello", measure="cause", cause_mode="word")
    assert "has no token for what it does not know; take mode position or deleted" in said(at)
    at = start(checkpoint="tiny-bert", text="hello", measure="cause")
    assert "Encoder self-attention has no cause" in said(at) and pictures(at)


@pytest.fixture
def held(queue: JobQueue, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:  # noqa: F811
    """A measure takes long, until this is set."""
    attribute, goes_on = runs.attribute, threading.Event()

    def slow(*args: Any, on_progress: Any = None, **options: Any) -> Attribution:
        on_progress(0.25)
        assert goes_on.wait(60)
        on_progress(0.5)
        return attribute(*args, **options)

    monkeypatch.setattr(runs, "attribute", slow)
    yield goes_on
    goes_on.set()
    until(lambda: queue.is_idle)


def measuring(start: Start) -> AppTest:
    """Explore, whose own run is done and whose cause is waited for."""
    at = finished(start(**HELLO))
    at.session_state["measure"] = "cause"
    at.run()
    until(lambda: at.session_state["long_job"].progress is not None)
    return at.run()


def test_a_long_measure_is_waited_for_beside_the_weights(start: Start, held: threading.Event) -> None:
    at = measuring(start)
    assert len(pictures(at)) == 4 and not second(at), "all else is there meanwhile"
    assert any("25 %" in str(element.proto) for element in at.get("progress"))
    held.set()
    assert second(finished(at))


def test_a_long_measure_can_be_stopped_and_begun_again(start: Start, held: threading.Event) -> None:
    at = measuring(start)
    at.button(key="long-job-stop").click().run()
    assert len(pictures(at)) == 4 and not second(at)
    held.set()
    at.button(key="long-job-again").click().run()
    assert second(finished(at))


@pytest.mark.parametrize(("measure", "n"), [("value", 2), ("cause", 1)])
def test_the_lines_of_python_make_the_file_that_is_offered(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measure: str, n: int
) -> None:
    kept: list[bytes] = []
    made = export_tab.saving.render_bytes

    def kept_bytes(*args, **options):
        kept.append(made(*args, **options))
        return kept[-1]

    monkeypatch.setattr(export_tab.saving, "render_bytes", kept_bytes)
    at = start(**HELLO, explore_tab="Export", export_format="npz", code_of_tab="true")
    at.session_state["measure"] = measure
    at.run()
    file = BytesIO(kept[-1])  # the lines make another one
    monkeypatch.chdir(tmp_path)
    exec(compile(at.expander[-1].code[0].value, "shown", "exec"), {})
    again, offered = (tv.load_trace(each).attributions for each in (*tmp_path.glob("*.npz"), file))
    assert again.keys() == offered.keys() and len(again) == n
    for name, result in again.items():
        np.testing.assert_array_equal(result.values, offered[name].values)
