"""Compare through AppTest: two sides, one of which may fail, a link that says everything, and files."""

import base64
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.views.drawn import pictures
from tests.views.widgets import link_of
from transformer_viz.checkpoints import load_snapshot, save_checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components.opened import Opened

Start = Callable[..., AppTest]
BOTH = {"text": "abc", "checkpoint": "reverse", "b_text": "abd", "b_checkpoint": "reverse"}


@pytest.fixture(scope="module")
def two_sizes(saved: Path, make_snapshots: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint, now with snapshots, and beside it `one-layer`."""
    folder = shutil.copytree(saved, tmp_path_factory.mktemp("compare") / "two")
    make_snapshots(folder / "reverse")
    task = Reverse()
    size = len(task.source_vocabulary)
    torch.manual_seed(3)
    config = ModelConfig(
        source_vocabulary_size=size,
        target_vocabulary_size=size,
        d_model=10,
        n_heads=2,
        d_ff=5,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    save_checkpoint(folder / "one-layer", Transformer(config), task, variant="pre-norm", recipe={}, metrics={})
    return folder


@pytest.fixture
def model(folder: Path, two_sizes: Path, only: Callable[[Path], Path]) -> tv.Checkpoint:
    """The tiny checkpoint with its snapshots; the pages find `one-layer` too."""
    folder = only(two_sizes)
    return tv.load_checkpoint(str(folder / "reverse"), device="cpu")


def said(at: AppTest) -> str:
    kinds = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption]
    return " ".join(str(element.value) for element in kinds).replace("\\", "")


def decoded(array: dict[str, str]) -> np.ndarray:
    """An array of a figure as the browser gets it."""
    flat = np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])
    return flat.reshape([int(n) for n in array["shape"].split(",")])


def chart(at: AppTest, title: str) -> dict[str, Any]:
    specs = pictures(at)
    return next(spec for spec in specs if title in json.dumps(spec["layout"], ensure_ascii=False))


def difference(at: AppTest) -> np.ndarray:
    """What the third map draws."""
    data = chart(at, "<b>A − B")["data"]
    return decoded(next(trace["z"] for trace in data if trace.get("coloraxis") == "coloraxis2"))


def test_two_texts_and_what_is_drawn(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", **BOTH, kind="cross", layer="2", head="3")
    assert not at.exception
    a, b = tv.decode(model, "abc"), tv.decode(model, "abd")
    np.testing.assert_array_equal(difference(at), tv.compare(a, b).difference("cross", 1, 2))
    np.testing.assert_array_equal(difference(start("compare", **link_of(at))), difference(at))


def test_swap_turns_the_sign(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", **BOTH, b_snapshot="3", kind="cross", layer="1", head="2", b_head="3")
    there = difference(at)
    at.button(key="swap").click().run()
    assert not at.exception
    np.testing.assert_array_equal(difference(at), -there)
    wanted = {"text": "abd", "b_text": "abc", "a_snapshot": "step 3", "b_head": "B head 2"}
    assert {key: at.query_params[key] for key in wanted} == wanted and at.session_state["head"] == 2
    assert "b_snapshot" not in at.query_params
    at.button(key="swap").click().run()
    np.testing.assert_array_equal(difference(at), there)


def test_every_control_is_in_the_link(start: Start, model: tv.Checkpoint) -> None:
    asked = {
        **BOTH, "a_snapshot": "8", "a_strategy": "beam", "a_beam": "3", "b_strategy": "sample", "b_temperature": "1.5",
        "b_seed": "0", "kind": "decoder", "layer": "1", "head": "mean", "b_layer": "2", "b_head": "1", "scale": "largest",
    }  # fmt: skip
    at = start("compare", **asked)
    assert not at.exception
    a = tv.decode(load_snapshot(model, 8), "abc", strategy="beam", beam_size=3)
    b = tv.decode(model, "abd", strategy="sample", temperature=1.5, seed=0)
    np.testing.assert_array_equal(
        np.nan_to_num(difference(at)), np.nan_to_num(tv.compare(a, b).difference("decoder", 0, "mean", 1, 0))
    )
    assert "b_seed" not in at.query_params, "a default stays out"
    again = start("compare", **link_of(at))
    np.testing.assert_array_equal(difference(again), difference(at))


def test_b_reads_what_a_writes_and_not_the_other_way_round_as_well(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", **BOTH, b_snapshot="1", b_strategy="forced", kind="cross", layer="1", head="1")
    a = tv.decode(model, "abc")
    target = tuple(token for token in a.output_tokens if token != "<end>")
    b = tv.decode(load_snapshot(model, 1), "abd", target=target)
    np.testing.assert_array_equal(difference(at), tv.compare(a, b).difference("cross", 0, 0))
    at.selectbox(key="a_strategy").set_value("forced").run()
    assert said(at).count("Each side reads what the other one writes") == 2


@pytest.mark.parametrize(("bad", "good"), [("b_text", "A"), ("text", "B")])
def test_one_sides_error_leaves_the_other_one_on_the_screen(start: Start, model: tv.Checkpoint, bad: str, good: str) -> None:
    at = start("compare", **{**BOTH, bad: "x🙂"})
    assert not at.exception
    assert "Character 2 is" in said(at)
    assert at.text_input(key=bad).value == "x🙂"
    assert len(pictures(at)) == 1
    assert at.query_params[bad] == "x🙂"
    at.text_input(key=bad).set_value("").run()
    assert not at.error
    at.text_input(key=bad).set_value("abc").run()
    assert len(pictures(at)) == 4


def test_models_of_different_size(start: Start, model: tv.Checkpoint) -> None:
    at = start(
        "compare", text="abc", checkpoint="reverse", b_text="abc", b_checkpoint="one-layer", kind="cross", layer="2", head="3"
    )
    assert not at.exception
    assert "A has 2 layers of 3 heads, B 1 layer of 2 heads." in said(at)
    assert (at.session_state["b_layer"], at.session_state["b_head"]) == (0, 1)
    one = tv.load_checkpoint(str(model.folder.parent / "one-layer"), device="cpu")
    expected = tv.compare(tv.decode(model, "abc"), tv.decode(one, "abc")).difference("cross", 1, 2, 0, 1)
    np.testing.assert_array_equal(difference(at), expected)
    assert chart(at, "cross-attention, A")["layout"]["meta"]["heads"] == 2


def test_it_never_opens_on_two_equal_runs(start: Start, model: tv.Checkpoint, visit: Callable[..., AppTest]) -> None:
    at = start("compare")
    assert at.text_input(key="text").value == "reversethis"
    assert at.text_input(key="b_text").value == "revertethis"
    assert np.nanmax(np.abs(difference(at))) > 0
    at = visit(start(text="hello 7"), "compare")
    assert at.text_input(key="text").value == "hello 7"
    assert at.text_input(key="b_text").value == "hello 8"


def test_equal_sides_differ_in_nothing(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", **{**BOTH, "b_text": "abc"})
    assert not at.exception
    assert not difference(at).any()


def test_what_was_typed_is_there_after_another_page(start: Start, model: tv.Checkpoint, visit: Callable[..., AppTest]) -> None:
    at = start("compare", **BOTH, b_strategy="beam", b_beam="3", b_head="1")
    at.text_input(key="b_text").set_value("xyz").run()
    at = visit(visit(at, "masks"), "compare")
    assert at.text_input(key="b_text").value == "xyz"
    assert at.number_input(key="b_beam").value == 3
    assert at.selectbox(key="b_head").value == 0


def put(at: AppTest, **traces: tv.Trace) -> AppTest:
    """As if the files had been dropped."""
    at.session_state["opened"] = {
        name: Opened(tv.load_trace(io.BytesIO(to_bytes(trace))), f"{name}.npz", name) for name, trace in traces.items()
    }
    return at


def test_opened_files_are_sides(start: Start, model: tv.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tv.decode(model, "abc"), tv.decode(model, "<b>xy")
    at = put(start("compare", **BOTH, code="true"), first=a, other=b).run()
    at.selectbox(key="a_file").set_value("first").run()
    at.selectbox(key="b_file").set_value("other").run()
    assert not at.exception
    kind, layer, head = (at.session_state[key] for key in ("kind", "layer", "head"))
    laid = tv.compare(a, b).one_head(kind, layer, head)
    np.testing.assert_array_equal(difference(at), np.where(laid.masked == 3, np.nan, laid.difference))
    assert (at.query_params["a_file"], at.query_params["b_file"]) == ("first", "other")
    assert "text" not in at.query_params
    # The lines of Python name the files, and give the same difference.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(go.Figure, "show", lambda self, **_: None)
    tv.save_trace(a, "first.npz")
    tv.save_trace(b, "other.npz")
    names: dict[str, Any] = {}
    exec(at.code[0].value, names)
    np.testing.assert_array_equal(names["difference"], laid.difference)
    at.selectbox(key="a_file").set_value("").run()
    assert at.text_input(key="text").value == "abc"


def test_files_that_have_nothing_in_common(start: Start, model: tv.Checkpoint) -> None:
    weights = np.full((2, 3), 1 / 3)
    cross = tv.Trace.from_arrays(cross=weights, source_tokens=list("abc"), target_tokens=list("xy"))
    encoder = tv.Trace.from_arrays(encoder=np.full((3, 3), 1 / 3), source_tokens=list("abc"))
    at = put(start("compare", **BOTH), cross=cross, encoder=encoder).run()
    at.selectbox(key="a_file").set_value("cross").run()
    assert not at.exception
    assert "Only B has encoder self-attention and decoder self-attention." in said(at)
    at.selectbox(key="b_file").set_value("encoder").run()
    assert not at.exception
    assert "A and B have no kind of attention in common" in said(at)
    at.selectbox(key="b_file").set_value("").run()
    at.selectbox(key="b_strategy").set_value("forced").run()
    assert "file does not say what was written" in said(at)


def test_the_lines_of_python_give_what_is_on_the_screen(
    start: Start, model: tv.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go.Figure, "show", lambda self, **_: None)
    at = start(
        "compare",
        **BOTH,
        a_strategy="forced",
        b_snapshot="22",
        kind="cross",
        layer="2",
        head="max",
        scale="largest",
        code="true",
    )
    names: dict[str, Any] = {}
    exec(at.code[0].value, names)
    np.testing.assert_array_equal(names["difference"], difference(at))
    limit = names["figure"].layout.coloraxis2.cmax
    assert chart(at, "A − B</b>")["layout"]["coloraxis2"]["cmax"] == limit < 1


def test_markup_is_text(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", text="<b>$x$</b> **a**", checkpoint="reverse", b_text="<i>", b_checkpoint="reverse")
    assert not at.exception
    assert not re.search(r"<[bi]>", json.dumps(chart(at, "A − B</b>")["layout"]["xaxis"]))


def test_a_wide_letter_page_shows_maps_without_code(start: Start, model: tv.Checkpoint) -> None:
    at = start("compare", **BOTH, code="true")
    assert len(at.code) == 1
    at.toggle(key="projector").set_value(True).run()
    assert not at.exception
    assert len(at.code) == 0
