"""Ratios point the right way, verdicts are those of the limits, and what is missing is said instead of failing."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from benchmarks import __main__ as command
from benchmarks import table
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns


def line(mine: float, theirs: float, better: Literal["less", "more"]) -> Line:
    return Line("what", Number("ours", mine), Number("theirs", theirs), "unit", 3, better)


def test_a_ratio_above_one_says_that_ours_is_better() -> None:
    assert (line(20, 50, "less").ratio, line(50, 20, "more").ratio, line(50, 20, "less").ratio) == (2.5, 2.5, 0.4)


def test_works_are_done_in_turns_after_one_warm_up_each_and_three_times_at_least() -> None:
    done: list[str] = []
    taken = in_turns({name: lambda name=name: done.append(name) for name in "ab"}, budget=0)
    assert "".join(done) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(each) for name, each in taken.items()} == {"a": 3, "b": 3}
    assert len(in_turns({"a": lambda: None}, budget=60, most=5)["a"]) == 5


@pytest.fixture
def made_group(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A group of measurements that takes no time."""

    def measure(report: Report) -> None:
        report.add(line(20, 50, "less"))
        report.values["held"], report.values["missed"] = 20.0, 90.0
        raise Skipped("no Chromium on this machine")

    targets = {name: Target(name, "at most", 50, "ms") for name in ("held", "missed", "never")}
    group = SimpleNamespace(TITLE="made up", TARGETS=targets, measure=measure)
    monkeypatch.setitem(sys.modules, "benchmarks.made", group)
    monkeypatch.setattr(command, "GROUPS", ("made",))
    return group


def test_the_command_writes_json_and_ends_with_a_verdict_on_every_target(
    made_group: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deep" / "bench.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "made", "-o", str(file)])
    assert command.main() == 0
    *_, held, missed, never = capsys.readouterr().out.strip().splitlines()
    assert held.startswith("held") and "20 ms" in held and "0.40 of it" in held
    assert missed.startswith("NOT HELD") and "90 ms" in missed and "1.80 of it" in missed
    assert never.startswith("not measured")
    data = json.loads(file.read_text(encoding="utf-8"))
    assert data["machine"]["torch"] and data["machine"]["Python"]
    (group,) = data["groups"]
    assert group["lines"][0]["ratio"] == 2.5
    assert [target["held"] for target in group["targets"]] == [True, False, None]
    assert group["remarks"] == ["skipped: no Chromium on this machine"]
    assert "| what | 20 unit | theirs | 50 unit | 2.50× | 3 |" in table.markdown(data)


def test_an_unknown_group_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "nope"])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "'nope'" in said and "decoding" in said
