"""What docs/export.md shows does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from transformer_viz import commands
from transformer_viz.export import saving
from transformer_viz.figures import files

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "export.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No browser is started here: pictures have tests of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "picture_of", lambda *_: b"picture")
    return tmp_path


def test_the_python_lines(folder: Path) -> None:
    (block,) = re.findall(r"```python\n(.+?)```", TEXT, flags=re.DOTALL)
    exec(compile(block, "export.md", "exec"), {})
    assert {path.name for path in folder.iterdir()} == {"hello.html", "head.svg"}


def test_the_commands(folder: Path) -> None:
    for line in re.findall(r"^python -m transformer_viz (.+)$", TEXT, flags=re.MULTILINE):
        assert commands.main(shlex.split(line)) == 0
    assert {path.name for path in folder.iterdir()} == {"hello.npz", "hello.html", "head.png"}


def test_the_formats_are_those_of_the_table() -> None:
    assert set(re.findall(r"`\.(\w+)`", TEXT)) == set(saving.FORMATS)
