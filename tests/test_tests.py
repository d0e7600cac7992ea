"""What no test does, wait for a time or replace a private name; and that tests of a group share a process."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
MAY_WAIT, MAY_REPLACE = TESTS / "until.py", TESTS / "inside.py"
WAITS = {"sleep", "wait_for_timeout"}
REPLACES = {"setattr", "object"}
"""`setattr(of, "_name", …)`, `monkeypatch.setattr` and `mock.patch.object`."""

PRIVATE = re.compile(r"(^|\.)_\w*(?<!__)$")
"""`__init__` and its like are Python's, and public."""


def wrong(source: str, *, may_wait: bool = False, may_replace: bool = False) -> Iterator[str]:
    """What a file of tests does that none should. `sleep(0)`, which lets others run, waits for nothing."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        if name in WAITS and given != [0] and not may_wait:
            yield f"line {call.lineno}: waits for a time; use tests.until.until, an Event, or Playwright's expect"
        private = [word for word in given if isinstance(word, str) and PRIVATE.search(word)]
        if name in REPLACES and private and not may_replace:
            yield f"line {call.lineno}: replaces {private[0]}; use what is public, or say why not in tests/inside.py"


@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(8))
def test_a_group_of_tests_is_in_one_process(
    number: int, worker_id: str, testrun_uid: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Guards groups that nobody hears of: each process would start the servers and build the package for itself."""
    said = tmp_path_factory.getbasetemp().parent / f"together-{testrun_uid}"
    with said.open("a", encoding="utf-8") as file:
        file.write(f"{worker_id}\n")
    assert set(said.read_text(encoding="utf-8").split()) == {worker_id}


def test_no_test_waits_for_a_time_or_replaces_a_private_name() -> None:
    found = [
        f"{file.relative_to(TESTS)} {what}"
        for file in sorted(TESTS.rglob("*.py"))
        for what in wrong(file.read_text(encoding="utf-8"), may_wait=file == MAY_WAIT, may_replace=file == MAY_REPLACE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("time.sleep(0.1)", 1),
        ("sleep(seconds)", 1),
        ("await asyncio.sleep(0)", 0),
        ("page.wait_for_timeout(20)", 1),
        ("page.wait_for_function('done')", 0),
        ("monkeypatch.setattr(jobs, '_launch', print)", 1),
        ("monkeypatch.setattr('jobs._launch', print)", 1),
        ("with patch.object(jobs, '_launch'): pass", 1),
        ("monkeypatch.setattr(jobs, 'SAMPLES', 100)", 0),
        ("patch.setattr(Figure, '__init__', checked)", 0),
    ],
)
def test_the_rule_itself(source: str, count: int) -> None:
    assert len(list(wrong(source))) == count
