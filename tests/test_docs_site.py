"""The documentation site builds without a warning, from files alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from transformer_viz import commands

ROOT = Path(__file__).resolve().parents[1]
pytestmark = needs("mkdocs", "mkdocstrings")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_each_document_is_a_page(site: Path) -> None:
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} < {page.stem for page in site.glob("*.html")}


def test_nothing_is_loaded_from_another_server_or_from_the_root_of_this_one(site: Path) -> None:
    for page in set(site.glob("*.html")) - {site / "404.html"}:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="([^"]+)"|<link[^>]+href="([^"]+)"', text)
        assert loaded
        assert not [link for pair in loaded for link in pair if re.match(r"https?:|/", link)], page.name


def test_the_options_of_every_command_and_the_functions_of_python_are_there(site: Path) -> None:
    text = (site / "command-line.html").read_text(encoding="utf-8")
    assert all(f'<h3 id="{name}' in text for name in commands.names())
    assert "--beam-size" in text
    assert "transformer_viz.tracing.decode.decode" in (site / "python.html").read_text(encoding="utf-8")
