"""A tiny checkpoint that workers find by its name, too, and a corpus for it."""

import random
from pathlib import Path

import pytest

from tests.commands.conftest import save_tiny
from transformer_viz.app_folders import FOLDERS_VARIABLE

LETTERS = "abc d-"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint `tiny` of the task `reverse` over `-abc d\\`, of at most 7 letters."""
    folder = tmp_path_factory.mktemp("home")
    save_tiny(folder / "tiny")
    return folder


@pytest.fixture
def tiny_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its name, by which this process and its workers find it."""
    monkeypatch.setenv(FOLDERS_VARIABLE, str(home))
    return "tiny"


def texts(n: int, seed: int = 0) -> list[str]:
    """Random ones that it can read."""
    drawn = random.Random(seed)
    return ["".join(drawn.choices(LETTERS, k=drawn.randint(1, 7))) for _ in range(n)]
