"""A training that is cut off goes on to bitwise the same weights, whenever it was cut off, and its folder always loads."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.folders import contents
from tests.training import tiny
from tests.training.tiny import TASK, event, trainer, weights
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError, OptionError
from transformer_viz.model import variants
from transformer_viz.training import make_checkpoint as making
from transformer_viz.training import saved_state
from transformer_viz.training.make_checkpoint import make_checkpoint, make_model
from transformer_viz.training.saved_state import STATE, snapshot_steps

RECIPE = replace(tiny.RECIPE, model={**tiny.SIZES, "dropout": 0.2}, clip=1.0, seed=5)
QUIET: dict[str, Any] = {**tiny.QUIET, "save_seconds": 0}
EVALUATED: dict[str, Any] = {**QUIET, "samples": 200}


def assert_everything_loads(folder: Path) -> None:
    checkpoint = load_checkpoint(str(folder), device="cpu")
    for step in checkpoints.snapshots(folder):
        checkpoints.load_snapshot(checkpoint, step)


def test_pausing_and_resuming_is_one_training(tmp_path):
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    metrics = make_checkpoint(RECIPE, straight, **EVALUATED)
    for n in (3, 1, 7, 2):
        calls = count()
        signal: Any = lambda n=n, calls=calls: "go on" if next(calls) < n else "pause"  # noqa: E731
        assert make_checkpoint(RECIPE, cut, **EVALUATED, resume=True, control=signal) is None
        load_checkpoint(str(cut), device="cpu")
        assert (cut / STATE).exists()
    assert make_checkpoint(RECIPE, cut, **EVALUATED, resume=True) == metrics
    assert weights(cut) == weights(straight) and len(contents(cut)) == 3
    steps = [int(line.split(",")[0]) for line in (cut / "history.csv").read_text().splitlines()[1:]]
    assert steps == sorted(set(steps))


def test_wherever_a_training_is_killed_its_folder_loads_and_it_resumes(tmp_path, monkeypatch):
    """The disk as a kill leaves it: before each file is put in its place, when half of it is written, or is removed."""
    monkeypatch.setattr(making, "check_held_out", lambda *_: {})
    options: dict[str, Any] = {**QUIET, "snapshots": 3, "resume": True}
    recipe, place, killed, in_place = replace(RECIPE, steps=12), tmp_path / "whole", tmp_path / "killed", []

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
        assert contents(folder) == contents(place / "new"), number
        assert not list(folder.parent.rglob(".*"))


def test_early_stop_waits_for_its_patience(tmp_path):
    """A learning rate of nearly nothing improves nothing: the first check is the best, and two more are waited for."""
    events, recipe = [], replace(RECIPE, learning_rate=1e-12, patience=2)
    metrics = make_checkpoint(recipe, tmp_path / "new", **EVALUATED, on_event=events.append)
    assert len([event for event in events if event.checks]) == 3
    assert metrics is not None and metrics["stopped_at"] == events[-1].step == 30


def test_a_training_goes_on_with_the_model_that_it_was_begun_with(tmp_path, monkeypatch):
    """A variant's settings may be others by then: where dropout acts, say, or its published size. With momentum, too."""
    recipe = replace(RECIPE, variant="post-norm", model={}, optimizer="sgd", momentum=0.9)
    old = {**tiny.SIZES, "norm": "post", "dropout": 0.3, "dropout_in": "embeddings"}
    monkeypatch.setattr(variants, "settings", lambda name: old)
    make_checkpoint(recipe, tmp_path / "straight", **QUIET)
    calls = count()
    make_checkpoint(recipe, tmp_path / "cut", **QUIET, control=lambda: "pause" if next(calls) > 20 else "go on")
    assert (tmp_path / "cut" / STATE).exists()
    monkeypatch.setattr(variants, "settings", lambda name: {**old, "d_model": 24, "dropout_in": "everywhere"})
    make_checkpoint(recipe, tmp_path / "cut", **QUIET, resume=True)
    assert weights(tmp_path / "cut") == weights(tmp_path / "straight")
    config = load_checkpoint(str(tmp_path / "cut"), device="cpu").network.config
    assert (config.d_model, config.dropout_in) == (12, "embeddings")


