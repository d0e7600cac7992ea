"""Checkpoint folders: a round trip, how they are named and found, and how they are saved."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.tiny import TASK, save, tiny_model
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError


def test_round_trip(home):
    checkpoint = load_checkpoint("good", device="cpu")
    want = tiny_model().state_dict()
    got = checkpoint.network.state_dict()
    assert want.keys() == got.keys()
    assert all(torch.equal(want[name], got[name]) for name in want)
    assert checkpoint.network.config == tiny_model().config
    assert checkpoint.task.options() == TASK.options()
    assert (checkpoint.variant, checkpoint.name) == ("pre-norm", "good")
    assert checkpoint.recipe == {"steps": 3, "note": "ä␣"}
    assert checkpoint.metrics == {"exact_match": 0.5}
    assert checkpoint.folder == home / "good"
    assert checkpoint.n_parameters == sum(p.numel() for p in tiny_model().parameters())
    assert checkpoint.device.type == "cpu"
    assert repr(checkpoint) == "<Checkpoint 'good': pre-norm, on cpu>"
    assert not checkpoint.network.training
    history = "step,loss,entropy,held_out\n1234567,0.25,,\n1234568,,,0.333333\n"
    assert (home / "good" / "history.csv").read_text(encoding="utf-8") == history
    assert sorted(path.name for path in (home / "good").iterdir()) == ["config.json", "history.csv", "model.safetensors"]
    assert sorted(path.name for path in home.iterdir()) == ["good"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_precisions_load_as_float32(home, dtype):
    path = home / "good" / "model.safetensors"
    save_file({name: tensor.to(dtype) for name, tensor in load_file(path).items()}, path)
    model = load_checkpoint("good", device="cpu").network
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_tied_embeddings_are_saved_once_and_come_back(home):
    model = tiny_model(3, tied_embeddings="all")
    checkpoints.save_checkpoint(home / "tied", model, TASK, variant="pre-norm", recipe={}, metrics={})
    saved = load_file(home / "tied" / "model.safetensors")
    assert not {"source_embedding.weight", "output.weight"} & saved.keys()
    source, target = torch.tensor([[1, 4, 5, 2]]), torch.tensor([[1, 6]])
    assert torch.equal(load_checkpoint("tied", device="cpu").network(source, target), model.eval()(source, target))


def test_a_checkpoint_may_be_linked(home, tmp_path):
    """The whole folder, or its files."""
    save(tmp_path / "elsewhere" / "mine")
    (home / "linked").symlink_to(tmp_path / "elsewhere" / "mine")
    (home / "parts").mkdir()
    for name in ("config.json", "model.safetensors"):
        (home / "parts" / name).symlink_to(tmp_path / "elsewhere" / "mine" / name)
    assert {entry.name: entry.error for entry in checkpoints.entries()} == {"good": None, "linked": None, "parts": None}
    assert load_checkpoint("linked", "cpu").n_parameters == load_checkpoint("parts", "cpu").n_parameters


# Names


NO_NAMES = ("", ".", "..", "../x", "../home/good", "a/../../b", "/etc", "good/", "./good", "good\n", "~", "C:\\x", "good\x00")


@pytest.mark.parametrize("name", [*NO_NAMES, "a" * 300], ids=repr)
def test_a_name_never_becomes_a_path(home, name, monkeypatch):
    """What the app takes from its URL."""
    monkeypatch.chdir(home)
    with pytest.raises(CheckpointError, match="Known are good"):
        checkpoints.find_name(name)


@pytest.mark.parametrize("name", ["best", "no/where", "../x", "x/\x00", "a" * 300 + "/b"], ids=lambda n: repr(n)[:20])
def test_an_unknown_name_or_folder(home, name):
    save(home / "better")
    with pytest.raises(CheckpointError, match="Known are better, good" if name == "best" else None):
        load_checkpoint(name)


def test_a_folder_needs_a_separator(home, monkeypatch, tmp_path):
    save(tmp_path / "elsewhere" / "mine")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=r"\./mine"):
        load_checkpoint("mine")
    assert load_checkpoint("./mine", device="cpu").name == "mine"
    assert load_checkpoint(str(tmp_path / "elsewhere" / "mine"), device="cpu").name == "mine"


def test_look_up_order_is_shipped_then_trained_then_the_variable(home, tmp_path):
    root = tmp_path / "root"
    assert checkpoints.find_name("good") == home / "good"
    save(root / "trained" / "good", variant="post-norm")
    assert checkpoints.find_name("good") == root / "trained" / "good"
    save(root / "checkpoints" / "good")
    assert checkpoints.find_name("good") == root / "checkpoints" / "good"
    assert [entry.folder for entry in checkpoints.entries()] == [root / "checkpoints" / "good"]


def test_without_the_variable_or_with_a_wrong_one(home, monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_VIZ_CHECKPOINTS")
    assert checkpoints.entries() == []
    with pytest.raises(CheckpointError, match="Known are none"):
        load_checkpoint("good")
    for wrong in (tmp_path / "nowhere", home / "good" / "config.json"):
        monkeypatch.setenv("TRANSFORMER_VIZ_CHECKPOINTS", str(wrong))
        assert checkpoints.entries() == []


# Saving


def test_an_existing_folder_is_refused_without_replace(home):
    before = (home / "good" / "config.json").read_bytes()
    with pytest.raises(CheckpointError, match=r"good exists already.*--force"):
        save(home / "good", variant="post-norm")
    assert (home / "good" / "config.json").read_bytes() == before
    (home / "good" / "stale.txt").write_text("x")
    save(home / "good", variant="post-norm", replace=True)
    assert load_checkpoint("good", device="cpu").variant == "post-norm"
    assert sorted(path.name for path in home.iterdir()) == ["good"]
    assert not (home / "good" / "stale.txt").exists()


@pytest.mark.parametrize("replace", [False, True])
def test_a_failed_save_leaves_nothing_half_written(home, monkeypatch, replace):
    """Disk full, a metric that is no JSON, a rename that fails: the old folder stays, and nothing lies beside it."""

    def fail(*args, **kwargs):
        raise OSError("No space left on device")

    name = "good" if replace else "new"
    before = {path.name: path.read_bytes() for path in (home / "good").iterdir()}
    with pytest.raises(TypeError):
        save(home / name, metrics={"x": object()}, replace=replace)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write_tensors", fail)
        with pytest.raises(OSError, match="No space"):
            save(home / name, replace=replace)
    rename, calls = Path.rename, []

    def last_rename_fails(self, target):
        calls.append(target)
        if self.name.endswith(".partial"):
            fail()
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", last_rename_fails)
        with pytest.raises(OSError, match="No space"):
            save(home / name, replace=replace)
    assert calls
    assert [path.name for path in home.iterdir()] == ["good"]
    assert {path.name: path.read_bytes() for path in (home / "good").iterdir()} == before
