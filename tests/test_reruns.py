"""The summary of the tests names what was run a second time, and says how it failed first."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.flaky(reruns=1)
def test_second_time_lucky():
    been = Path(__file__).with_suffix(".been")
    assert been.exists() or been.touch(), "the press was forgotten"
    assert been.exists()
"""


def test_the_summary_names_what_was_run_again_and_how_it_failed(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY, encoding="utf-8")
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-n", "2"]
    ran = subprocess.run([sys.executable, "-m", "pytest", *options, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    summary = ran.stdout.partition("rerun test summary info")[2]
    assert "RERUN test_flaky.py::test_second_time_lucky" in summary and "the press was forgotten" in summary
