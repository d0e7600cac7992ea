"""A module of the owner's own file on the pages: it is a model like any other, and an error in it is shown."""

from pathlib import Path

import pytest

import tests.published as published
from tests.views.drawn import said, titles
from tests.views.test_search_view import tab
from transformer_viz import app_folders
from transformer_viz.views.cache import model_list

NAMED = Path(published.__file__)


@pytest.fixture
def named(monkeypatch, tmp_path):
    """The app was started with two files: one that works, and one that fails."""
    broken = tmp_path / "broken.py"
    broken.write_text("def make():\n    return 1 / 0\n", encoding="utf-8")
    monkeypatch.setenv(app_folders.MODULES_VARIABLE, f"{NAMED}:make_post_norm\n{broken}:make")
    model_list.refused.clear()


@pytest.mark.usefixtures("named")
def test_explore_shows_it(start):
    at = start(checkpoint="published", text="hello")
    assert not at.error, said(at)
    assert at.selectbox(key="checkpoint").value == "published"
    for title in titles(at):
        at = tab(at, title)
        assert not at.error, (title, [error.value for error in at.error])


@pytest.mark.usefixtures("named")
def test_an_error_of_the_owners_code_is_shown_with_its_line(start):
    at = start(checkpoint="broken")
    words = said(at) + " ".join(error.value for error in at.error)
    assert "ZeroDivisionError" in words and "broken.py, line 2: return 1 / 0" in words
