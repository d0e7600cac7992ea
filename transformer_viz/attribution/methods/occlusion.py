"""Occlusion: D[t, j] = log p(y_t | all) − log p(y_t | all but key j), in nats; above 0, key j spoke for what was written."""

import torch

from transformer_viz.attribution.method import Found, Method
from transformer_viz.attribution.run import Run
from transformer_viz.attribution.without import MODES, log_p_without
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import NATS, TITLES


def of(run: Run, kind: Kind, mode: str) -> Found:
    """(query, key); of what the decoder reads later than the step NaN, since it cannot be the cause."""
    n_keys = len(run.keys(kind))
    without = log_p_without(run, kind, torch.eye(n_keys, dtype=torch.bool), mode)
    difference = (run.log_p - without).T
    if kind == "decoder":
        later = torch.ones_like(difference, dtype=torch.bool).triu(1)
        difference = difference.masked_fill(later, torch.nan)
    return Found(difference)


METHOD = Method(
    of,
    title=TITLES["occlusion"],
    help="How much less probable what was written becomes without a token, in nats",
    cannot="which of two tokens it was where either is enough",
    order=1,
    unit=NATS,
    modes=tuple(MODES),
    dtype=torch.float64,
)
