"""The surveys that come along with the checkpoints: of these very weights, and small."""

import pytest

import transformer_viz as tv
from transformer_viz import app_folders
from transformer_viz.surveys.fingerprint import fingerprint
from transformer_viz.surveys.result import NAME, load_survey

CHECKPOINTS = sorted(path for path in (app_folders.ROOT / "checkpoints").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=lambda path: path.name)
def test_each_checkpoint_has_a_survey_of_itself(folder):
    checkpoint, found = tv.load_checkpoint(folder.name, "cpu"), load_survey(folder / "survey")
    assert found.model.name == folder.name
    assert found.model.fingerprint == fingerprint(checkpoint)
    assert found.texts.n_read == found.texts.n > 500
    assert found.outputs is not None
    assert found.outputs.n_known > 0
    assert found.verdict is not None
    assert found.verdict.n_texts == 100
    assert [path.name for path in (folder / "survey").iterdir()] == [NAME]
    assert (folder / "survey" / NAME).stat().st_size < 300_000
