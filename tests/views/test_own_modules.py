"""A module of the owner's own file on the pages: it is a model like any other, and an error in it is shown."""

from pathlib import Path

import numpy as np
import pytest

import tests.published as published
from tests.views import test_masks_view as masks_view
from tests.views.drawn import said, titles
from tests.views.test_compare_view import same
from tests.views.test_search_view import tab
from transformer_viz import app_folders, check_masks, compare, decode
from transformer_viz.readers.modules import files
from transformer_viz.views.cache import model_list

NAMED = Path(published.__file__)
SMALL = """
import torch, transformer_viz as tv
import torch.nn.functional as F

letters = ["<end>", *"abcdefghijklmnopqrstuvwxyz"]

class GPT(torch.nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.tok, self.pos = torch.nn.Embedding(27, c), torch.nn.Parameter(torch.randn(20, c))
        self.wq, self.wk, self.wv, self.head = (torch.nn.Linear(c, n) for n in (c, c, c, 27))

    def forward(self, idx, targets=None):
        T = idx.shape[1]
        x = self.tok(idx) + self.pos[:T]
        att = torch.einsum("bqc,bkc->bqk", self.wq(x), self.wk(x))
        att = att.masked_fill(torch.tril(torch.ones(T, T)) == 0, float("-inf"))
        return self.head(x + F.softmax(att, -1) @ self.wv(x)), None

def make():
    torch.manual_seed(0)
    return tv.wrap(GPT(), letters, end="<end>", longest=12)
"""
"""What somebody writes after a course, in one file."""


@pytest.fixture
def named(monkeypatch, tmp_path):
    """The app was started with files: two that work, one that fails and one that fails at z. Returns the second."""
    broken, small, moody = (tmp_path / f"{name}.py" for name in ("broken", "small", "moody"))
    broken.write_text("def make():\n    return 1 / 0\n", encoding="utf-8")
    small.write_text(SMALL, encoding="utf-8")
    first = "        T = idx.shape[1]\n"
    moody.write_text(SMALL.replace(first, f'        if 26 in idx:\n            raise KeyError("z")\n{first}'), encoding="utf-8")
    named = f"{NAMED}:make_post_norm", *(f"{file}:make" for file in (small, broken, moody))
    monkeypatch.setenv(app_folders.MODULES_VARIABLE, "\n".join(named))
    model_list.refused.clear()
    return files.ModuleFile.of(f"{small}:make")


@pytest.mark.usefixtures("named")
def test_explore_shows_it(start):
    at = start(checkpoint="published", text="hello")
    assert not at.error, said(at)
    assert at.selectbox(key="checkpoint").value == "published"
    for title in titles(at):
        at = tab(at, title)
        assert not at.error, (title, [error.value for error in at.error])


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("page", ["", "masks", "compare"])
def test_a_page_opens_with_a_text_that_its_vocabulary_has(start, page):
    """Not with a sentence in English, whose capital it does not know."""
    at = start(page, checkpoint="small", **({"b_checkpoint": "small"} if page == "compare" else {}))
    assert not at.error, [error.value for error in at.error]
    assert "abcde" in str(at.session_state)


@pytest.mark.usefixtures("named")
def test_an_error_of_the_owners_code_is_shown_with_its_line(start):
    at = start(checkpoint="broken")
    words = said(at) + " ".join(error.value for error in at.error)
    assert "ZeroDivisionError" in words and "broken.py, line 2: return 1 / 0" in words


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("name", masks_view.TABS)
@pytest.mark.parametrize("checkpoint", ["published", "small"])
def test_every_tab_of_masks_opens(start, checkpoint, name):
    at = start("masks", checkpoint=checkpoint, sources="hello\ncab", masks_tab=name)
    assert not at.error and not at.warning, said(at)


def test_masks_are_those_of_the_module(start, named):
    texts = ["hello", "cab"]
    at = start("masks", checkpoint="small", sources="\n".join(texts))
    model = files.load(named)
    n = decode(model, texts[0]).n_steps
    assert f"decoder: causal<br>{n * (n - 1) // 2} of {n * n} cells" in masks_view.titles(at)
    at = start("masks", checkpoint="small", sources="\n".join(texts), masks_tab="Certificate")
    at.toggle(key="certificate").set_value(True).run()
    assert check_masks(model, texts=texts).headline in said(at)


def test_compare_lays_it_upon_its_edit_and_says_where_tokens_are_others(start, named):
    edit, both = "decoder.1.1:3=1", {"checkpoint": "small", "text": "hello", "b_text": "hello", "kind": "decoder"}
    at = start("compare", **both, b_checkpoint="small", b_edits=edit)
    model = files.load(named)
    there = compare(decode(model, "hello"), decode(model, "hello", edits=[edit])).difference("decoder.1.1")
    same(at, there)
    assert np.nanmax(np.abs(there)) > 0.01
    assert "different tokens" not in said(at)
    at = start("compare", **both, b_checkpoint="published")
    assert not at.error, said(at)
    assert "split the same text into different tokens" in said(at)


@pytest.mark.usefixtures("named")
def test_an_error_within_a_pass_is_shown_and_the_next_text_is_read(start):
    at = start(checkpoint="moody", text="zebra")
    words = said(at) + " ".join(error.value for error in at.error)
    assert "GPT failed: KeyError: 'z' (moody.py, line 15: raise KeyError(\"z\"))" in words
    assert "call=" not in words
    at = start(checkpoint="moody", text="hello")
    assert not at.error, said(at)
