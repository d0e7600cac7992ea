"""How it learned, the last part of Train, through AppTest, with snapshots that no training made."""

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import charts, pictures
from tests.views.widgets import link_of
from transformer_viz import load_checkpoint, replay
from transformer_viz.checkpoints import save_checkpoint
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse

Start = Callable[..., AppTest]
STEPS = (0, 1, 3, 8, 22)


@pytest.fixture(scope="module")
def filmed(saved: Path, make_snapshots: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(saved, tmp_path_factory.mktemp("replay") / "filmed")
    make_snapshots(folder / "reverse", STEPS)
    return folder


@pytest.fixture
def snapshots(folder: Path, filmed: Path, only: Callable[[Path], Path]) -> Path:
    """The folder of `reverse`, which now has snapshots."""
    return only(filmed) / "reverse"


@pytest.fixture
def own_snapshots(own_folder: Path, make_snapshots: Callable[..., None]) -> Path:
    """Those of `reverse`, which this test may change."""
    make_snapshots(own_folder / "reverse", STEPS)
    return own_folder / "reverse" / "snapshots"


def said(at: AppTest) -> str:
    kinds = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption]
    return " ".join(str(element.value) for element in kinds).replace("\\", "")


def film(at: AppTest) -> dict[str, Any]:
    return next(spec for spec in pictures(at) if spec.get("frames"))


def mosaic(at: AppTest, kind: str) -> dict[str, Any]:
    return next(chart.figure for chart in charts(at) if chart.key == f"mosaic-{kind}")


def test_the_film_has_the_moments_and_opens_at_the_last(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="abc")
    assert not at.exception
    meta = film(at)["layout"]["meta"]
    assert (meta["steps"], meta["step"]) == (5, 4)
    # The evaluation's best head, and the words of its last moment's mosaics.
    assert (at.selectbox(key="layer").value, at.selectbox(key="head").value) == (1, 2)
    assert "After 22 steps of training, reading the same target" in said(at)
    assert "moment" not in at.query_params


def test_a_link_opens_the_same_moment_head_and_position(start: Start, snapshots: Path) -> None:
    query = {"text": "abc", "kind": "decoder", "layer": "1", "head": "3", "moment": "3", "position": "2"}
    at = start("train", learned="true", **query)
    assert not at.exception
    assert film(at)["layout"]["meta"]["step"] == 2
    assert "After 3 steps of training" in said(at)
    assert at.selectbox(key="position").value == 1
    again = start("train", **link_of(at))
    assert film(again) == film(at)


def test_the_small_maps_are_those_of_the_moment(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="abcde", moment="1")
    moment = replay(load_checkpoint(str(snapshots), "cpu"), "abcde")[1]
    drawn, weights = mosaic(at, "cross"), moment.forced.cross.weights
    z = drawn["data"][0]["z"]
    canvas = np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"])
    canvas = canvas.reshape([int(n) for n in z["shape"].split(",")])
    np.testing.assert_array_equal(canvas[: weights.shape[2], : weights.shape[3]], weights[0, 0])


def test_impossible_links_are_said(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="abc", moment="2", position="5", head="mean", layer="9")
    assert not at.exception
    for words in ("moment=2", "possible: 0, 1, 3, 8, 22", "position=5", "head=mean", "layer=9"):
        assert words in said(at)
    assert film(at)["layout"]["meta"]["step"] == 4


def test_another_text_keeps_the_moment_and_a_shorter_one_the_positions_in_range(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="abcdef", moment="8", position="7")
    assert at.selectbox(key="position").value == 6
    at.text_input(key="text").set_value("ab").run()
    assert not at.exception
    assert film(at)["layout"]["meta"]["step"] == 3
    assert at.selectbox(key="position").value == 0


def test_position_head_and_moment_stay_across_pages(start: Start, visit: Callable[..., AppTest], snapshots: Path) -> None:
    at = start("train", learned="true", text="abc", moment="8", position="3")
    visit(at, "masks")
    visit(at, None)
    assert not at.exception
    visit(at, "train")
    assert not at.exception
    assert film(at)["layout"]["meta"]["step"] == 3
    assert at.selectbox(key="position").value == 2


def test_a_combined_head_of_another_page_becomes_one_head(start: Start, visit: Callable[..., AppTest], snapshots: Path) -> None:
    at = start(text="abc", head="max", layer="2", learned="true")
    visit(at, "train")
    assert not at.exception
    assert at.selectbox(key="head").value == 0
    assert film(at)["layout"]["meta"]["steps"] == 5


def test_the_encoder_has_a_film_too(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="abc", kind="encoder", layer="1", head="1")
    assert not at.exception
    assert "entropy" in film(at)["layout"]["annotations"][0]["text"]


def test_bad_text_is_said_and_kept(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="🙂")
    assert "Character 1 is" in said(at)
    assert at.text_input(key="text").value == "🙂"
    at.text_input(key="text").set_value("").run()
    assert "The text is empty" in said(at)
    assert not at.exception


def test_markup_is_text(start: Start, snapshots: Path) -> None:
    at = start("train", learned="true", text="<b>$x$</b> **a**", position="2")
    assert not at.exception
    assert "<b>$" not in json.dumps(film(at)["layout"]["xaxis"])


def test_a_damaged_snapshot_is_said(start: Start, own_snapshots: Path) -> None:
    (own_snapshots / "step-000003.safetensors").write_bytes(b"nonsense")
    at = start("train", learned="true", text="abc")
    assert not at.exception
    assert "step-000003.safetensors is damaged" in said(at)


def test_without_snapshots_nothing_is_drawn_and_training_is_shown(start: Start) -> None:
    at = start("train", learned="true")
    assert not at.exception
    assert "has no snapshots of its training" in said(at)
    assert not any(spec.get("frames") for spec in pictures(at))
    assert "--snapshots 12" in at.code[-1].value


@pytest.fixture
def beside(own_folder: Path, make_snapshots: Callable[..., None]) -> Path:
    """Another checkpoint, of three letters, that has snapshots; `reverse` has none."""
    task = Reverse("xyz", 9, (1, 5))
    size = len(task.source_vocabulary)
    config = replace(
        load_checkpoint("reverse", "cpu").model.config,
        source_vocabulary_size=size,
        target_vocabulary_size=size,
    )
    save_checkpoint(own_folder / "small", Transformer(config), task, variant="pre-norm", recipe={}, metrics={})
    make_snapshots(own_folder / "small", STEPS)
    return own_folder


def test_a_text_or_checkpoint_of_ones_own_stays_and_a_button_switches(start: Start, beside: Path) -> None:
    for query in ({"text": "yx", "checkpoint": "reverse"}, {"checkpoint": "reverse"}):
        at = start("train", learned="true", **query)
        assert not at.exception
        assert at.selectbox(key="checkpoint").value == "reverse"
        assert "reverse has no snapshots" in said(at).replace("*", "")
        at.button(key="replay-small").click().run()
        assert not at.exception
        assert at.selectbox(key="checkpoint").value == "small"
        assert at.text_input(key="text").value == query.get("text", "xyz")
        assert film(at)["layout"]["meta"]["steps"] == 5


def test_new_snapshots_are_found_without_a_restart(start: Start, own_snapshots: Path) -> None:
    at = start("train", learned="true", text="abc")
    shutil.copy(own_snapshots / "step-000003.safetensors", own_snapshots / "step-000005.safetensors")
    at.run()
    assert film(at)["layout"]["meta"]["steps"] == 6
