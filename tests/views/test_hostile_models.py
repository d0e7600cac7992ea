"""Folders of models that somebody has spoiled, on the pages: a sentence, and other visitors' models as ever."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import needs
from tests.readers.hostile_folders import change
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.views.drawn import pictures
from tests.views.test_models_view import words
from transformer_viz.views.cache import model_list

pytestmark = needs("transformers")
Start = Callable[..., AppTest]
BOMB = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 20}
SPOILED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "layers": (GPT2, "config.json", {"n_layer": 10**9}, "config.json sets 'n_layer' to 1,000,000,000"),
    "positions": (MARIAN, "config.json", {"max_position_embeddings": 10**9}, "describes a larger model than the"),
    "normalizer": (
        BERT,
        "tokenizer.json",
        {"normalizer": {"type": "Sequence", "normalizers": [BOMB] * 8}},
        "its rules can make a text 25,600,000,000 times as long",
    ),
    "penalty": (GPT2, "generation_config.json", {"repetition_penalty": 0}, "repetition_penalty=0, which should be a number"),
}


@pytest.fixture
def spoiled(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand in a second folder beside the sound ones."""
    for name, (of, file, values, _) in SPOILED.items():
        shutil.copytree(models / of, tmp_path / "spoiled" / name)
        change(tmp_path / "spoiled" / name, file, lambda found, values=values: found.update(values))
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", os.pathsep.join([str(models), str(tmp_path / "spoiled")]))
    model_list.refused.clear()


@pytest.mark.usefixtures("spoiled")
@pytest.mark.parametrize("name", SPOILED)
def test_it_is_said_and_another_visitor_sees_another_model(start: Start, name: str) -> None:
    mine = start(checkpoint=name, text="the house")
    assert not mine.exception and SPOILED[name][3] in words(mine)
    other = start(checkpoint=GPT2, text="The house")
    assert not other.exception and not other.error and pictures(other)
