"""Folders of models that somebody has spoiled, on the pages: a sentence, and other visitors' models as ever."""

import os
import shutil

import pytest

from tests.needs import needs
from tests.readers.hostile_folders import change
from tests.tiny_models import GPT2
from tests.views.drawn import said
from tests.views.viewer import has_viewer
from transformer_viz.views.cache import model_list

pytestmark = needs("transformers")
SPOILED = {
    "layers": (GPT2, "config.json", {"n_layer": 10**9}, "config.json sets 'n_layer' to 1,000,000,000"),
    "penalty": (GPT2, "generation_config.json", {"repetition_penalty": 0}, "repetition_penalty=0, which should be a number"),
}
"""A file of each model, what it is made to say, and what the page says of it; tests/readers has all ways."""


@pytest.mark.parametrize("name", SPOILED)
def test_it_is_said_and_another_visitor_sees_another_model(start, models, tmp_path, monkeypatch, name):
    of, file, values, words = SPOILED[name]
    shutil.copytree(models / of, tmp_path / "spoiled" / name)
    change(tmp_path / "spoiled" / name, file, lambda found: found.update(values))
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", os.pathsep.join([str(models), str(tmp_path / "spoiled")]))
    model_list.refused.clear()
    assert words in said(start(checkpoint=name, text="the house"))
    other = start(checkpoint=GPT2, text="The house")
    assert not other.error and has_viewer(other)
