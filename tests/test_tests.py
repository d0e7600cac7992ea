"""Tests of a group share a process."""

import pytest


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
