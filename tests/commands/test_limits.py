"""The command line has the page's limits on what it reads and draws, and a flag that lifts them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.export.test_long_tokens import N, run
from transformer_viz import Trace, save_trace
from transformer_viz.export import saving
from transformer_viz.trace import limits


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`endless.npz`: a sound file of a few kilobytes, of a run that is too large."""
    monkeypatch.chdir(tmp_path)
    save_trace(run(20_000), "endless.npz")


@pytest.mark.parametrize("command", ["render endless.npz -o a.csv", "diff endless.npz endless.npz"])
def test_the_pages_limits_hold_and_can_be_lifted(
    endless: None, command: str, cli: Callable[..., Any], mistake: Callable[..., str]
) -> None:
    line = mistake(*command.split())
    assert "endless.npz is a trace, but too large to draw here: 100,000 letters in its tokens; at most 16,000" in line
    assert line.endswith("--no-limits lifts the limits.") and not Path("a.csv").exists()
    assert cli(*command.split(), "--no-limits").code == 0


def test_a_file_with_every_weight_has_a_limit_of_its_own(
    endless: None, cli: Callable[..., Any], mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_trace(run(3), "run.npz")
    for format, limit in (("html", "MOST_IN_PAGE"), ("csv", "MOST_WEIGHTS")):
        monkeypatch.setattr(limits, limit, 3 * 2 * 3 * N * N - 1)
        line = mistake("render", "run.npz", "-o", f"a.{format}")
        assert "run.npz is too large to make into one file: 450 weights; at most 449 are possible" in line
    assert cli("render", "run.npz", "-o", "a.csv", "--no-limits").code == 0
    assert cli("render", "run.npz", "-o", "one.html", "--what", "mosaic").code == 0, "a figure is of one kind"


def test_a_table_repeats_each_token(endless: None, mistake: Callable[..., str]) -> None:
    """The letters are counted as the table has them."""
    trace = run(3, source="s")
    frame = trace.to_frame()
    in_table = int(frame.query_token.str.len().sum() + frame.key_token.str.len().sum())
    assert limits._in_table(trace) == in_table < len(saving.render_bytes(trace, "csv"))
    weights = np.full((30, 30, 1, 400), 1 / 400)
    save_trace(Trace.from_arrays(cross=weights, source_tokens=["s"] * 400, target_tokens=["t" * 600]), "wide.npz")
    assert "216,360,000 letters of tokens in a table; at most 200,000,000" in mistake("render", "wide.npz", "-o", "a.csv")
