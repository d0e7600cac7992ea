"""`render`: a saved trace becomes a page, a picture or a table; what cannot be is one line and no file."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.figures.conftest import build
from transformer_viz import save_trace
from transformer_viz.figures import files
from transformer_viz.figures.theme import escape
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace

PLOTLY = "window.Plotly = undefined"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """`run.npz` in an otherwise empty folder; plotly.js is a word, so that pages are small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "plotly_js", lambda: PLOTLY)
    trace = build()
    save_trace(trace, "run.npz")
    return trace


def opened(path: str) -> dict[str, Any]:
    (text,) = re.findall(r'id="data">(.*?)</script>', Path(path).read_text(encoding="utf-8"), flags=re.DOTALL)
    return json.loads(text)


def test_a_page_of_the_whole_run(run: Trace, cli: Callable[..., Any]) -> None:
    done = cli("render", "run.npz", "-o", "run.html", "--kind", "decoder", "--layer", "3", "--head", "5", "--step", "7")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"run\.html: [\d.]+ kB\n", done.out)
    page = opened("run.html")
    assert page["focus"] == {"kind": "decoder", "layer": 2, "head": 4, "step": 6}, "people count from 1, files from 0"
    assert page["theme"] == "auto"
    assert PLOTLY in Path("run.html").read_text(encoding="utf-8")


def test_without_plotlyjs_it_stands_beside_the_page(run: Trace, cli: Callable[..., Any]) -> None:
    done = cli("render", "run.npz", "-o", "run.html", "--without-plotlyjs")
    assert done.code == 0
    assert Path("plotly.min.js").read_text(encoding="utf-8") == PLOTLY
    assert PLOTLY not in Path("run.html").read_text(encoding="utf-8")
    Path("plotly.min.js").write_text("mine", encoding="utf-8")
    assert cli("render", "run.npz", "-o", "two.html", "--without-plotlyjs").out.count("\n") == 1
    assert Path("plotly.min.js").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("what", ["attention", "mosaic", "masks"])
def test_one_figure_as_a_page(run: Trace, cli: Callable[..., Any], what: str) -> None:
    assert cli("render", "run.npz", "-o", "one.html", "--what", what, "--kind", "encoder").code == 0
    assert opened("one.html")["figure"]["data"]


def test_the_table_is_every_weight(run: Trace, cli: Callable[..., Any]) -> None:
    assert cli("render", "run.npz", "-o", "run.csv").code == 0
    with Path("run.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_array_equal(np.array([row["weight"] for row in rows], np.float32), run.to_frame().weight)


def test_a_picture_is_asked_for_with_its_size(run: Trace, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(files, "picture_of", lambda figure, *size: asked.append((figure, *size)) or b"picture")
    command = ["render", "run.npz", "-o", "RUN.PNG", "--what", "attention", "--layer", "2", "--width", "300", "--scale", "1.5"]
    assert cli(*command).code == 0
    assert Path("RUN.PNG").read_bytes() == b"picture"
    ((figure, format, width, height, scale),) = asked
    read = escape(display_token(run.source))
    assert figure.layout.title.text == f"{read} · cross-attention, layer 2 head 1"
    assert (format, width, height, scale) == ("png", 300, figure.layout.height, 1.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-o run.gif", "run.gif does not end in .html"),
        ("-o run.npz --force", "does not end in"),
        ("-o no/run.html", "There is no folder no"),
        ("-o taken.html", "exists already"),
        ("-o run.csv --kind cross", "--kind cannot be used with .csv"),
        ("-o run.parquet --hide-answer", "--hide-answer cannot be used with .parquet"),
        ("-o run.html --width 300", "--width cannot be used with .html"),
        ("-o run.svg --without-plotlyjs", "--without-plotlyjs cannot be used with .svg"),
        ("-o run.html --layer 4", "--layer 4 is not possible; this run's cross attention has 1 to 3"),
        ("-o run.html --kind encoder --layer 3", "encoder attention has 1 to 2"),
        ("-o run.html --head 6", "1 to 5, mean or max"),
        ("-o run.html --step 8", "1 to 7"),
        ("-o run.html --layer 0", "from 1"),
        ("-o run.html --head min", "from 1"),
        ("-o run.html --kind sideways", "encoder"),
        ("-o run.html --what tree", "player, attention, mosaic, masks, search"),
        ("-o run.html --what search", "no beam search"),
        ("-o run.html --plotlyjs javascript:x", "plotlyjs='javascript:x'"),
        ("-o run.html --plotlyjs cdn --without-plotlyjs", "not allowed with"),
        ("-o run.png --scale 0", "above 0"),
    ],
)
def test_what_cannot_be_is_one_line_and_no_file(run: Trace, mistake: Callable[..., str], arguments: str, words: str) -> None:
    Path("taken.html").write_text("mine", encoding="utf-8")
    before = sorted(path.name for path in Path.cwd().iterdir())
    assert words in mistake("render", "run.npz", *arguments.split())
    assert sorted(path.name for path in Path.cwd().iterdir()) == before
    assert Path("taken.html").read_text(encoding="utf-8") == "mine"


def test_a_missing_browser_is_the_users_to_install(
    run: Trace, mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    line = mistake("render", "run.npz", "-o", "run.pdf")
    assert "pip install kaleido" in line
    assert "HTML" in line
    assert not Path("run.pdf").exists()
