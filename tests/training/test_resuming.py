"""A training that is cut off goes on to bitwise the same weights, whenever it was cut off, and its folder always loads."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training import tiny
from tests.training.tiny import TASK, event, trainer, weights
from transformer_viz import checkpoints, decode, load_checkpoint
from transformer_viz.errors import CheckpointError, OptionError
from transformer_viz.model import variants
from transformer_viz.training import saved_state
from transformer_viz.training.make_checkpoint import make_checkpoint, make_model
from transformer_viz.training.saved_state import STATE, snapshot_steps

ROOT = Path(__file__).resolve().parents[2]
RECIPE = replace(tiny.RECIPE, model={**tiny.SIZES, "dropout": 0.2}, clip=1.0, seed=5)
QUIET: dict[str, Any] = {**tiny.QUIET, "save_seconds": 0}
EVALUATED: dict[str, Any] = {**QUIET, "samples": 200}


def assert_everything_loads(folder: Path) -> None:
    checkpoint = load_checkpoint(str(folder), device="cpu")
    for step in checkpoints.snapshots(folder):
        checkpoints.load_snapshot(checkpoint, step)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_a_state_that_went_through_a_file_goes_on_bitwise(tmp_path, optimizer):
    recipe = replace(RECIPE, optimizer=optimizer, momentum=0.9, steps=9)
    whole, first, second = trainer(recipe), trainer(recipe), trainer(recipe, make_model(replace(recipe, seed=6), TASK))
    history = list(whole.run(lambda step: step == 4))[:1]
    next(first.run(lambda step: step == 4))
    saved_state.save(first, history, tmp_path)
    assert saved_state.load(second, tmp_path) == history
    assert second.step == 4
    list(second.run(lambda step: False))
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name]), name


def test_pausing_and_resuming_is_one_training(tmp_path):
    straight = make_checkpoint(RECIPE, tmp_path / "straight", **EVALUATED)
    after = iter([3, 1, 7, 2, 100])
    left = [next(after)]

    def control() -> Any:
        left[0] -= 1
        return "pause" if left[0] < 0 else "go on"

    while (metrics := make_checkpoint(RECIPE, tmp_path / "cut", **EVALUATED, resume=True, control=control)) is None:
        load_checkpoint(str(tmp_path / "cut"), device="cpu")
        assert (tmp_path / "cut" / STATE).exists()
        left[0] = next(after)
    assert metrics == straight
    assert weights(tmp_path / "cut") == weights(tmp_path / "straight")
    steps = [int(line.split(",")[0]) for line in (tmp_path / "cut" / "history.csv").read_text().splitlines()[1:]]
    assert steps == sorted(set(steps))
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["config.json", "history.csv", "model.safetensors"]


KILLED = """
import json, sys
from pathlib import Path
import torch
from transformer_viz.training.make_checkpoint import make_checkpoint
from transformer_viz.training.recipe import Recipe

def tell(event):
    print(event.step, flush=True)
    sys.stdin.readline()

