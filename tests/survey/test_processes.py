"""Whoever runs the units: what they leave is the same to the last bit, and a killed worker costs its unit only."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import transformer_viz as tv
from tests.survey import dying
from tests.survey.conftest import texts
from tests.until import until
from transformer_viz.errors import SurveyError
from transformer_viz.surveying import processes
from transformer_viz.surveying.fingerprint import fingerprint
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.surveying.reading import corpus_of
from transformer_viz.surveying.work import Job, Unit, here

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = SurveyOptions(verdict_texts=0)


def job_of(name: str) -> Job:
    return Job(name, "cpu", fingerprint(tv.load_checkpoint(name, "cpu")), OPTIONS, dying.task)


def units_of(job: Job, given: list[str]) -> list[Unit]:
    blocks = corpus_of(given).blocks()
    return [Unit("texts", block, block.digest(job.fingerprint, OPTIONS)) for block in blocks]


class Watched:
    """Units, and how many were taken."""

    def __init__(self, units: list[Unit]) -> None:
        self.n_taken, self._units = 0, units

    def __iter__(self) -> Iterator[Unit]:
        for unit in self._units:
            self.n_taken += 1
            yield unit


def test_two_processes_one_of_them_killed_leave_what_this_one_leaves(tiny_name, tmp_path):
    job = job_of(tiny_name)
    units = units_of(job, [*texts(64), dying.ONCE, str(tmp_path / "mark"), *texts(200)])
    watched, found = Watched(units), {}
    for unit, data in processes.run(2, job, iter(watched)):
        found[unit] = data
        assert watched.n_taken <= len(found) + 2, "more is taken than workers are free"
    assert (tmp_path / "mark").exists()
    assert found == dict(here(tv.load_checkpoint(tiny_name, "cpu"), job, iter(units)))


@pytest.mark.slow  # processes load torch, one after the other
def test_a_unit_whose_workers_are_always_killed_is_named(tiny_name):
    job = job_of(tiny_name)
    units = units_of(job, [*texts(64), dying.ALWAYS, *texts(63)])
    with pytest.raises(SurveyError, match=r"lines 65 to 128 ended 3 times before it was done \(signal 9\)"):
        list(processes.run(1, job, iter(units)))


@pytest.mark.slow
def test_what_goes_wrong_in_a_worker_is_said_here(tiny_name):
    job = job_of(tiny_name)
    with pytest.raises(SurveyError, match="this one is refused"):
        list(processes.run(1, job, iter(units_of(job, [dying.REFUSED]))))
    with pytest.raises(SurveyError, match="not the same model"):
        list(processes.run(1, Job(job.model, "cpu", "another", OPTIONS), iter(units_of(job, ["a"]))))


def children(of: int) -> set[int]:
    """Processes that a process has started, as the system knows them."""
    return {int(each) for each in Path(f"/proc/{of}/task/{of}/children").read_text().split()}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["Ctrl-C", "SIGTERM", "SIGKILL"])
def test_a_survey_that_is_ended_leaves_no_process_and_goes_on(how, tiny_name, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(texts(5000)), encoding="utf-8")
    words = ["--checkpoint", tiny_name, "--texts", str(tmp_path / "texts.txt"), "--verdict-texts", "0", "--device", "cpu"]
    command = [sys.executable, "-m", "transformer_viz", "survey", *words]
    output = tmp_path / "ended"
    # In a group of its own, all of which a terminal's Ctrl-C reaches. What a shell starts in the background ignores that,
    # and so would all that it starts.
    started = subprocess.Popen(
        [*command, "-o", str(output), "--workers", "2"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: len(list(output.glob("blocks/*.safetensors"))) > 2 or started.poll() is not None)
    workers = children(started.pid)
    (os.killpg if how == signal.SIGINT else os.kill)(started.pid, how)
    said = started.communicate()[1]
    assert started.returncode == (-how if how == signal.SIGKILL else 128 + how), said
    assert "Traceback" not in said
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))
    n_done = len(list(output.glob("blocks/*.safetensors")))
    assert 2 < n_done < 79
    for folder in (output, tmp_path / "straight"):
        subprocess.run([*command, "-o", str(folder), "--workers", "1"], cwd=ROOT, check=True, capture_output=True)
    assert contents(output) == contents(tmp_path / "straight")


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
