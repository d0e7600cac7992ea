"""Whose a training is, whether any may start, how much of the disk they may take, and its trash: decided in `jobs` and `trash`,
whatever a page shows."""

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

from tests.folders import contents
from tests.training.tiny import RECIPE
from transformer_viz import app_folders, locks, server_settings
from transformer_viz.errors import ConfigError, OptionError
from transformer_viz.training import estimate
from transformer_viz.training import make_checkpoint as making
from transformer_viz.training.make_checkpoint import make_checkpoint
from transformer_viz.views.server import jobs, trash
from transformer_viz.views.server.jobs import OWNER, Job, Visitor

ANNA, BORIS = Visitor("a" * 43), Visitor("b" * 43)
THE_OWNER = replace(BORIS, is_owner=True)
ACTS: dict[str, Callable[[Job, Visitor], None]] = {
    "pause": lambda job, visitor: job.request("pause", visitor),
    "stop": lambda job, visitor: job.request("stop", visitor),
    "go on": jobs.resume,
    "discard": trash.discard,
}


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is really trained: what would be launched is collected."""
    names: list[str] = []
    monkeypatch.setattr(app_folders, "trained", lambda: tmp_path / "trained")

    def popen(command: list[str], **_: object) -> None:
        names.append(Path(command[command.index("--job") + 1]).name)

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.delenv(server_settings.NO_TRAINING_VARIABLE, raising=False)
    monkeypatch.delenv(server_settings.variable("trained_bytes"), raising=False)
    return names


def test_other_users_of_the_machine_do_not_look_into_the_jobs(launched, tmp_path):
    """Nor into those in the trash, and not where the folder was there before."""
    (tmp_path / "trained" / ".jobs").mkdir(0o755, parents=True)
    job = jobs.start(RECIPE, "annas", ANNA)
    trash.discard(job, ANNA)
    folders = list((tmp_path / "trained").rglob(".jobs"))
    assert len(folders) == 2
    assert [folder.stat().st_mode & 0o077 for folder in folders] == [0, 0]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("who", [ANNA, THE_OWNER, OWNER], ids=["starter", "owner", "the machine"])
def test_whoever_started_it_and_the_owner_may_do_everything_and_a_stranger_nothing(launched, tmp_path, act, who):
    jobs.start(RECIPE, "annas", ANNA)
    (tmp_path / "trained" / "annas").mkdir()
    (tmp_path / "trained" / "annas" / "config.json").write_text("{}")
    (job,) = jobs.jobs()  # as another browser, or a new server, finds it
    before = contents(tmp_path)
    for stranger in (BORIS, Visitor(""), Visitor(job.mark or ""), Visitor("a" * 42)):
        with pytest.raises(OptionError, match="annas was started in another browser"):
            ACTS[act](job, stranger)
    assert contents(tmp_path) == before and launched == ["annas"]
    ACTS[act](job, who)
    assert contents(tmp_path) != before or launched == ["annas", "annas"]


def test_the_secret_of_a_browser_is_written_nowhere(launched, tmp_path):
    job = jobs.start(RECIPE, "annas", ANNA)
    assert job.mark == hashlib.sha256(b"a" * 43).hexdigest()
    assert job.mark.encode() in contents(tmp_path)["trained/.jobs/annas/job.json"]
    assert ANNA.token not in repr((ANNA, contents(tmp_path)))


@pytest.mark.parametrize("mark", [None, ""])
def test_what_nobody_left_a_mark_on_is_the_owners(launched, tmp_path, mark):
    """And a file that somebody has changed is no training."""
    jobs.start(RECIPE, "old", ANNA)
    path = tmp_path / "trained" / ".jobs" / "old" / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mark": 5}))
    assert jobs.jobs() == []
    path.write_text(json.dumps({**json.loads(path.read_text()), "mark": mark}))
    (job,) = jobs.jobs()
    for visitor in (ANNA, Visitor("")):
        with pytest.raises(OptionError, match="another browser"):
            job.request("stop", visitor)
    job.request("stop", OWNER)


def test_a_training_that_runs_is_not_discarded(launched, tmp_path):
    """By nobody, in whichever process it runs: its files would be written again."""
    job = jobs.start(RECIPE, "annas", ANNA)
    for lock in (job.folder / "lock", tmp_path / "trained" / ".annas.lock"):
        with locks.hold_lock(lock), pytest.raises(OptionError, match="is being trained"):
            trash.discard(job, OWNER)
        assert jobs.jobs() == [job]
    trash.discard(job, ANNA)
    assert jobs.jobs() == []


@pytest.mark.parametrize("said", ["1", "x", " 1 "])
def test_where_training_is_closed_nothing_starts(launched, tmp_path, monkeypatch, said):
    job = jobs.start(RECIPE, "before", ANNA)
    monkeypatch.setenv(server_settings.NO_TRAINING_VARIABLE, said)
    before = contents(tmp_path)
    for act in (lambda: jobs.start(RECIPE, "new", OWNER), lambda: jobs.resume(job, OWNER)):
        with pytest.raises(OptionError, match=r"closed on this server.*--no-training"):
            act()
    assert contents(tmp_path) == before and launched == ["before"]
    job.request("stop", ANNA)
    trash.discard(job, ANNA)


def test_what_a_page_cannot_train_is_refused_where_it_would_start(launched, tmp_path, monkeypatch):
    wide = {**RECIPE.model, "d_model": 1200, "d_ff": 4096, "n_encoder_layers": 4, "n_decoder_layers": 4}
    with pytest.raises(ConfigError, match="at most 60,000,000"):
        jobs.start(replace(RECIPE, model=wide), "wide", OWNER)
    assert not (tmp_path / "trained").exists()
    monkeypatch.setattr(server_settings, "CAN_PASS_LOCKS_ON", False)
    assert not server_settings.trains()
    with pytest.raises(OptionError, match=r"On Windows .* python -m transformer_viz train"):
        jobs.start(RECIPE, "new", OWNER)
    assert launched == []


def test_nobody_else_starts_between_the_look_and_the_start(launched, tmp_path, monkeypatch):
    """Two that look at once would both find nothing running, and room for one of them."""
    held = []

    def looked(*_: object, gives: Any = None, **__: object) -> Any:
        held.append(locks.is_locked(tmp_path / "trained" / ".jobs" / ".starting"))
        return gives

    monkeypatch.setattr(jobs, "jobs", partial(looked, gives=[]))
    monkeypatch.setattr(server_settings, "limits", partial(looked, gives=server_settings.limits()))
    monkeypatch.setattr(subprocess, "Popen", looked)
    job = jobs.start(RECIPE, "one", ANNA)
    jobs.resume(job, ANNA)
    assert held == [True] * 6
    looked()
    assert held[-1] is False


def test_room_is_what_lies_there_and_what_will_be_written(launched, tmp_path, monkeypatch):
    """To the byte, with a file of another training, and one that a link would count twice."""
    needed = jobs.folder_bytes(estimate.estimate(RECIPE), RECIPE)
    other = tmp_path / "trained" / "other"
    other.mkdir(parents=True)
    (other / "model.safetensors").write_bytes(bytes(100_000))
    (other / "link").symlink_to("model.safetensors")
    used = 100_000 + (other / "link").lstat().st_size
    variable = server_settings.variable("trained_bytes")
    assert variable == "TRANSFORMER_VIZ_MAX_TRAINED_BYTES"
    monkeypatch.setenv(variable, str(used + needed - 1))
    with pytest.raises(OptionError, match=r"Trainings may take [\d.]+ MB here.*--max-trained-bytes"):
        jobs.start(RECIPE, "one", ANNA)
    assert launched == []
    monkeypatch.setenv(variable, str(used + needed))
    job = jobs.start(RECIPE, "one", ANNA)
    # What it has written already is not counted twice when it goes on.
    job.checkpoint.mkdir()
    (job.checkpoint / "model.safetensors").write_bytes(bytes(needed // 2))
    beside = sum(path.lstat().st_size for path in job.folder.parent.rglob("*") if path.is_file())
    monkeypatch.setenv(variable, str(used + needed + beside))
    jobs.resume(job, ANNA)
    monkeypatch.setenv(variable, str(used + needed + beside - 1))
    with pytest.raises(OptionError, match="Trainings may take"):
        jobs.resume(job, ANNA)
    assert launched == ["one", "one"]


@pytest.mark.parametrize(("optimizer", "tied"), [("adamw", "none"), ("sgd", "all")])
def test_a_training_never_has_more_bytes_than_it_was_said_to(tmp_path, monkeypatch, optimizer, tied):
    """Looked at just before each file takes its place, when both of them are there."""
    model = {**RECIPE.model, "d_model": 60, "d_ff": 240, "tied_embeddings": tied}
    recipe = replace(RECIPE, steps=20, model=model, optimizer=optimizer, momentum=0.9 if optimizer == "sgd" else 0.0)
    monkeypatch.setattr(making, "check_held_out", lambda *_: {})
    said = jobs.folder_bytes(estimate.estimate(recipe), recipe) - jobs.WORDS_BYTES + 300_000
    found, write = [], safetensors.torch.save_file
    monkeypatch.setattr(safetensors.torch, "save_file", lambda *given: write(*given) or found.append(jobs.bytes_in(tmp_path)))
    make_checkpoint(recipe, tmp_path / "new", device="cpu", samples=None, snapshots=jobs.SNAPSHOTS, save_seconds=0)
    assert 0.6 * said < max(found) <= said


@pytest.fixture
def thrown(launched, tmp_path):
    """A training of Anna's with a checkpoint, and what its files were."""
    job = jobs.start(RECIPE, "annas.1", ANNA)
    (tmp_path / "trained" / "annas.1" / "snapshots").mkdir(parents=True)
    (tmp_path / "trained" / "annas.1" / "snapshots" / "1").write_bytes(b"weights")
    before = contents(tmp_path)
    trash.discard(job, ANNA)
    return before


