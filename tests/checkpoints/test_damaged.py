"""Every way in which a checkpoint folder can be missing, damaged or hostile: it is refused, and the others are not."""

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.tiny import tiny_model
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError

MODEL = tiny_model().config.to_json()
CONFIG, WEIGHTS = "config.json", "model.safetensors"
Damage = Callable[[Path], Any]


def described(**changes: Any) -> Damage:
    def change(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")

    return change


def weighted(change: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    def spoil(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        change(weights)
        save_file(weights, folder / WEIGHTS)

    return spoil


def put(name: str, what: str) -> Damage:
    """A pipe would block whoever reads it, a device would be read for ever, a file with a hole take all memory."""

    def spoil(folder: Path) -> None:
        path = folder / name
        path.unlink()
        match what:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "hole":
                path.touch()
                os.truncate(path, 2**44 - 4096)
            case "device" | "loop":
                path.symlink_to("/dev/zero" if what == "device" else name)

    return spoil


DAMAGES: dict[str, tuple[Damage, list[str]]] = {
    **{
        f"{what} for {name}": (put(name, what), [name])
        for name in (CONFIG, WEIGHTS)
        for what in ("nothing", "folder", "pipe", "hole", "device", "loop")
    },
    "empty": (lambda folder: [path.unlink() for path in folder.iterdir()], ["config.json is missing"]),
    "pickled": (lambda folder: torch.save(tiny_model().state_dict(), folder / WEIGHTS), ["damaged"]),
    "renamed": (
        weighted(lambda weights: weights.update({"decoder.0.q.weight": weights.pop("decoder.0.attention.query.weight")})),
        ["missing decoder.0.attention.query.weight", "unexpected decoder.0.q.weight"],
    ),
    "another shape": (
        weighted(lambda weights: weights.update({"output.weight": weights["output.weight"].T.contiguous()})),
        ["output.weight is [6, 8] and should be [8, 6]"],
    ),
    "nan": (weighted(lambda weights: weights["output.bias"].fill_(torch.nan)), ["not finite"]),
    "infinite": (weighted(lambda weights: weights["output.bias"].fill_(torch.inf)), ["not finite"]),
    "whole numbers": (weighted(lambda weights: weights.update({"output.bias": weights["output.bias"].int()})), ["I32"]),
    "a wrong value": (described(metrics=None), ["metrics=None"]),
    "an impossible share": (described(metrics={"by_source": {"words": 1.5}}), ["metrics.by_source"]),
    "another width": (described(model={**MODEL, "d_model": 8190}), ["is [6] and should be [8190]"]),
    "another depth": (described(model={**MODEL, "n_decoder_layers": 3}), ["missing decoder.2"]),
    "very long": (described(metrics={"x": "y" * 20_000}), ["at most 10,000 are read"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_refused_by_name_and_stops_nothing(home, monkeypatch, damage):
    """The damages of a description one by one: `tests/test_damaged_json.py`."""
    spoil, words = DAMAGES[damage]
    monkeypatch.setattr(checkpoints, "LARGEST_CONFIG", 10_000)
    spoil(Path(shutil.copytree(home / "good", home / "bad")))
    (home / "a file.txt").write_text("x")
    (home / ".hidden").mkdir()
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint("bad", device="cpu")
    assert all(word in str(caught.value) for word in ("bad", *words)), str(caught.value)
    bad, good = checkpoints.entries()
    assert (bad.name, good.name, good.error) == ("bad", "good", None)
    assert good.description is not None and good.description.variant == "pre-norm"
    assert load_checkpoint("good", device="cpu").name == "good"


def test_truncated_and_changed_weights(home):
    path = Path(shutil.copytree(home / "good", home / "bad")) / WEIGHTS
    data = path.read_bytes()
    for end in [*range(0, 200, 7), *range(200, len(data), 997), len(data) - 1]:
        path.write_bytes(data[:end])
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_checkpoint("bad", device="cpu")
    rng = random.Random(0)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(200):
        broken = bytearray(data)
        broken[rng.randrange(header)] = rng.randrange(256)
        path.write_bytes(bytes(broken))
        with suppress(CheckpointError):
            load_checkpoint("bad", device="cpu")


def test_snapshots_that_are_no_files_are_no_snapshots(home):
    folder = home / "good" / "snapshots"
    folder.mkdir()
    shutil.copy(home / "good" / WEIGHTS, folder / "step-000003.safetensors")
    os.mkfifo(folder / "step-000004.safetensors")
    (folder / "step-000005.safetensors").mkdir()
    (folder / "step-000006.safetensors").symlink_to("nowhere")
    (folder / "step-000007.safetensors").symlink_to("step-000003.safetensors")
    assert list(checkpoints.snapshots(home / "good")) == [3, 7]


def test_real_metrics_are_accepted(home):
    metrics = {
        "best_head": {"layer": 1, "head": 2},
        "exact_match": 1,
        "samples": 3,
        "by_source": {"words": 0.5, "few": 1},
        "failures": [{"source": "ab", "output": ""}],
    }
    described(metrics=metrics, recipe={"sharpness": 0.3})(home / "good")
    assert load_checkpoint("good", "cpu").metrics == metrics
