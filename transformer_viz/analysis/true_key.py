"""How much of each cross-attention head's weight lies on the true key."""

import numpy as np

from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.trace.trace import Trace


def true_keys(trace: Trace) -> tuple[int | None, ...]:
    """Per step the true key index, or None; padded steps have none, though a task may align them too."""
    real = real_queries(trace, "cross")
    return tuple(key if is_real else None for key, is_real in zip(trace.alignment, real, strict=True))


def head_mass(trace: Trace) -> np.ndarray | None:
    """Mean weight on the true key over all steps that have one, (layer, head) float64, for the layers that the run has.

    None where the run has no cross-attention or no step has a true key.
    """
    steps = [(t, key) for t, key in enumerate(true_keys(trace)) if key is not None]
    if "cross" not in trace.attentions or not steps:
        return None
    rows, keys = zip(*steps, strict=True)
    return trace.cross.weights[:, :, rows, keys].astype(np.float64).mean(-1)


def best_head(trace: Trace) -> tuple[int, int, float] | None:
    """Layer, head and mass of the head with the most weight on the true keys; None as in `head_mass`."""
    mass = head_mass(trace)
    if mass is None:
        return None
    place, head = np.unravel_index(int(mass.argmax()), mass.shape)
    return trace.cross.layers[int(place)], int(head), float(mass[place, head])
