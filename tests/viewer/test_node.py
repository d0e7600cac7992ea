"""Runs the tests in `*.test.js` beside this file by Node.js, one test here for each file."""

import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from tests.node import check, node
from transformer_viz.live.assets import engine_script
from transformer_viz.viewer import modules

pytestmark = needs("playwright", "libatomic1")
FOLDER = Path(__file__).parent


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.test.js")), ids=lambda file: file.name)
def test_by_node(file: Path) -> None:
    program = node()
    assert program is not None
    done = subprocess.run([program, "--test", "--test-reporter=spec", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout and "tests 0" not in done.stdout


@pytest.mark.parametrize(
    "name", ["app.js", "page.js", "live.js", "widget.js", "worker.js", "figure.js", "survey.js", "player.js", "chart.js"]
)
def test_scripts_made_of_modules_can_be_read(tmp_path: Path, name: str) -> None:
    """Node finds what no pattern does: two things of one name, and what strict mode forbids."""
    export = modules.FOLDER.parent / "export" / "page"
    made = {
        "worker.js": lambda: engine_script("worker.js"),
        "figure.js": lambda: modules.one_script(export / "figure.js"),
        "survey.js": lambda: modules.one_script(export / "survey.js"),
        "player.js": lambda: modules.script("player.js", "pointing.js"),
        "chart.js": lambda: modules.script("cells.js", "charts.js", "presses.js", "table.js", "unfolded.js"),
    }
    file = tmp_path / name
    file.write_text('"use strict";\n' + made.get(name, lambda: modules.script(name))(), encoding="utf-8")
    assert check(file) == 0


def test_a_script_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    file = tmp_path / "broken.js"
    file.write_text("const one = 1;\nconst one = 2;\n", encoding="utf-8")
    assert check(file) != 0
