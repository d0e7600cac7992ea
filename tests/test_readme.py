"""What README, CONTRIBUTING and docs/ tell people to type works as written, on the shipped checkpoints."""

import ast
import io
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

import transformer_viz as tv
from transformer_viz import commands
from transformer_viz.export import moving
from transformer_viz.figures import files

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
_READ = ("README.md", "CONTRIBUTING.md", "docs/command-line.md")
README, CONTRIBUTING, COMMAND_LINE = ((ROOT / name).read_text(encoding="utf-8") for name in _READ)
LINES = re.findall(r"^python -m transformer_viz (.+)$", COMMAND_LINE, flags=re.MULTILINE)
# What would take minutes, or not end, is asked for a little less.
LESS = {
    "check-masks": ["--replacements", "1"],
    "evaluate": ["--samples", "128"],
    "survey": ["--held-out", "128", "--verdict-texts", "0", "--workers", "1"],
    "verdict": ["--samples", "2"],
    "train": ["--steps", "2", "--samples", "128", "-o", "trained-here"],
}


EXAMPLES = {
    "README.md": 4,
    "docs/arrays.md": 18,
    "docs/attribution.md": 12,
    "docs/export.md": 0,
    "docs/grading.md": 9,
    "docs/guide.md": 5,
    "docs/masks.md": 4,
    "docs/memory.md": 4,
    "docs/port-masks.md": 4,
    "docs/survey.md": 5,
    "docs/tutorial.md": 3,
    "docs/readme.zh.md": 0,
    "docs/tutorial.zh.md": 3,
}
"""Pages with Python, and how many of their lines have their value as comment."""
PRINTED = {"docs/arrays.md": ["Different: "], "docs/masks.md": ["Leaking"]}


def _a_reader_has() -> dict[str, Any]:
    """A module of one's own: the first one of docs/own-model.md."""
    (block, *_) = re.findall(
        r"```python\n(.+?)```", (ROOT / "docs" / "own-model.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block.partition("\ndef make()")[0], names)
    return {"my_module": names["Small"](), "my_words": ["<pad>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("document", EXAMPLES)
def test_the_python_examples_run_and_say_what_their_comments_say(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if document == "docs/port-masks.md":
        pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tv, "check_masks", partial(tv.check_masks, replacements=1))
    monkeypatch.setattr(go.Figure, "show", lambda self, **_: None)
    monkeypatch.setattr(files, "picture_of", lambda *_: b"picture")  # it would start a browser
    n_checked = 0
    for block in re.findall(r"```python\n(.+?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL):
        names: dict[str, Any] = _a_reader_has() if "my_module" in block else {}
        for node in ast.parse(block).body:
            code = str(ast.get_source_segment(block, node))
            comment = block.splitlines()[(node.end_lineno or 0) - 1].partition("  # ")[2]
            value = re.match(r"('[^']*'|True|False|\d[\d.]*|[\[(].*?[\])])(?=$|:)", comment)
            if isinstance(node, ast.Expr) and value:
                assert eval(code, names) == ast.literal_eval(value[1]), code
                n_checked += 1
            else:
                exec(compile(code, document, "exec"), names)
    assert n_checked == EXAMPLES[document]
    printed = capsys.readouterr().out
    assert all(words in printed for words in PRINTED.get(document, []))


def test_the_page_on_the_command_line_has_no_command_that_is_not_there() -> None:
    """A new one describes itself in `--help`."""
    found = set(re.findall(r"^\| `([a-z-]+)` \|", COMMAND_LINE, flags=re.MULTILINE))
    assert {"app", "decode", "train"} < found <= set(commands.names())


@pytest.mark.parametrize(
    "line",
    # `docs/masks.md` checks masks from Python.
    [
        pytest.param(line, marks=pytest.mark.slow if line.startswith("check-masks") else [])
        for line in LINES
        if not line.startswith("app")
    ],
)
def test_each_command_line_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    assert commands.main([*words, *LESS.get(words[0], [])]) == 0


@pytest.mark.parametrize(
    ("document", "n"),
    [("README.md", 2), ("docs/attribution.md", 1), ("docs/arrays.md", 2), ("docs/survey.md", 2), ("docs/export.md", 5)],
)
def test_the_commands_of_a_document_run_one_after_the_other(
    document: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs other models or machines is left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "picture_of", lambda *_: b"picture")
    monkeypatch.setattr(moving, "gif", lambda *_, **__: b"GIF89a")
    Path("texts.txt").write_text("hello\nreversethis\n", encoding="utf-8")
    tv.save_trace(tv.decode(tv.load_checkpoint("reverse", "cpu"), "hella"), "after.npz")
    found = re.findall(r"^python -m transformer_viz (.+)$", (ROOT / document).read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in found if not any(f"--{other}" in line for other in ("model", "ray"))]
    assert len(lines) == n
    for line in lines:
        command, _, file = line.partition(" < ")
        words = shlex.split(command, comments=True)
        if file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(file).read_bytes())))
        less = [word for word in LESS.get(words[0], []) if not file or word not in ("--held-out", "128")]
        assert commands.main([*words, *less]) == (1 if words[0] == "diff" else 0), line


def test_the_make_targets_exist_and_are_all_told() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = re.findall(r"(?:^|`)make ([a-z-]+)", f"{README}\n{CONTRIBUTING}", flags=re.MULTILINE)
    assert set(told) == set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE))


def test_the_tests_elsewhere_install_nothing_that_the_readme_does_not_ask_for() -> None:
    installed = re.findall(r"missing\+=\(([^)]+)\)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    for text in (README, CONTRIBUTING):
        asked_for = " ".join(re.findall(r"`apt install ([^`]+)`", text)).split()
        assert sorted(installed) == sorted(asked_for)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_place_that_is_linked_is_there(document: Path) -> None:
    for link, place in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text(encoding="utf-8")):
        target = document.parent / link if link else document
        assert target.exists(), link
        if place:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert place in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, place
