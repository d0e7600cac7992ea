"""The sheet for a class, and the command that checks lessons and writes it."""

import re
from html import unescape
from pathlib import Path

import pytest

from tests.learn.test_lesson import ASK, FRONT, step, written
from tests.needs import needs
from transformer_viz.commands import main
from transformer_viz.errors import LessonError
from transformer_viz.learn.sheet import PARTS, sheet_html


@pytest.fixture(scope="module")
def page() -> str:
    return sheet_html(5)


def test_a_sheet_has_eight_questions_before_and_eight_after_and_the_key(page: str) -> None:
    assert "学习之前" in sheet_html(0, "zh")
    parts = page.split("<section>")[1:]
    assert len(parts) == len(PARTS) + 1 and [part.count("<article>") for part in parts] == [8, 8, 0]
    before, after, key = map(unescape, parts)
    assert before != after and key.count("<strong>") == 16
    assert "<script" not in page and "http" not in page and "None" not in page


def test_there_are_no_sheets_in_an_unknown_language() -> None:
    with pytest.raises(LessonError, match="choose one of en"):
        sheet_html(0, "../en")


def test_the_command_writes_a_sheet_and_replaces_none(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "class.html"
    assert main(["lesson", "sheet", "-o", str(file), "--seed", "5"]) == 0
    assert file.read_text(encoding="utf-8") == page, "the seed alone decides it"
    assert main(["lesson", "sheet", "-o", str(file)]) == 2
    assert main(["lesson", "sheet", "-o", str(tmp_path / "class.pdf")]) == 2
    assert "ends in .html" in capsys.readouterr().err


def test_the_command_says_of_each_lesson_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    written(good, step(ASK))
    written(bad, step(ASK) + step('point = "moon"\n'), FRONT)
    assert main(["lesson", "check", str(good)]) == 0
    assert capsys.readouterr().out == "good/01-good.md: good, 1 steps, 1 questions\n"
    assert main(["lesson", "check", str(good), str(bad / "01-good.md")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("bad/01-good.md: step 2: point='moon' is not possible")
    assert main(["lesson", "check", str(tmp_path / "nothing.md")]) == 1
    assert "there is no such file" in capsys.readouterr().out
    assert main(["lesson", "check", str(tmp_path)]) == 2, "a folder without lessons"


def test_a_sheet_names_the_page_of_each_lesson_where_the_site_is_known(tmp_path: Path) -> None:
    file = tmp_path / "class.html"
    assert main(["lesson", "sheet", "-o", str(file), "--address", "https://here.example/viz/"]) == 0
    text = file.read_text(encoding="utf-8")
    assert 'href="https://here.example/viz/lesson-map.html"' in text
    assert text.count('href="https://here.example/viz/lesson-') == 8
    assert "lesson-map" not in sheet_html(5)
    assert main(["lesson", "sheet", "-o", str(file), "--force", "--address", "javascript:alert(1)/"]) == 2


@needs("segno")
def test_a_phones_camera_finds_the_address_of_each_lesson_on_paper(tmp_path: Path) -> None:
    """Each code is that of its own lesson, module by module; a sheet beside its lessons has none."""
    import segno

    site = "https://here.example/viz/"
    page = sheet_html(0, "en", site)
    items = [item.split("</li>")[0] for item in page.split("<li><svg")[1:]]
    assert len(items) == 8
    for item in items:
        address = item.split('href="')[1].split('"')[0]
        matrix = segno.make(address, micro=False, error="m").matrix
        assert _dark_modules(item) == {(x + 4, y + 4) for y, row in enumerate(matrix) for x, dark in enumerate(row) if dark}
    assert "<svg" not in sheet_html(0, "en", ""), "a phone reaches no folder"


def _dark_modules(svg: str) -> set[tuple[int, int]]:
    """Column and row of the dark modules of a code, read from the runs of its path."""
    [path] = re.findall(r'stroke="#000" d="([^"]+)"', svg)
    x, y, dark = 0.0, 0.0, set()
    for verb, numbers in re.findall(r"([Mmh])([^Mmh]*)", path):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        match verb:
            case "M":
                x, y = values
            case "m":
                x, y = x + values[0], y + values[1]
            case _:
                dark |= {(round(x) + place, int(y)) for place in range(round(values[0]))}
                x += values[0]
    return dark
