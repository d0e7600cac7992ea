"""A random model of each variant, small enough for plain loops, and a run of it."""

import pytest

import transformer_viz as tv
from tests.attribution import plain
from transformer_viz.checkpoints import Checkpoint


@pytest.fixture(scope="module", params=plain.VARIANTS)
def small(request, make_model, make_tiny) -> Checkpoint:
    return make_tiny(make_model(3, **plain.SMALL, **plain.settings_of(request.param)))


@pytest.fixture(scope="module")
def trace(small: Checkpoint) -> tv.Trace:
    return tv.decode(small, "he", target="eh")
