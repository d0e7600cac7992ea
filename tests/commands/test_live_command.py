"""`live`: one file with a model in it; what cannot be is one line and no file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_viz.figures import files


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "plotly_js", lambda: "window.Plotly = undefined")
    return tmp_path


def test_a_page_with_the_model(folder: Path, cli: Callable[..., Any]) -> None:
    done = cli("live", "--checkpoint", "reverse-leak", "-o", "page.html", "--source", "abc", "--precision", "float32")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"page.html: [\d.]+ (kB|MB)\n", done.out)
    (text,) = re.findall(r'id="data">(.*?)</script>', (folder / "page.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    page = json.loads(text)["live"]
    assert page["source"] == page["examples"][0] == "abc"
    assert page["model"]["config"]["d_model"] == 64
    assert {dtype for _, dtype, _ in page["model"]["weights"]["tensors"]} == {"f4"}


def test_plotly_beside_the_page(folder: Path, cli: Callable[..., Any]) -> None:
    assert cli("live", "--checkpoint", "reverse-leak", "-o", "page.html", "--without-plotlyjs").code == 0
    assert {path.name for path in folder.iterdir()} == {"page.html", "plotly.min.js"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "page.pdf"], "page.pdf does not end in .html"),
        (["-o", "page.html", "--checkpoint", "nothing"], "There is no checkpoint 'nothing'"),
        (["-o", "page.html", "--checkpoint", "reverse-leak", "--source", "ß"], "which this model does not know"),
        (["-o", "page.html", "--precision", "float16"], "invalid choice: 'float16'"),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, cli: Callable[..., Any], arguments: list[str], words: str) -> None:
    done = cli("live", *arguments)
    assert done.code == 2
    assert words in done.err
    assert not list(folder.iterdir())
