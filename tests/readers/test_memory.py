"""What the recurrence of one of Firefox's translators remembers, against plain numpy."""

from pathlib import Path

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import firefox_files as files
from transformer_viz.errors import OptionError

pytestmark = needs("sentencepiece")
TEXT = "o gato preto dorme"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.save(tmp_path_factory.mktemp("memory") / "mine")


def test_what_is_left_of_each_token_adds_up_to_the_memory(folder: Path) -> None:
    """By products of gates written out, and by the cells of a recurrence that is run step by step."""
    model = tv.load_model(str(folder))
    trace = tv.decode(model, TEXT, max_length=9)
    found = tv.remembered(model, trace)
    [path] = folder.glob("model.*.bin")
    plain = files.Plain(path.read_bytes(), files.HEADS)
    assert trace.source_ids is not None and trace.target_ids is not None
    plain.run(list(trace.source_ids), list(trace.target_ids[1:]))
    n = trace.n_steps
    for layer, (kept, taken, cells) in enumerate(zip(plain.kept, plain.taken, plain.cells, strict=True)):
        left = np.zeros((n, n, files.D))
        for t in range(n):
            for s in range(t + 1):
                left[t, s] = np.prod(kept[s + 1 : t + 1], 0) * (1 - kept[s])
        np.testing.assert_allclose(np.einsum("tsu,su->tu", left, taken), cells, atol=1e-10)
        np.testing.assert_allclose(found.shares[layer], left.mean(-1), atol=1e-6)
    assert 0 < found.apart < 1e-5
    assert (found.layers, found.n_units, found.tokens) == ((0, 1), files.D, trace.target_tokens)
    assert found.shares[0, n - 1, 0] < found.shares[0, 0, 0], "what is old fades"


def test_it_is_drawn_and_asked_of_such_models_alone(folder: Path, tiny: tv.Checkpoint) -> None:
    model = tv.load_model(str(folder))
    found = tv.remembered(model, tv.decode(model, TEXT, max_length=5))
    figure = tv.figures.remembered(found, 0)
    drawn = np.array(figure.data[0].z, float)
    np.testing.assert_array_equal(np.isnan(drawn), np.triu(np.ones_like(drawn), 1) > 0)
    np.testing.assert_allclose(np.nan_to_num(drawn), found.shares[0], atol=1e-7)
    assert "Memory of the recurrence" in figure.layout.title.text
    with pytest.raises(OptionError, match="layer 7 has no recurrence; layers 0, 1 have one"):
        tv.figures.remembered(found, 7)
    with pytest.raises(OptionError, match="has no recurrence that could remember"):
        tv.remembered(tiny, tv.decode(tiny, "abc"))
