"""How it learned, the last part of Train, through AppTest, with snapshots that no training made."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import build_model
from tests.views import viewer
from tests.views.drawn import said
from tests.views.viewer import content, has_viewer, press
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


def at_first(at: AppTest) -> dict[str, Any]:
    """Where the viewer begins."""
    return viewer.viewer(at)["start"]


def number_of_moments(at: AppTest) -> int:
    return len(content(at)["moments"])


def test_the_film_has_the_moments_and_opens_at_the_last(start, snapshots):
    at = start("train", learned="true", text="abc")
    assert content(at)["moments"] == [*STEPS]
    # The evaluation's best head.
    place = {"kind": "cross", "layer": 1, "head": 2, "moment": 22, "position": 0}
    assert at_first(at) == place
    assert "After 22 steps of training, reading the same target" in content(at)["when"][-1]
    assert "moment" not in link_of(at)


def test_every_number_of_every_moment_is_sent_once(start, snapshots):
    at = start("train", learned="true", text="abcde", moment="1")
    moments = trace_training(load_checkpoint(str(snapshots), "cpu"), "abcde")
    for place, moment in enumerate(moments):
        for kind, of_kind in content(at)["kinds"].items():
            attention, sent = moment.forced.attentions[kind], of_kind["measures"][str(place)]
            np.testing.assert_array_equal(viewer.array(sent["weights"]), attention.weights)
            small = viewer.heatmap(sent["mosaic"])[: len(attention.queries), : len(attention.keys)]
            np.testing.assert_array_equal(np.isnan(small), attention.mask[0, 0] if attention.mask.ndim == 4 else attention.mask)
            np.testing.assert_array_equal(small[~np.isnan(small)], attention.weights[0, 0][~np.isnan(small)])
    assert at_first(at)["moment"] == 1


def test_what_is_pressed_is_in_the_link_and_nothing_is_sent_anew(start, snapshots):
    at = start("train", learned="true", text="abcde")
    before, name, request = content(at), viewer.viewer(at)["content"], viewer.viewer(at)["request"]
    press(at, kind="decoder", layer=0, head=1, moment=1, position=3)
    said_in_link = {"kind": "decoder self-attention", "head": "head 2", "moment": "1"}
    assert said_in_link.items() <= link_of(at).items()
    assert link_of(at)["position"] == before["rows"][3]
    assert (viewer.viewer(at)["content"], viewer.viewer(at)["request"]) == (name, request)
    press(at, moment=22, position=0)
    assert not {"moment", "position"} & link_of(at).keys()


@pytest.mark.parametrize("nonsense", [{"moment": "8"}, {"moment": -1}, {"moment": True}, {"position": 99}, {"position": None}])
def test_nonsense_of_the_browser_is_passed_over(start, snapshots, nonsense):
    at = start("train", learned="true", text="abcde", moment="3", position="2")
    press(at, **nonsense)
    assert not at.exception and at_first(at)["moment"] == 3
    assert at_first(at)["position"] == (0 if nonsense == {"position": 99} else 1)


def test_another_text_keeps_the_moment_and_a_shorter_one_the_positions_in_range(start, snapshots):
    at = start("train", learned="true", text="abcdef", moment="8", position="7")
    assert at_first(at)["position"] == 6
    at.text_input(key="text").set_value("ab").run()
    assert (at_first(at)["moment"], at_first(at)["position"]) == (8, 0)


def test_a_combined_head_of_another_page_becomes_one_head(start, visit, snapshots):
    at = start(text="abc", head="max", layer="2")
    at.session_state["learned"] = True
    visit(at, "train")
    assert at_first(at)["head"] == 0
    assert number_of_moments(at) == 5


def test_a_damaged_snapshot_is_said(start, own_snapshots):
    (own_snapshots / "step-000003.safetensors").write_bytes(b"nonsense")
    at = start("train", learned="true", text="abc")
    assert "step-000003.safetensors is damaged" in said(at)


def test_without_snapshots_nothing_is_drawn_and_training_is_shown(start):
    at = start("train", learned="true")
    assert "has no snapshots of its training" in said(at)
    assert not has_viewer(at)
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
        assert number_of_moments(at) == 5


def test_new_snapshots_are_found_without_a_restart(start, own_snapshots):
    at = start("train", learned="true", text="abc")
    shutil.copy(own_snapshots / "step-000003.safetensors", own_snapshots / "step-000005.safetensors")
    at.run()
    assert number_of_moments(at) == 6
