"""Damaged checkpoints and hostile traces: a few of each here, many in processes of their own, held to seconds and bytes."""

import json
import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.fuzz import checkpoints as damaged
from tests.fuzz import traces as hostile
from transformer_viz import checkpoints

ROOT = Path(__file__).resolve().parents[2]
_MOST_ADDRESSES = 8 * 2**30


def main(kind: str, folder: str, n: str, seed: str) -> None:
    """In the process of its own: prints as JSON what became of the files."""
    # Nothing that a file makes us do may take the machine down with it.
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    os.environ["TRANSFORMER_VIZ_DEBUG"] = "1"
    os.chdir(folder)
    with patch.object(checkpoints, "folders", lambda: [Path(folder) / "home"]):
        watch = import_module(f"tests.fuzz.{kind}").run(Path(folder), int(n), int(seed), budget=True)
    print(json.dumps(watch.outcomes))


def in_a_process(kind: str, folder: Path, n: int, seed: int) -> dict[str, int]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-m", "tests.fuzz.test_fuzz", kind, str(folder), str(n), str(seed)]
    options: dict[str, Any] = {"env": environment, "stdin": subprocess.DEVNULL, "timeout": 3600}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_a_few_damaged_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "folders", lambda: [tmp_path / "home"])
    outcomes = damaged.run(tmp_path, 14, 0, budget=False).outcomes
    assert outcomes["usable"] + outcomes["listed with its reason"] == 14
    assert min(outcomes["usable"], outcomes["listed with its reason"]) > 2


def test_a_few_hostile_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes = hostile.run(tmp_path, 25, 0, budget=False).outcomes
    assert outcomes["drawn"] + outcomes["TraceError"] + outcomes.get("TraceTooLargeHere", 0) == 25
    assert min(outcomes["drawn"], outcomes["TraceError"]) > 3


@pytest.mark.slow
def test_a_thousand_damaged_checkpoints(tmp_path: Path) -> None:
    outcomes = in_a_process("checkpoints", tmp_path, 1000, 1)
    assert outcomes["usable"] + outcomes["listed with its reason"] == 1000
    assert min(outcomes["usable"], outcomes["listed with its reason"]) > 200


@pytest.mark.slow
def test_five_thousand_hostile_traces(tmp_path: Path) -> None:
    outcomes = in_a_process("traces", tmp_path, 5000, 1)
    assert outcomes["drawn"] + outcomes["TraceError"] + outcomes["TraceTooLargeHere"] == 5000
    assert min(outcomes["drawn"], outcomes["TraceError"]) > 1000
    assert outcomes["TraceTooLargeHere"] > 200


if __name__ == "__main__":
    main(*sys.argv[1:])
