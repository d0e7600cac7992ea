"""What is measured while a model trains: exact match on held-out texts, and each head's mass on the true key."""

from dataclasses import replace

import numpy as np

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.evaluation.evaluate import evaluate_texts


class Probe:
    """Evaluates a model in training, always on the same held-out texts.

    Args:
        checkpoint: whose model is being trained.
        samples: how many texts.
    """

    def __init__(self, checkpoint: Checkpoint, samples: int = 200) -> None:
        task = checkpoint.task
        self.checkpoint = replace(checkpoint, metrics={})
        # Another seed than the final evaluation's, whose texts must not have decided when training stopped.
        self.texts = [text for _, text in task.judged(max(samples, task.least_samples()), seed=1)]

    def __call__(self) -> dict[str, float]:
        """`held_out` (exact match), and `mass_LAYER_HEAD`, counted from 0, for tasks with a true alignment."""
        model = self.checkpoint.model
        was_training = model.training
        model.eval()
        evaluation = evaluate_texts(self.checkpoint, self.texts)
        model.train(was_training)
        checks = {"held_out": sum(evaluation.is_exact) / len(evaluation.is_exact)} if evaluation.is_exact else {}
        if (mean := evaluation.head_mass) is not None:
            checks |= {f"mass_{layer}_{head}": float(share) for (layer, head), share in np.ndenumerate(mean)}
        return checks