torch.set_num_threads(1)
options = {"device": "cpu", "samples": None, "save_seconds": 0, "resume": True, "snapshots": 5, "on_event": tell}
make_checkpoint(Recipe.from_json(json.loads(sys.argv[1])), Path(sys.argv[2]), **options)
"""


def test_a_killed_process_is_gone_on_with(tmp_path):
    """By a real signal that nothing can answer, at some moment after an event and before the next one is told."""
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, json.dumps(RECIPE.to_json()), str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            killed_after = int(process.stdout.readline())
            print(file=process.stdin, flush=True)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert_everything_loads(folder)
    steps: list[int] = []
    make_checkpoint(RECIPE, folder, **QUIET, resume=True, snapshots=5, on_event=lambda event: steps.append(event.step))
    assert steps[0] > killed_after, "it goes on where it was"
    make_checkpoint(RECIPE, tmp_path / "straight", **QUIET, snapshots=5)
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert len(names) == 3 + 5
    assert [(folder / name).read_bytes() for name in names] == [(tmp_path / "straight" / name).read_bytes() for name in names]
    assert not list(tmp_path.glob(".*"))


def test_wherever_a_training_is_killed_its_folder_loads_and_it_resumes(tmp_path, monkeypatch):
    """The disk as a kill leaves it: before each file is put in its place, when half of it is written, or is removed."""
    recipe = replace(RECIPE, steps=20)
    options: dict[str, Any] = {**QUIET, "snapshots": 3, "resume": True}
    place, killed, in_place = tmp_path / "whole", tmp_path / "killed", []

    def copied_before(act):
        def acted(file: Path, *target: Path, **options: bool) -> Path | None:
            if file.exists():
                copy = killed / str(len(in_place))
                shutil.copytree(place, copy)
                half = copy / file.relative_to(place)
                if target and half.is_file():
                    os.truncate(half, half.stat().st_size // 2)
                # The process that goes on has another number.
                os.rename(half, half.with_name(half.name.replace(str(os.getpid()), "77")))  # noqa: PTH104
                in_place.append(target)
            return act(file, *target, **options)

        return acted

    with monkeypatch.context() as patch:
        for name in ("replace", "rename", "unlink"):
            patch.setattr(Path, name, copied_before(getattr(Path, name)))
        place.mkdir()
        make_checkpoint(recipe, place / "new", **options)
    # The whole folder comes into its place with a description; every other file does by itself.
    assert {(path,) for path in (place / "new").rglob("*") if path.is_file()} < {*in_place}
    assert len(in_place) > 15
    for number in range(len(in_place)):
        folder = killed / str(number) / "new"
        if folder.exists():
            assert_everything_loads(folder)
        make_checkpoint(recipe, folder, **options)
        assert_everything_loads(folder)
        assert weights(folder) == weights(place / "new"), number
        assert not list(folder.parent.rglob(".*"))


def test_early_stop_waits_for_its_patience(tmp_path):
    """A learning rate of nearly nothing improves nothing: the first check is the best, and two more are waited for."""
    events = []
    recipe = replace(RECIPE, learning_rate=1e-12, patience=2)
    metrics = make_checkpoint(recipe, tmp_path / "new", **EVALUATED, on_event=events.append)
    assert len([event for event in events if event.checks]) == 3
    assert metrics is not None and metrics["stopped_at"] == events[-1].step == 30


def test_a_training_goes_on_with_the_model_that_it_was_begun_with(tmp_path, monkeypatch):
    """A variant's settings may be others by then: where dropout acts, say, or its published size."""
    recipe = replace(RECIPE, variant="post-norm", model={})
    old = {**tiny.SIZES, "norm": "post", "dropout": 0.3, "dropout_in": "embeddings"}
    monkeypatch.setattr(variants, "settings", lambda name: old)
    make_checkpoint(recipe, tmp_path / "straight", **QUIET)
    calls = count()
    make_checkpoint(recipe, tmp_path / "cut", **QUIET, control=lambda: "pause" if next(calls) > 20 else "go on")
    assert (tmp_path / "cut" / STATE).exists()
    monkeypatch.setattr(variants, "settings", lambda name: {**old, "d_model": 24, "dropout_in": "everywhere"})
    make_checkpoint(recipe, tmp_path / "cut", **QUIET, resume=True)
    assert weights(tmp_path / "cut") == weights(tmp_path / "straight")
    config = load_checkpoint(str(tmp_path / "cut"), device="cpu").model.config
    assert (config.d_model, config.dropout_in) == (12, "embeddings")


def test_what_cannot_be_resumed_is_said(tmp_path):
    make_checkpoint(RECIPE, tmp_path / "done", **EVALUATED)
    before = weights(tmp_path / "done")
    with pytest.raises(OptionError, match="finished"):
        make_checkpoint(RECIPE, tmp_path / "done", **QUIET, resume=True)
    with pytest.raises(CheckpointError, match="exists already"):
        make_checkpoint(RECIPE, tmp_path / "done", **QUIET)
    assert weights(tmp_path / "done") == before
    make_checkpoint(RECIPE, tmp_path / "half", **QUIET, control=lambda: "pause")
    with pytest.raises(OptionError, match=r"batch_size, learning_rate differ"):
        make_checkpoint(replace(RECIPE, batch_size=8, learning_rate=1.0), tmp_path / "half", **QUIET, resume=True)
    (tmp_path / "half" / STATE).write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="damaged"):
        make_checkpoint(RECIPE, tmp_path / "half", **QUIET, resume=True)
    load_checkpoint(str(tmp_path / "half"), device="cpu")