def test_what_cannot_be_resumed_is_said(tmp_path):
    done, half = tmp_path / "done", tmp_path / "half"
    make_checkpoint(RECIPE, done, **EVALUATED)
    before = contents(tmp_path)
    with pytest.raises(OptionError, match="finished"):
        make_checkpoint(RECIPE, done, **QUIET, resume=True)
    with pytest.raises(CheckpointError, match="exists already"):
        make_checkpoint(RECIPE, done, **QUIET)
    assert contents(tmp_path) == before
    make_checkpoint(RECIPE, half, **QUIET, control=lambda: "pause")
    with pytest.raises(OptionError, match=r"batch_size, learning_rate differ"):
        make_checkpoint(replace(RECIPE, batch_size=8, learning_rate=1.0), half, **QUIET, resume=True)
    (half / STATE).write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="damaged"):
        make_checkpoint(RECIPE, half, **QUIET, resume=True)
    load_checkpoint(str(half), device="cpu")


def another_state(change: Callable[[dict[str, torch.Tensor], dict[str, Any]], object]) -> Callable[[Path], None]:
    """A whole file with other tensors or another progress in it."""

    def damage(path: Path) -> None:
        with saved_state.untrusted_files.open_tensors(path, 2**30, 2**20) as file:
            progress = json.loads(file.metadata()["state"])
        tensors = load_file(path)
        change(tensors, progress)
        save_file(tensors, path, {"state": json.dumps(progress)})

    return damage


MOMENT, BIAS, ONE = "optimizer.0.exp_avg", "model.output.bias", torch.ones(1)
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a step after the last": (another_state(lambda tensors, state: state.update(step=61)), "step=61"),
    "no loss": (another_state(lambda tensors, state: state["history"][0].pop("loss")), r"history\[0\] lacks 'loss'"),
    "no text": (lambda path: save_file(load_file(path), path), "KeyError"),
    "no weight": (another_state(lambda tensors, state: tensors.pop(BIAS)), "KeyError"),
    "a short weight": (another_state(lambda tensors, state: tensors.update({BIAS: ONE})), "RuntimeError"),
    "a short moment": (another_state(lambda tensors, state: tensors.update({MOMENT: ONE})), f"{MOMENT} is not of"),
    "a moment of nothing": (another_state(lambda tensors, state: tensors.update({"optimizer.999.a": ONE})), "Index"),
    "a moment of no number": (another_state(lambda tensors, state: tensors.update({"optimizer.x.y": ONE})), "Value"),
    "nonsense": (lambda path: path.write_bytes(b"nonsense"), "no safetensors file"),
    "cut off": (lambda path: os.truncate(path, path.stat().st_size - 1), "no whole safetensors file"),
    "a hole": (lambda path: os.truncate(path, 2**40), "at most"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "a pipe"),
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
    steps = [0, 1, 3, 8, 22, 60]
    assert snapshot_steps(RECIPE, 6) == steps and snapshot_steps(RECIPE, 0) == []
    make_checkpoint(RECIPE, tmp_path / "new", **QUIET, snapshots=6)
    checkpoint = load_checkpoint(str(tmp_path / "new"), device="cpu")
    assert list(checkpoints.snapshots(checkpoint.folder)) == steps
    first, last = (checkpoints.load_snapshot(checkpoint, step) for step in (0, 60))
    untrained = make_model(RECIPE, TASK).state_dict()
    for name, tensor in last.network.state_dict().items():
        torch.testing.assert_close(tensor, checkpoint.network.state_dict()[name], rtol=1e-3, atol=1e-6)
        assert torch.equal(first.network.state_dict()[name], untrained[name].half().float())
    with pytest.raises(CheckpointError, match="no snapshot of step 5; it has 0, 1, 3, 8, 22, 60"):
        checkpoints.load_snapshot(checkpoint, 5)
