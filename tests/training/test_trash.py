"""Discarded trainings: put back they are what they were, for a day; they count; a stranger touches none."""

import time

import pytest

from tests.training.test_job_rules import ANNA, BORIS, files, launched
from tests.training.tiny import RECIPE
from transformer_viz.errors import OptionError
from transformer_viz.training import jobs, trash

__all__ = ["launched"]


@pytest.fixture
def thrown(launched, tmp_path):
    """A training of Anna's with a checkpoint, and what its files were."""
    job = jobs.start(RECIPE, "annas.1", ANNA)
    (tmp_path / "trained" / "annas.1" / "snapshots").mkdir(parents=True)
    (tmp_path / "trained" / "annas.1" / "snapshots" / "1").write_bytes(b"weights")
    before = files(tmp_path)
    trash.discard(job, ANNA)
    return before


def test_put_back_it_is_what_it_was(thrown, tmp_path):
    assert jobs.jobs() == []
    assert not (tmp_path / "trained" / "annas.1").exists()
    (entry,) = trash.discarded()
    assert entry.job.name == "annas.1"
    assert 0 < entry.seconds_left <= trash.SECONDS
    entry.put_back(ANNA)
    assert files(tmp_path) == thrown
    assert trash.discarded() == []


def test_after_a_day_it_is_gone_for_good(thrown, tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + trash.SECONDS - 60)
    assert len(trash.discarded()) == 1
    monkeypatch.setattr(time, "time", lambda: now + trash.SECONDS + 1)
    assert trash.discarded() == []
    assert not [name for name in files(tmp_path) if "annas" in name]


def test_a_stranger_neither_puts_back_nor_removes(thrown, tmp_path):
    (entry,), before = trash.discarded(), files(tmp_path)
    for act in (entry.put_back, entry.remove):
        with pytest.raises(OptionError, match="another browser"):
            act(BORIS)
    assert files(tmp_path) == before
    entry.remove(ANNA)
    assert trash.discarded() == []


def test_it_is_put_back_over_nothing(thrown, tmp_path):
    jobs.start(RECIPE, "annas.1", BORIS)
    before = files(tmp_path)
    with pytest.raises(OptionError, match=r"another checkpoint annas\.1"):
        trash.discarded()[0].put_back(ANNA)
    assert files(tmp_path) == before


def test_the_trash_counts_in_number_and_bytes(thrown, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_JOBS", 1)
    with pytest.raises(OptionError, match="the trash included"):
        jobs.start(RECIPE, "another", ANNA)
