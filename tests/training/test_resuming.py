"""A training that is cut off goes on to bitwise the same weights, whenever it was cut off, and its folder always loads."""

import json
import os
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from transformer_viz import checkpoints, decode, load_checkpoint
from transformer_viz.errors import CheckpointError, OptionError
from transformer_viz.model import variants
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training import in_progress
from transformer_viz.training.batches import batches
from transformer_viz.training.in_progress import STATE, snapshot_steps
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_checkpoint, make_model
from transformer_viz.training.recipe import Recipe

TASK = Reverse("abcd", 7, (2, 5))
SMALL: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1}
RECIPE = Recipe(
    task="reverse",
    variant="pre-norm",
    task_options=TASK.options(),
    model={**SMALL, "dropout": 0.2},
    mix={"uniform": 1.0},
    steps=60,
    batch_size=7,
    learning_rate=0.01,
    clip=1.0,
    seed=5,
)
CPU = torch.device("cpu")
QUIET: dict[str, Any] = {"device": "cpu", "samples": None, "save_seconds": 0}
EVALUATED: dict[str, Any] = {**QUIET, "samples": 200}


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_a_state_that_went_through_a_file_goes_on_bitwise(tmp_path, optimizer):
    recipe = replace(RECIPE, optimizer=optimizer, momentum=0.9, steps=9)
    whole = Trainer(make_model(recipe, TASK), batches(recipe, TASK), recipe, CPU)
    list(whole.run(lambda step: False))
    first = Trainer(make_model(recipe, TASK), batches(recipe, TASK), recipe, CPU)
    for event in first.run(lambda step: step == 4):
        if event.step == 4:
            break
    in_progress.save(first, [{"step": 4, "loss": 1.5}], tmp_path)
    second = Trainer(make_model(replace(recipe, seed=6), TASK), batches(recipe, TASK), recipe, CPU)
    assert in_progress.load(second, tmp_path) == [{"step": 4, "loss": 1.5}]
    assert second.step == 4
    list(second.run(lambda step: False))
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name]), name


def test_pausing_and_resuming_is_one_training(tmp_path):
    events: list[int] = []
    options: dict[str, Any] = {**EVALUATED}
    straight = make_checkpoint(RECIPE, tmp_path / "straight", **options)
    after = iter([3, 1, 7, 2, 100])
    left = [next(after)]

    def control() -> Any:
        left[0] -= 1
        return "pause" if left[0] < 0 else "go on"

    for _ in range(10):
        options |= {"resume": True, "control": control, "on_event": lambda event: events.append(event.step)}
        metrics = make_checkpoint(RECIPE, tmp_path / "cut", **options)
        load_checkpoint(str(tmp_path / "cut"), device="cpu")
        if metrics is not None:
            break
        assert (tmp_path / "cut" / STATE).exists()
        left[0] = next(after)
    assert metrics == straight
    assert weights(tmp_path / "cut") == weights(tmp_path / "straight")
    steps = [line.split(",")[0] for line in (tmp_path / "cut" / "history.csv").read_text().splitlines()[1:]]
    assert steps == sorted(set(steps), key=int)
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["config.json", "history.csv", "model.safetensors"]


def test_early_stop_waits_for_its_patience(tmp_path):
    """A learning rate of nearly nothing improves nothing: the first check is the best, and two more are waited for."""
    recipe = replace(RECIPE, learning_rate=1e-12, patience=2)
    events = []
    metrics = make_checkpoint(recipe, tmp_path / "new", **EVALUATED, on_event=events.append)
    assert metrics is not None
    assert len([event for event in events if event.checks]) == 3
    assert metrics["stopped_at"] == events[-1].step == 30


def test_a_training_goes_on_with_the_model_that_it_was_begun_with(tmp_path, monkeypatch):
    """A variant's settings may be others by then: where dropout acts, say, or its published size."""
    recipe = replace(RECIPE, variant="post-norm", model={})
    old = {**SMALL, "norm": "post", "dropout": 0.3, "dropout_in": "embeddings"}
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


def test_a_hostile_state_is_refused(tmp_path):
    """Everything in it is looked at before training goes on: later it would be our fault."""

    def trainer() -> Trainer:
        return Trainer(make_model(RECIPE, TASK), batches(RECIPE, TASK), RECIPE, CPU)

    first, path = trainer(), tmp_path / STATE
    next(iter(first.run(lambda step: step == 1)))
    in_progress.save(first, [{"step": 1, "loss": 1.5}], tmp_path)
    tensors, words = load_file(path), {"step": 1, "history": []}
    moment = next(name for name in tensors if name.startswith("optimizer.") and tensors[name].dim())
    save_file(tensors, path, {"state": json.dumps(words)})
    assert in_progress.load(trainer(), tmp_path) == []
    steps, histories = (-1, 61, True, "1"), (5, ["ab"], [{"loss": "x"}])
    states: list[Any] = [*({**words, "step": step} for step in steps), *({**words, "history": rows} for rows in histories)]
    for state in (*states, {"history": []}, []):
        save_file(tensors, path, {"state": json.dumps(state)})
        with pytest.raises(CheckpointError, match="damaged"):
            in_progress.load(trainer(), tmp_path)
    for other in ({moment: tensors[moment][:1]}, {"optimizer.999.exp_avg": torch.ones(3)}, {"optimizer.x.y": torch.ones(3)}):
        save_file({**tensors, **other}, path, {"state": json.dumps(words)})
        with pytest.raises(CheckpointError, match="damaged"):
            in_progress.load(trainer(), tmp_path)
    os.truncate(path, 2**40)
    with pytest.raises(CheckpointError, match="at most"):
        in_progress.load(trainer(), tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match="a pipe"):
        in_progress.load(trainer(), tmp_path)


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


def assert_everything_loads(folder: Path) -> None:
    checkpoint = load_checkpoint(str(folder), device="cpu")
    for step in checkpoints.snapshots(folder):
        checkpoints.load_snapshot(checkpoint, step)


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
