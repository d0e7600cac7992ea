"""How it learned, the last part of Train, through AppTest, with snapshots that no training made."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests import inside
from tests.conftest import build_model
from tests.figures.sent import numbers
from tests.views.drawn import chart_of, pictures, said
from tests.views.widgets import link_of
from transformer_viz import load_checkpoint, trace_training
from transformer_viz.checkpoints import save_checkpoint
from transformer_viz.tasks.reverse import Reverse

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


def film(at: AppTest) -> dict[str, Any]:
    return next(spec for spec in pictures(at) if spec.get("frames"))


def player(at: AppTest) -> dict[str, Any]:
    """What the player was sent."""
    return json.loads(next(node.proto.json for node in at.get("bidi_component") if node.proto.id.endswith("-player")))


def test_the_film_has_the_moments_and_opens_at_the_last(start, snapshots):
    at = start("train", learned="true", text="abc")
    meta = film(at)["layout"]["meta"]
    assert (meta["steps"], meta["step"]) == (5, 4)
    # The evaluation's best head, and the words of its last moment's mosaics.
    assert (at.selectbox(key="layer").value, at.selectbox(key="head").value) == (1, 2)
    assert "After 22 steps of training, reading the same target" in said(at)
    assert "moment" not in link_of(at)


def test_the_small_maps_are_those_of_the_moment(start, snapshots):
    at = start("train", learned="true", text="abcde", moment="1")
    moment = trace_training(load_checkpoint(str(snapshots), "cpu"), "abcde")[1]
    drawn, weights = chart_of(at, "mosaic-cross"), moment.forced.cross.weights
    canvas = numbers(drawn["data"][0]["z"])
    np.testing.assert_array_equal(canvas[: weights.shape[2], : weights.shape[3]], weights[0, 0])


def test_the_moment_is_the_players_and_only_a_link_moves_it(start, snapshots):
    at = start("train", learned="true", text="abcde")
    sent, drawn = player(at), film(at)
    node = next(node for node in at.get("bidi_component") if node.proto.id.endswith("-player"))
    inside.tell(at, node.proto.id, json.dumps({"step": {"run": sent["run"], "step": 1, "moved": sent["moved"]}}))
    assert (link_of(at)["moment"], player(at)["moved"]) == ("1", sent["moved"])
    assert film(at) == drawn, "nothing large is sent for another moment"


def test_another_text_keeps_the_moment_and_a_shorter_one_the_positions_in_range(start, snapshots):
    at = start("train", learned="true", text="abcdef", moment="8", position="7")
    assert at.selectbox(key="position").value == 6
    at.text_input(key="text").set_value("ab").run()
    assert player(at)["step"] == 3
    assert at.selectbox(key="position").value == 0


def test_a_combined_head_of_another_page_becomes_one_head(start, visit, snapshots):
    at = start(text="abc", head="max", layer="2")
    at.session_state["learned"] = True
    visit(at, "train")
    assert at.selectbox(key="head").value == 0
    assert film(at)["layout"]["meta"]["steps"] == 5


def test_a_damaged_snapshot_is_said(start, own_snapshots):
    (own_snapshots / "step-000003.safetensors").write_bytes(b"nonsense")
    at = start("train", learned="true", text="abc")
    assert "step-000003.safetensors is damaged" in said(at)


def test_without_snapshots_nothing_is_drawn_and_training_is_shown(start):
    at = start("train", learned="true")
    assert "has no snapshots of its training" in said(at)
    assert not any(spec.get("frames") for spec in pictures(at))
    assert "--snapshots 12" in at.code[-1].value


@pytest.fixture
def beside(own_folder: Path, make_snapshots: Callable[..., None]) -> Path:
    """Another checkpoint, of three letters, that has snapshots; `reverse` has none."""
    task = Reverse("xyz", 9, (1, 5))
    n = len(task.source_vocabulary)
    model = build_model(source_vocabulary_size=n, target_vocabulary_size=n)
    save_checkpoint(own_folder / "small", model, task, variant="pre-norm", recipe={}, metrics={})
    make_snapshots(own_folder / "small", STEPS)
    return own_folder


def test_a_text_or_checkpoint_of_ones_own_stays_and_a_button_switches(start, beside):
    for query in ({"text": "yx", "checkpoint": "reverse"}, {"checkpoint": "reverse"}):
        at = start("train", learned="true", **query)
        assert at.selectbox(key="checkpoint").value == "reverse"
        assert "reverse has no snapshots" in said(at).replace("*", "")
        at.button(key="replay-small").click().run()
        assert at.selectbox(key="checkpoint").value == "small"
        assert at.text_input(key="text").value == query.get("text", "xyz")
        assert film(at)["layout"]["meta"]["steps"] == 5


def test_new_snapshots_are_found_without_a_restart(start, own_snapshots):
    at = start("train", learned="true", text="abc")
    shutil.copy(own_snapshots / "step-000003.safetensors", own_snapshots / "step-000005.safetensors")
    at.run()
    assert film(at)["layout"]["meta"]["steps"] == 6
