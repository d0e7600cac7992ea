"""Every way in which a checkpoint folder can be missing, damaged or hostile: it is refused, and the others are not."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.tiny import tiny_model
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError

MODEL = tiny_model().config.to_json()


def edited(home: Path, **changes: Any) -> Path:
    """A copy of the good folder with another config.json."""
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    return home / "bad"


def refusal(home: Path, name: str = "bad") -> str:
    """The message with which loading is refused; `entries()` must go on, with the reason beside the damaged one."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(name, device="cpu")
    found = {entry.name: entry for entry in checkpoints.entries()}
    assert found["good"].error is None
    assert load_checkpoint("good", device="cpu").name == "good"
    assert name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(home, name):
    shutil.copytree(home / "good", home / "bad")
    (home / "bad" / name).unlink()
    assert name in refusal(home)
    (home / "bad" / name).mkdir()
    assert name in refusal(home)


def test_an_empty_folder_and_foreign_files_do_not_stop_the_others(home):
    (home / "bad").mkdir()
    (home / "a file.txt").write_text("x")
    (home / ".hidden").mkdir()
    assert "config.json is missing" in refusal(home)
    assert [entry.name for entry in checkpoints.entries()] == ["bad", "good"]
    bad, good = (entry.description for entry in checkpoints.entries())
    assert bad is None
    assert good is not None and good.variant == "pre-norm"


def test_truncated_and_changed_weights(home):
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "model.safetensors"
    data = path.read_bytes()
    for end in [*range(0, 200, 7), *range(200, len(data), 997), len(data) - 1]:
        path.write_bytes(data[:end])
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_checkpoint("bad", device="cpu")
    assert "model.safetensors" in refusal(home)
    rng = random.Random(0)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(200):
        broken = bytearray(data)
        broken[rng.randrange(header)] = rng.randrange(256)
        path.write_bytes(bytes(broken))
        try:
            load_checkpoint("bad", device="cpu")
        except CheckpointError:
            continue


def test_a_pickled_checkpoint_is_not_opened(home):
    shutil.copytree(home / "good", home / "bad")
    torch.save(tiny_model().state_dict(), home / "bad" / "model.safetensors")
    assert "damaged" in refusal(home)


def change_weights(home: Path, change) -> None:
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


def test_renamed_weights_are_listed(home):
    def rename(weights):
        weights["decoder.0.attention.q.weight"] = weights.pop("decoder.0.attention.query.weight")

    change_weights(home, rename)
    message = refusal(home)
    assert "missing decoder.0.attention.query.weight" in message
    assert "unexpected decoder.0.attention.q.weight" in message
    assert {e.name: bool(e.error) for e in checkpoints.entries()} == {"bad": True, "good": False}


def test_wrong_shapes_are_listed(home):
    def transpose(weights):
        weights["output.weight"] = weights["output.weight"].T.contiguous()

    change_weights(home, transpose)
    message = refusal(home)
    assert "output.weight is [6, 8] and should be [8, 6]" in message


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(home, value):
    change_weights(home, lambda weights: weights["output.bias"].fill_(value))
    assert "not finite" in refusal(home)


def test_whole_numbers_are_no_weights(home):
    def to_integers(weights):
        weights["output.bias"] = weights["output.bias"].to(torch.int32)

    change_weights(home, to_integers)
    message = refusal(home)
    assert "I32" in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": None}, "metrics=None"),
        ({"metrics": {"by_source": {"words": 1.5}}}, "metrics.by_source"),
        ({"model": {**MODEL, "d_model": 8190}}, "is [6] and should be [8190]"),
        ({"model": {**MODEL, "n_decoder_layers": 3}}, "missing decoder.2"),
    ],
    ids=["a wrong value", "an impossible share", "another width", "another depth"],
)
def test_a_description_that_does_not_fit_stops_nothing(home, changes, words):
    """The damages of a description one by one: `tests/test_damaged_json.py`."""
    edited(home, **changes)
    assert words in refusal(home)
    assert {entry.name for entry in checkpoints.entries() if entry.error} == {"bad"}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("other", ["pipe", "endless device", "loop", "hole"])
def test_what_is_no_file_stops_nothing(home, name, other):
    """A pipe would block whoever reads it, a device would be read for ever, a file with a hole take all memory."""
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / name
    path.unlink()
    if other == "pipe":
        os.mkfifo(path)
    elif other == "hole":
        path.touch()
        os.truncate(path, 2**44 - 4096)
    else:
        path.symlink_to("/dev/zero" if other == "endless device" else path.name)
    assert name in refusal(home)


def test_snapshots_that_are_no_files_are_no_snapshots(home):
    folder = home / "good" / "snapshots"
    folder.mkdir()
    shutil.copy(home / "good" / "model.safetensors", folder / "step-000003.safetensors")
    os.mkfifo(folder / "step-000004.safetensors")
    (folder / "step-000005.safetensors").mkdir()
    (folder / "step-000006.safetensors").symlink_to("nowhere")
    (folder / "step-000007.safetensors").symlink_to("step-000003.safetensors")
    assert list(checkpoints.snapshots(home / "good")) == [3, 7]


def test_an_absurdly_large_description_is_not_read(home, monkeypatch):
    monkeypatch.setattr(checkpoints, "LARGEST_CONFIG", 10_000)
    edited(home, metrics={"x": "y" * 20_000})
    assert "at most 10,000 are read" in refusal(home)


def test_real_metrics_are_accepted(home):
    metrics = {
        "best_head": {"layer": 1, "head": 2},
        "exact_match": 1,
        "samples": 3,
        "by_source": {"words": 0.5, "few": 1},
        "failures": [{"source": "ab", "output": ""}],
    }
    edited(home, metrics=metrics, recipe={"sharpness": 0.3})
    assert load_checkpoint("bad", "cpu").metrics == metrics
