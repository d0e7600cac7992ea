"""Locks: one holder at a time, let go of when a process ends, and no stale name that two could hold at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from transformer_viz import locks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no flock there")
ROOT = Path(__file__).resolve().parents[1]


def test_one_holds_it_and_others_are_refused(tmp_path):
    path = tmp_path / "lock"
    assert not locks.is_locked(path)
    with locks.hold_lock(path):
        assert locks.is_locked(path)
        with pytest.raises(locks.LockHeld), locks.hold_lock(path):
            pytest.fail("two hold it")
    assert not locks.is_locked(path)
    with locks.hold_lock(path):
        assert locks.is_locked(path)


def test_a_killed_process_lets_go(tmp_path):
    program = (
        "import sys; from pathlib import Path; from transformer_viz.locks import hold_lock\n"
        "with hold_lock(Path(sys.argv[1])):\n  print('held', flush=True); sys.stdin.read()\n"
    )
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert locks.is_locked(path)
        process.kill()
        process.wait()
    with locks.hold_lock(path):
        pass


def test_a_file_that_its_holder_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    """Somebody opened it before, and gets the lock of a file without a name: a third one would hold the new file."""
    path = tmp_path / "lock"
    fcntl = pytest.importorskip("fcntl")
    real, asked = fcntl.flock, []

    def flock_late(file, how):
        if not asked:  # between the opening and the locking the holder comes to its end
            path.unlink()
        asked.append(file)
        return real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock_late)
    with locks.hold_lock(path):
        assert len(asked) == 2
        assert locks.is_locked(path)