def another_state(change: Callable[[dict[str, torch.Tensor], dict[str, Any]], object]) -> Callable[[Path], None]:
    """A whole file with other tensors or another progress in it."""

    def damage(path: Path) -> None:
        with saved_state.untrusted_files.open_tensors(path, 2**30, 2**20) as file:
            progress = json.loads(file.metadata()["state"])
        tensors = load_file(path)
        change(tensors, progress)
        save_file(tensors, path, {"state": json.dumps(progress)})

    return damage


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


MOMENT = "optimizer.0.exp_avg"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a step after the last": (another_state(lambda tensors, state: state.update(step=61)), "step=61"),
    "no step": (another_state(lambda tensors, state: state.update(step="1")), "step='1'"),
    "no history": (another_state(lambda tensors, state: state.pop("history")), "lacks 'history'"),
    "no loss": (another_state(lambda tensors, state: state["history"][0].pop("loss")), r"history\[0\] lacks 'loss'"),
    "no text": (lambda path: save_file(load_file(path), path), "KeyError"),
    "no weight": (another_state(lambda tensors, state: tensors.pop("model.output.bias")), "KeyError"),
    "a short weight": (
        another_state(lambda tensors, state: tensors.update({"model.output.bias": torch.ones(1)})),
        "RuntimeError",
    ),
    "a short moment": (another_state(lambda tensors, state: tensors.update({MOMENT: torch.ones(1)})), f"{MOMENT} is not of"),
    "a moment of nothing": (another_state(lambda tensors, state: tensors.update({"optimizer.999.a": torch.ones(3)})), "Index"),
    "a moment of no number": (another_state(lambda tensors, state: tensors.update({"optimizer.x.y": torch.ones(3)})), "Value"),
    "nonsense": (lambda path: path.write_bytes(b"nonsense"), "no safetensors file"),
    "cut off": (lambda path: os.truncate(path, path.stat().st_size - 1), "no whole safetensors file"),
    "a hole": (lambda path: os.truncate(path, 2**40), "at most"),
    "a pipe": (pipe, "a pipe"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_state_is_refused(tmp_path, damage, words):
    """Everything in it is looked at before training goes on: later it would be our fault."""
    first = trainer(RECIPE)
    next(first.run(lambda step: step == 1))
    saved_state.save(first, [event(1)], tmp_path)
    another_state(lambda tensors, state: None)(tmp_path / STATE)
    assert saved_state.load(trainer(RECIPE), tmp_path) == [event(1)]
    damage(tmp_path / STATE)
    with pytest.raises(CheckpointError, match=rf"damaged or belongs to another training \(.*{words}.*--force"):
        saved_state.load(trainer(RECIPE), tmp_path)


def test_snapshots_are_log_spaced_half_precision_and_load(tmp_path):
    assert snapshot_steps(RECIPE, 6) == [0, 1, 3, 8, 22, 60]
    assert snapshot_steps(RECIPE, 0) == []
    make_checkpoint(RECIPE, tmp_path / "new", **QUIET, snapshots=6)
    checkpoint = load_checkpoint(str(tmp_path / "new"), device="cpu")
    assert list(checkpoints.snapshots(checkpoint.folder)) == [0, 1, 3, 8, 22, 60]
    first, last = (checkpoints.load_snapshot(checkpoint, step) for step in (0, 60))
    untrained = make_model(RECIPE, TASK).state_dict()
    for name, tensor in last.model.state_dict().items():
        torch.testing.assert_close(tensor, checkpoint.model.state_dict()[name], rtol=1e-3, atol=1e-6)
        assert torch.equal(first.model.state_dict()[name], untrained[name].half().float())
    assert decode(last, "abc").source == "abc"
    with pytest.raises(CheckpointError, match="no snapshot of step 5; it has 0, 1, 3, 8, 22, 60"):
        checkpoints.load_snapshot(checkpoint, 5)
