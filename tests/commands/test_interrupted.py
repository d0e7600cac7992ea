"""Ctrl-C and its like at every moment of a start: quiet, and the exit code is 128 + the signal's number.

The program starts once. At what it imports it is copied (fork), and the copy is interrupted, so that each moment is the same in
every run; the original goes on to the next.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are copied there")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, os, runpy, signal, sys
how, every, said, *sys.argv[1:] = sys.argv[1:]
number, mine = getattr(signal, how), os.getpid()
names, wrong = [], []

def tell():
    print(json.dumps({"names": names, "wrong": wrong}), file=sys.stderr, flush=True)

class Moments:
    def find_spec(self, name, path=None, target=None):
        if name in ("transformer_viz", "transformer_viz.__main__"):
            return None  # nothing of ours runs yet
        names.append(name)
        if os.getpid() != mine:
            return None
        if not name.startswith("transformer_viz") and len(names) % int(every):
            return None
        child = os.fork()
        if child == 0:
            to = os.open(said, os.O_WRONLY | os.O_APPEND)
            os.dup2(to, 1), os.dup2(to, 2)
            os.kill(os.getpid(), number)
            os._exit(99)  # it was not heard
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != 128 + number:
            wrong.append((name, code))
        return None

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started to ignore it
sys.path.insert(0, os.getcwd())
sys.meta_path.insert(0, Moments())
try:
    runpy.run_module("transformer_viz", run_name="__main__", alter_sys=True)
finally:
    if os.getpid() == mine:
        tell()
"""


def interrupted(said: Path, how: str, every: int, *arguments: str) -> set[str]:
    """What was imported, the interrupted moments among it: each thing of ours, and every `every`th of all."""
    said.touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, str(every), str(said), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["wrong"] == []
    assert said.read_text() == ""
    return set(told["names"])


@pytest.mark.slow
def test_a_start_is_interrupted_at_every_import(tmp_path):
    """torch and numpy swallow an exception at many of these moments."""
    met = interrupted(tmp_path / "said", "SIGINT", 40, "decode", "ab")
    assert {"torch", "numpy", "argparse", "transformer_viz.commands.train", "transformer_viz.decoding.greedy"} <= met
