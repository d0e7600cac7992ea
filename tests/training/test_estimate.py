"""Estimates of trainings."""

from dataclasses import replace

import pytest

from tests.training.tiny import RECIPE, TASK
from transformer_viz.errors import ConfigError
from transformer_viz.training import estimate
from transformer_viz.training.make_checkpoint import make_model


def test_the_estimate_counts_the_parameters_of_the_model(monkeypatch):
    """More memory than the machine has is refused before anything is made."""
    needed = estimate.estimate(RECIPE)
    assert needed.parameters == sum(p.numel() for p in make_model(RECIPE, TASK).parameters())
    assert needed.memory > 16 * needed.parameters
    assert estimate.estimate(replace(RECIPE, steps=120)).seconds == pytest.approx(2 * needed.seconds, rel=0.3)
    giant = estimate.estimate(replace(RECIPE, model={"d_model": 8192, "d_ff": 65536, "n_encoder_layers": 64}))
    assert giant.parameters > 1e10
    with pytest.raises(ConfigError, match=r"needs about [\d.,]+ GB of memory and the machine has [\d.]+ GB"):
        estimate.check_memory(giant)
    monkeypatch.setattr(estimate, "memory_of_machine", lambda: None)
    estimate.check_memory(giant)
