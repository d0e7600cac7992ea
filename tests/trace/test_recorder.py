"""A recorder returns what it sees, keeps what was asked for, and puts the steps together again."""

import weakref
from typing import Any

import pytest
import torch

from transformer_viz.model.tap import Site
from transformer_viz.trace.recorder import Recorder


@pytest.fixture
def pieces():
    """Rows of a cached decoding, one by one, keys growing."""
    whole = torch.rand(2, 5, 7, 7).tril()
    return whole, [(t, whole[:, :, t : t + 1, : t + 1]) for t in range(7)]


def test_steps_are_gathered_at_their_places(pieces):
    whole, rows = pieces
    recorder: Any = Recorder()
    for first, piece in rows:
        for layer in (1, 0):
            assert recorder(Site("decoder", layer, first), "weights", piece + layer) is not None
            recorder(Site("decoder", layer, first), "mask", torch.zeros(1, 1, *piece.shape[2:], dtype=torch.bool))
    got = recorder.gathered("decoder", "weights")
    written = torch.ones(7, 7).tril().bool()
    assert got.shape == (2, 2, 5, 7, 7)
    for layer in range(2):
        assert torch.equal(got[:, layer], torch.where(written, whole + layer, 0.0))
    mask = recorder.gathered("decoder", "mask")
    assert mask.shape == (1, 2, 1, 7, 7)
    assert torch.equal(mask[0, 0, 0], ~written)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_numbers_keep_their_type(pieces, dtype):
    whole, rows = pieces
    recorder: Any = Recorder(names=("weights",))
    for first, piece in rows:
        recorder(Site("decoder", 0, first), "weights", piece.to(dtype))
    assert torch.equal(recorder.gathered("decoder", "weights")[:, 0], whole.to(dtype))


def test_only_what_was_asked_for_is_kept():
    recorder: Any = Recorder(names=("scores",), kinds=("cross",))
    value = torch.rand(1, 1, 2, 3, requires_grad=True)
    for kind in ("encoder", "cross"):
        for name in ("scores", "weights"):
            assert recorder(Site(kind, 0), name, value) is value
    assert recorder.gathered("cross", "weights") is None
    assert recorder.gathered("encoder", "scores") is None
    kept = recorder.gathered("cross", "scores")
    assert torch.equal(kept[:, 0], value)
    assert not kept.requires_grad


def test_pieces_of_a_long_run_lie_together():
    """None is kept where it was made, since nothing else fits between them; and they say what was seen."""
    recorder, generator = Recorder(), torch.Generator().manual_seed(0)
    seen = torch.rand(1, 3, 90, 90, generator=generator).tril()
    masked = torch.ones(90, 90, dtype=torch.bool).triu(1)[None, None]
    made = []
    for t in range(90):
        for name, whole in (("weights", seen), ("mask", masked)):
            made.append(weakref.ref(piece := whole[..., t : t + 1, : t + 1].clone()))
            recorder(Site("decoder", 0, t), name, piece)
    del piece
    assert not any(piece() is not None for piece in made)
    weights, hidden = recorder.gathered("decoder", "weights"), recorder.gathered("decoder", "mask")
    assert weights is not None and torch.equal(weights[:, 0], seen)
    assert hidden is not None and torch.equal(hidden[:, 0], masked)
