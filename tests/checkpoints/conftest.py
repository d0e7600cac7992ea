"""A folder of checkpoints."""

from pathlib import Path

import pytest

from tests.checkpoints.tiny import save
from transformer_viz import app_folders


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A folder of checkpoints that names are looked up in; nothing shipped is in the way."""
    monkeypatch.setattr(app_folders, "ROOT", tmp_path / "root")
    monkeypatch.setenv("TRANSFORMER_VIZ_CHECKPOINTS", str(tmp_path / "home"))
    save(tmp_path / "home" / "good")
    return tmp_path / "home"
