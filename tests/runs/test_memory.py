"""Memory of a server's process, measured from outside: flat over a thousand runs, and in one large run what was predicted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLAT = 12_000_000
"""Bytes that a process may grow by over a thousand runs. All their Traces together would be four times that."""
SLACK = 16_000_000
"""What the memory allocator keeps for later."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux only")


def measured(*arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("memory_program.py")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_thousand_decodes_leave_memory_flat():
    """Guards against whatever a run might leave behind: on a module, in a cache, in a list of some registry."""
    assert measured("thousand")["grown"] < FLAT


def test_a_thousand_runs_of_the_app_leave_memory_flat():
    """Through what the pages call. The store is filled, lets go, and is never larger than it may be."""
    done = measured("app")
    assert done["grown"] < FLAT
    assert 1_000_000 < done["held"] <= 2_000_000
    assert done["things"] < 300


@pytest.mark.parametrize("name", ["greedy", "half", "cross", "scores", "recomputed", "beam", "batch"])
def test_a_large_run_takes_no_more_than_predicted(name):
    """The most that the process took, against the prediction; which is not three times too high either."""
    done = measured("peak", name)
    assert done["nbytes"] <= done["arrays"]
    assert done["grown"] <= done["predicted"] + SLACK
    assert done["predicted"] <= 3 * done["grown"]
