"""Fresh texts for a model, where nobody has given any."""

import numpy as np

from transformer_viz.loaded_model import LoadedModel

# Keeps these texts apart from those of training, of `evaluate` and of `effect`.
_STREAM = 79


def sample_texts(model: LoadedModel, samples: int, seed: int) -> list[str]:
    """Fresh texts of a model's task, of all lengths and sources alike; the model has a task."""
    assert model.task is not None
    rng = np.random.default_rng([seed, _STREAM])
    return model.task.mixed(rng.choice(model.task.evaluated_lengths, samples).tolist(), rng)
