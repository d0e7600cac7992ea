"""Whoever runs the blocks: what they leave is the same to the last bit, and a survey whose worker is killed goes on."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import transformer_viz as tv
from tests.folders import contents
from tests.needs import needs
from tests.surveys.conftest import texts
from tests.until import until
from transformer_viz.errors import SurveyError
from transformer_viz.surveys.corpus import read_corpus
from transformer_viz.surveys.result import SurveyOptions
from transformer_viz.surveys.survey import Progress
from transformer_viz.surveys.workers import Unit, Workers, run_in_worker

ROOT = Path(__file__).resolve().parents[2]
CORPUS = texts(64 * 5)
HOW: dict[str, Any] = {"verdict_texts": 1, "device": "cpu"}


def kill_one(progress: Progress) -> None:
    """Kills a worker when the first block is done."""
    if progress.stage == "texts" and progress.n_done == 64:
        multiprocessing.active_children()[0].kill()


def test_a_killed_worker_is_said_and_the_survey_goes_on_to_the_same_bytes(tiny_name, tmp_path):
    """Begun by two workers, gone on here, and all of it here."""
    with pytest.raises(SurveyError, match=r"A worker was ended before its block was done.*the same command continues"):
        tv.survey(tiny_name, CORPUS, output=tmp_path / "killed", workers=2, on_progress=kill_one, **HOW)
    assert 0 < len(list((tmp_path / "killed").glob("blocks/*.safetensors"))) < 5
    assert not multiprocessing.active_children()
    for name in ("killed", "straight"):
        tv.survey(tiny_name, CORPUS, output=tmp_path / name, workers=1, **HOW)
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")


def test_what_is_not_the_same_for_a_worker_is_said(tiny_name):
    workers = Workers(tiny_name, "cpu", 2)
    job = workers.job(workers.load(), SurveyOptions())
    unit = Unit("texts", read_corpus(["abc"]).blocks[0], "d")
    assert isinstance(run_in_worker(job, unit), bytes)
    wrong = {"fingerprint": "another", "versions": (job.versions[0], ("torch", "1.0")), "model": "nowhere"}
    said = [str(run_in_worker(replace(job, **{name: value}), unit)) for name, value in wrong.items()]
    assert said[0].startswith("tiny is not the same model on the machine ")
    assert said[1].startswith("torch is ") and said[1].endswith("1.0 where the survey was started.")
    assert "nowhere" in said[2]


def children(of: int) -> set[int]:
    """Processes that a process has started, as the system knows them."""
    return {int(each) for each in Path(f"/proc/{of}/task/{of}/children").read_text().split()}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_a_survey_that_is_ended_leaves_no_process(how, tiny_name, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(texts(10_000)), encoding="utf-8")
    words = ["--checkpoint", tiny_name, "--texts", str(tmp_path / "texts.txt"), "--verdict-texts", "0", "--device", "cpu"]
    # In a group of its own, all of which a terminal's Ctrl-C reaches. What a shell starts in the background ignores that,
    # and so would all that it starts.
    started = subprocess.Popen(
        [sys.executable, "-m", "transformer_viz", "survey", *words, "-o", str(tmp_path / "ended"), "--workers", "2"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: len(list(tmp_path.glob("ended/blocks/*.safetensors"))) > 2 or started.poll() is not None)
    workers = children(started.pid)
    (os.killpg if how == signal.SIGINT else os.kill)(started.pid, how)
    said = started.communicate()[1]
    assert started.returncode == (-how if how == signal.SIGKILL else 128 + how), said
    assert "Traceback" not in said
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))
    assert 2 < len(list(tmp_path.glob("ended/blocks/*.safetensors"))) < 157


class RayError(Exception):
    """As Ray has it."""


class StandIn:
    """What a survey uses of Ray, on threads of this process; arguments and results travel as they would."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, error: Exception | None = None) -> None:
        self.n_now = self.most = self.n_ended = 0
        self._error, self._pool = error, ThreadPoolExecutor(8)

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        self.options = options

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, **needed: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: SimpleNamespace(
            remote=lambda *given: SimpleNamespace(future=lambda: self._run(function, given))
        )

    def _run(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        def run() -> Any:
            if self._error is not None:
                raise self._error
            self.n_now -= 1
            return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(given)))))

        self.n_now += 1
        self.most = max(self.most, self.n_now)
        return self._pool.submit(run)

    def shutdown(self) -> None:
        self.n_ended += 1


def test_tasks_of_ray_leave_what_this_process_leaves(tiny_name, monkeypatch):
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)
    corpus = CORPUS[: 64 * 3]
    straight = tv.survey(tiny_name, corpus, workers=1, **HOW).to_json()
    for n in (None, 500):
        assert tv.survey(tiny_name, corpus, ray="auto", workers=n, **HOW).to_json() == straight
    assert ray.n_ended == 2 and 0 < ray.most <= 3
    with pytest.raises(SurveyError, match="GPUs; a worker needs one and 1"):
        tv.survey(tiny_name, CORPUS, ray="auto", gpus_per_worker=1, **HOW)
    lost = StandIn(RayError("where it was\nThe node died."))
    monkeypatch.setitem(sys.modules, "ray", lost)
    with pytest.raises(SurveyError, match=r"Ray could not run a block: The node died\..*the same command continues"):
        tv.survey(tiny_name, CORPUS, ray="auto", **HOW)
    assert lost.n_ended == 1


def test_a_cluster_that_is_not_there_is_said(tiny_name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    for address in ("127.0.0.1:1", "nowhere", "ray://:x"):
        with pytest.raises(SurveyError, match="cannot be reached"):
            tv.survey(tiny_name, ["a"], ray=address, **HOW)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SurveyError, match="pip install 'ray>="):
        tv.survey(tiny_name, ["abc"], ray="auto")


@needs("ray")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_ray_itself_leaves_what_this_process_leaves(tiny_name):
    straight = tv.survey(tiny_name, CORPUS, workers=1, **HOW).to_json()
    assert tv.survey(tiny_name, CORPUS, ray="auto", workers=2, **HOW).to_json() == straight
    assert not import_module("ray").is_initialized()