def test_put_back_it_is_what_it_was(thrown, tmp_path):
    assert jobs.jobs() == [] and not (tmp_path / "trained" / "annas.1").exists()
    (entry,), before = trash.discarded(), contents(tmp_path)
    assert entry.job.name == "annas.1" and 0 < entry.seconds_left <= trash.SECONDS
    for act in (entry.put_back, entry.remove):
        with pytest.raises(OptionError, match="another browser"):
            act(BORIS)
    assert contents(tmp_path) == before
    entry.put_back(ANNA)
    assert contents(tmp_path) == thrown and trash.discarded() == []


@pytest.mark.parametrize("is_removed", [True, False])
def test_after_a_day_or_removed_it_is_gone_for_good(thrown, tmp_path, monkeypatch, is_removed):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + trash.SECONDS - 60)
    (entry,) = trash.discarded()
    if is_removed:
        entry.remove(ANNA)
    else:
        monkeypatch.setattr(time, "time", lambda: now + trash.SECONDS + 1)
    assert trash.discarded() == []
    assert not [name for name in contents(tmp_path) if "annas" in name]


def test_it_is_put_back_over_nothing(thrown, tmp_path):
    jobs.start(RECIPE, "annas.1", BORIS)
    before = contents(tmp_path)
    with pytest.raises(OptionError, match=r"another checkpoint annas\.1"):
        trash.discarded()[0].put_back(ANNA)
    assert contents(tmp_path) == before


def test_the_trash_counts_in_number_and_bytes(thrown, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_JOBS", 1)
    with pytest.raises(OptionError, match="the trash included"):
        jobs.start(RECIPE, "another", ANNA)
