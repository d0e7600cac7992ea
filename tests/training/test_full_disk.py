"""A disk that fills up at any moment of a training: a sentence, and what was saved loads and goes on to the same weights."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from safetensors import SafetensorError

from tests.folders import contents
from tests.training import tiny
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError
from transformer_viz.training import make_checkpoint as making
from transformer_viz.training.make_checkpoint import make_checkpoint
from transformer_viz.training.saved_state import STATE

resource = pytest.importorskip("resource", reason="limits of the system, which Windows has not")
RECIPE = replace(tiny.RECIPE, steps=3, batch_size=3)
OPTIONS: dict[str, Any] = {**tiny.QUIET, "save_seconds": 0, "snapshots": 3, "resume": True}


class Disk:
    """Is full from the n-th change of a folder's files on: of each open, rename and new folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.left, self.is_watched = str(folder), 10**9, False
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple) -> None:
        if not self.is_watched or event not in ("open", "os.rename", "os.mkdir") or not self.is_change(event, arguments):
            return
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))

    def is_change(self, event: str, arguments: tuple) -> bool:
        is_here = isinstance(arguments[0], str | os.PathLike) and os.fspath(arguments[0]).startswith(self.folder)
        return is_here and (event != "open" or bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)))

    @contextmanager
    def full_after(self, changes: int) -> Generator[None]:
        self.left, self.is_watched = changes, True
        try:
            yield
        finally:
            self.is_watched = False


@pytest.fixture
def rust_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors writes by itself; Python is told of it, and safetensors then says what it would say."""
    save = safetensors.torch.save_file

    def save_file(tensors, path, metadata) -> None:
        try:
            path.touch()
        except OSError as error:
            raise SafetensorError(f"Error while serializing: I/O error: {error.strerror} (os error {error.errno})") from None
        save(tensors, path, metadata)

    monkeypatch.setattr(safetensors.torch, "save_file", save_file)


@pytest.mark.slow
@pytest.mark.usefixtures("rust_is_heard")
def test_whenever_the_disk_is_full_what_was_saved_loads_and_goes_on(tmp_path, monkeypatch):
    # Held-out texts are not decoded: that takes most of the time here, and writes nothing.
    monkeypatch.setattr(making, "check_held_out", lambda *_: {})
    make_checkpoint(RECIPE, tmp_path / "straight", **OPTIONS)
    disk, said, seen = Disk(tmp_path / "all"), [], []
    for changes in range(200):
        folder = tmp_path / "all" / str(changes) / "new"
        try:
            with disk.full_after(changes):
                make_checkpoint(RECIPE, folder, **OPTIONS)
            break
        except CheckpointError as error:
            said.append(str(error))
        assert all(words in said[-1] for words in (str(folder), "No space left on device", "--resume"))
        assert ("last save is kept" in said[-1]) == (folder / STATE).exists()
        assert not list(folder.parent.rglob(".*"))
        if contents(folder) in seen:  # making a file, writing it and moving it there leave the same when they fail
            continue
        seen.append(contents(folder))
        if folder.exists():
            checkpoint = load_checkpoint(str(folder), device="cpu")
            for step in checkpoints.snapshots(folder):
                checkpoints.load_snapshot(checkpoint, step)
        make_checkpoint(RECIPE, folder, **OPTIONS)
        assert contents(folder) == contents(tmp_path / "straight")
    assert len(said) == changes > 50
    assert len(seen) > 10


@contextmanager
def refused(words: str) -> Generator[None]:
    """No file may grow beyond 20 kB: a write that the system itself refuses, Rust's too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match=f"cannot be written.*{words}"):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_the_system_refuses_is_said_and_nothing_is_lost(tmp_path):
    """The model's 15 kB fit, the state's 45 kB do not."""
    folder, wide = tmp_path / "new", replace(RECIPE, model={**RECIPE.model, "d_ff": 500})
    with refused(f"{folder}/training.safetensors: File too large. No step is saved yet"):
        make_checkpoint(RECIPE, folder, **OPTIONS)
    load_checkpoint(str(folder), device="cpu")
    with refused("wide"):
        make_checkpoint(wide, tmp_path / "wide", **OPTIONS)
    assert not (tmp_path / "wide").exists()
    assert not list(tmp_path.rglob(".*"))
