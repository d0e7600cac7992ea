"""`render` and `live`: a page, a picture or a table; what cannot be is one line and no file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.figures.conftest import build
from transformer_viz import save_trace
from transformer_viz.export import packed_heads
from transformer_viz.figures import files
from transformer_viz.figures.theme import escape
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import plotly_js

PLOTLY, BESIDE = "window.Plotly = undefined", plotly_js.BUNDLE.name


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, where the command runs; plotly.js is a word, so that pages are small."""
    (plotly := tmp_path_factory.mktemp("plotly") / BESIDE).write_text(PLOTLY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plotly_js, "path", lambda types=(): plotly)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Trace:
    """`run.npz` in it."""
    save_trace(trace := build(), "run.npz")
    return trace


def opened(path: str) -> dict[str, Any]:
    (text,) = re.findall(r'id="data">(.*?)</script>', Path(path).read_text(encoding="utf-8"), flags=re.DOTALL)
    return json.loads(text)


def test_a_page_of_the_whole_run(run: Trace, cli: Callable[..., Any]) -> None:
    done = cli("render", "run.npz", "-o", "run.html", "--head", "decoder.3.5", "--step", "7")
    assert (done.code, done.err) == (0, "") and re.fullmatch(r"run\.html: [\d.]+ kB\n", done.out)
    page = opened("run.html")
    assert page["focus"] == {"kind": "decoder", "layer": 2, "head": 4, "step": 6}, "people count from 1, files from 0"
    assert page["theme"] == "auto" and PLOTLY in Path("run.html").read_text(encoding="utf-8")
    for what in ("attention", "mosaic", "masks"):
        assert cli("render", "run.npz", "-o", f"{what}.html", "--what", what, "--head", "encoder").code == 0
        assert opened(f"{what}.html")["figure"]["data"]


def test_without_plotlyjs_it_stands_beside_the_page(run: Trace, cli: Callable[..., Any]) -> None:
    done = cli("render", "run.npz", "-o", "run.html", "--without-plotlyjs")
    assert done.code == 0
    assert Path(BESIDE).read_text(encoding="utf-8") == PLOTLY
    assert PLOTLY not in Path("run.html").read_text(encoding="utf-8")
    Path(BESIDE).write_text("mine", encoding="utf-8")
    assert cli("render", "run.npz", "-o", "two.html", "--without-plotlyjs").out.count("\n") == 1
    assert Path(BESIDE).read_text(encoding="utf-8") == "mine"


def test_a_picture_is_asked_for_with_its_size(run: Trace, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(files, "picture_of", lambda figure, *size: asked.append((figure, *size)) or b"picture")
    command = [
        "render",
        "run.npz",
        "-o",
        "RUN.PNG",
        "--what",
        "attention",
        "--head",
        "cross.2",
        "--width",
        "300",
        "--scale",
        "1.5",
    ]
    assert cli(*command).code == 0
    assert Path("RUN.PNG").read_bytes() == b"picture"
    ((figure, format, width, height, scale),) = asked
    read = escape(display_token(run.source))
    assert figure.layout.title.text == f"{read} · cross-attention, layer 2 head 1"
    assert (format, width, height, scale) == ("png", 300, figure.layout.height, 1.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-o run.webp", "run.webp does not end in .html"),
        ("-o run.npz --force", "does not end in"),
        ("-o no/run.html", "There is no folder no"),
        ("-o taken.html", "exists already"),
        ("-o run.csv --head cross", "--head cannot be used with .csv"),
        ("-o run.html --width 300", "--width cannot be used with .html"),
        ("-o run.svg --without-plotlyjs", "--without-plotlyjs cannot be used with .svg"),
        ("-o run.html --head cross.4.1", "this run has no head cross.4.1; its cross attention has layers 1 to 3"),
        ("-o run.html --head cross.1.6", "and heads 1 to 5 in each"),
        ("-o run.html --step 8", "1 to 7"),
        ("-o run.html --head cross.1.min", "write it as cross, cross.2, cross.2.4"),
        ("-o run.html --what tree", "player, attention, row, mosaic, masks, search"),
        ("-o run.html --what search", "no beam search"),
        ("-o run.html --plotlyjs javascript:x", "plotlyjs='javascript:x'"),
        ("-o run.html --plotlyjs cdn --without-plotlyjs", "not allowed with"),
    ],
)
def test_what_cannot_be_is_one_line_and_no_file(run: Trace, mistake: Callable[..., str], arguments: str, words: str) -> None:
    Path("taken.html").write_text("mine", encoding="utf-8")
    before = sorted(path.name for path in Path.cwd().iterdir())
    assert words in mistake("render", "run.npz", *arguments.split())
    assert sorted(path.name for path in Path.cwd().iterdir()) == before
    assert Path("taken.html").read_text(encoding="utf-8") == "mine"


def test_the_size_of_a_large_page_is_said_first(run: Trace, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_heads, "EXACT_UP_TO", 100)
    done = cli("render", "run.npz", "-o", "run.html")
    first, second = done.out.splitlines()
    assert re.fullmatch(r"run\.html: the heads, rounded to 16 bits, take about [\d.]+ kB", first)
    assert re.fullmatch(r"run\.html: [\d.]+ kB", second)
    assert "packed" in opened("run.html")["kinds"]["cross"]
    assert cli("render", "run.npz", "-o", "map.html", "--what", "mosaic").out.count("\n") == 1, "a figure has no packed heads"


def test_a_page_with_the_model(folder: Path, cli: Callable[..., Any]) -> None:
    given = ("--source", "abc", "--precision", "float32", "--without-plotlyjs")
    done = cli("live", "--checkpoint", "reverse-leak", "-o", "page.html", *given)
    assert (done.code, done.err) == (0, "") and re.match(r"page.html: [\d.]+ (kB|MB)\n", done.out)
    assert {path.name for path in folder.iterdir()} == {"page.html", BESIDE}
    page = opened("page.html")["live"]
    assert page["source"] == page["examples"][0] == "abc"
    assert page["model"]["config"]["d_model"] == 64
    assert {dtype for _, dtype, _ in page["model"]["weights"]["tensors"]} == {"f4"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "page.pdf"], "page.pdf does not end in .html"),
        (["-o", "page.html", "--checkpoint", "nothing"], "There is no checkpoint 'nothing'"),
        (["-o", "page.html", "--checkpoint", "reverse-leak", "--source", "ß"], "which this model does not know"),
        (["-o", "page.html", "--precision", "float16"], "invalid choice: 'float16'"),
    ],
)
def test_what_cannot_be_live_is_one_line(folder: Path, cli: Callable[..., Any], arguments: list[str], words: str) -> None:
    done = cli("live", *arguments)
    assert done.code == 2
    assert words in done.err
    assert not list(folder.iterdir())
