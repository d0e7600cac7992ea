"""Trainings in processes of their own: started, watched, paused, resumed, stopped, killed, limited."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.tiny import RECIPE, event
from tests.until import until
from transformer_viz import app_folders, checkpoints, load_checkpoint, locks
from transformer_viz.errors import ConfigError, OptionError
from transformer_viz.training.reporter import Reporter
from transformer_viz.views.server import jobs
from transformer_viz.views.server.jobs import Job, Visitor

ME = Visitor("t" * 43)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A `trained/` of our own; whatever still runs at the end is killed."""
    monkeypatch.setattr(app_folders, "trained", lambda: tmp_path / "trained")
    monkeypatch.setattr(jobs, "SAMPLES", 100)
    started = []
    popen = jobs.subprocess.Popen
    monkeypatch.setattr(jobs.subprocess, "Popen", lambda *args, **more: started.append(popen(*args, **more)) or started[-1])
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_a_job_runs_to_its_end_and_leaves_an_ordinary_checkpoint(trained):
    job = jobs.start(RECIPE, "one", ME)
    assert job.state in ("starting", "running")
    with pytest.raises(OptionError, match="one is being trained"):
        jobs.start(RECIPE, "two", ME)
    until(lambda: job.state == "finished")
    assert job.events()[-1]["step"] == 60 and "held_out" in job.events()[-1]
    checkpoint = load_checkpoint(str(job.checkpoint), device="cpu")
    assert checkpoint.recipe["steps"] == 60 and "exact_match" in checkpoint.metrics
    assert len(checkpoints.snapshots(job.checkpoint)) > 5
    assert [(known.name, known.recipe) for known in jobs.jobs()] == [("one", RECIPE)]
    with pytest.raises(OptionError, match="checkpoint one already"):
        jobs.start(RECIPE, "one", ME)


@pytest.mark.slow
def test_pause_resume_and_a_kill(trained):
    """Guards a training that a page can no longer reach, or that is lost when its process is."""
    job = jobs.start(replace(RECIPE, steps=10**6), "long.name-1", ME)
    until(lambda: bool(job.events()))
    job.request("pause", ME)
    until(lambda: job.state == "paused")
    paused_at = job.events()[-1]["step"] or 0
    load_checkpoint(str(job.checkpoint), device="cpu")
    jobs.resume(job, ME)
    until(lambda: (job.events()[-1]["step"] or 0) > paused_at)
    assert job.state == "running"
    trained[-1].send_signal(signal.SIGKILL)
    trained[-1].wait()
    # A process that was killed leaves no word, but lets go of its lock.
    assert not locks.is_locked(job.folder / "lock") and job.state == "failed" and "Traceback" not in job.log()
    load_checkpoint(str(job.checkpoint), device="cpu")
    steps = [row["step"] or 0 for row in job.events()]
    assert steps == sorted(set(steps))


def test_what_cannot_be_is_refused_and_damaged_jobs_are_left_out(trained, tmp_path):
    for name in ("", "..", "a/b", ".hidden", "x" * 101, "naïve", "a b"):
        with pytest.raises(OptionError, match="cannot be a checkpoint's name"):
            jobs.start(RECIPE, name, ME)
    with pytest.raises(ConfigError, match="n_heads=4 does not divide d_model=13"):
        jobs.start(replace(RECIPE, model={"d_model": 13}), "bad", ME)
    assert not trained
    for name, text in (("a", "nonsense"), ("b", "{}"), ("c", '{"recipe": {"task": 5}, "started": 1}')):
        (tmp_path / "trained" / ".jobs" / name).mkdir(parents=True)
        (tmp_path / "trained" / ".jobs" / name / "job.json").write_text(text)
    assert jobs.jobs() == []


def test_events_of_a_life_that_was_lost_did_not_happen(tmp_path):
    """Guards a curve that runs back: after a kill, training goes on from its last save."""
    job = Job(folder=tmp_path, recipe=RECIPE, started=0.0)
    (tmp_path / "events").write_text('nonsense\n[]\n{"step": 9}\n')
    for step, loss in ((3, 2.0), (5, 1.0), (7, 0.5), (5, 0.9)):
        Reporter(tmp_path).report(event(step, loss))
    with (tmp_path / "events").open("a") as file:
        file.write('{"step": 7, "lo')
    assert [(row["step"], row["loss"]) for row in job.events()] == [(3, 2.0), (5, 0.9)]
