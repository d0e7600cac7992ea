"""The rows of an attention that can be judged, averages over them, and the true key of each.

Padded queries are left out, and rows that may look at no key, hold NaN (only in runs with a named mistake) or have no
weight at all (in a head that is switched off).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END, PAD

Side = Literal["source", "target"]
_CELLS_AT_ONCE = 2**18
"""Weights that stay in the processor's own memory, as numbers and as logarithms."""


def real_queries(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (query,); False at padding."""
    return ~padding(trace, "source" if kind == "encoder" else "target")


def padding(trace: Trace, side: Side) -> np.ndarray:
    """bool (token,), True = padding: of what the encoder read (`source`) or the decoder (`target`).

    The label `<pad>` is not enough: some models begin with that token, an untrained one may write it, and in a run with ids
    somebody may have typed it. Padding stands behind a source and before a prompt, and the masks give it as their reason unless
    an edit or a mistake changed them.
    """
    tokens, ids = (trace.source_tokens, trace.source_ids) if side == "source" else (trace.target_tokens, trace.target_ids)
    named = np.array([token == PAD for token in tokens], dtype=bool)
    if ids is None and side == "source":
        return named
    if ids is None:  # what stands behind `<end>`
        has_ended = np.cumsum([False, *(token == END for token in trace.output_tokens[:-1])]) > 0
        return named & has_ended[: len(trace.target_tokens)]
    if side == "source":
        return _first_of(named[::-1])[::-1] & _masked_as_padding(trace, ("encoder", "cross"))
    # Behind what was written nothing is read and nothing written.
    behind = named & np.array([token == PAD for token in trace.output_tokens or tokens], dtype=bool)
    before = _first_of(named) & bool(trace.prompt)
    return (before | _first_of(behind[::-1])[::-1]) & _masked_as_padding(trace, ("decoder",))


def _first_of(here: np.ndarray) -> np.ndarray:
    """The run of True that begins at the first place."""
    return np.logical_and.accumulate(here)


def _masked_as_padding(trace: Trace, kinds: Sequence[Kind]) -> np.ndarray:
    """bool (key,), of the kinds that look at the same keys; True everywhere where masks cannot tell."""
    codes = [trace.attentions[kind].reasons for kind in kinds if kind in trace.attentions]
    if not codes or trace.edits or trace.mistake:
        return np.array(True)
    return np.any([((reasons & Reason.PADDING) > 0).reshape(-1, reasons.shape[-1]).any(0) for reasons in codes], axis=0)


def has_weight(weights: np.ndarray) -> np.ndarray:
    """bool (…, query): rows of numbers that are not all 0."""
    # One pass answers two questions: numbers from 0 on have a NaN sum where one is NaN, and a sum of 0 where all are 0.
    sums = weights @ np.ones(weights.shape[-1])
    return np.isfinite(sums) & (sums != 0)


def mean_over(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The mean of (…, query) over the rows marked True; NaN where none is."""
    counts = rows.sum(-1)
    sums = np.where(rows, values, 0.0).sum(-1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def entropies(weights: np.ndarray) -> np.ndarray:
    """Entropy of each row in nats, (…, query) float64; 0 · log 0 is 0."""
    if weights.size > _CELLS_AT_ONCE and weights.ndim > 2:
        return np.stack([entropies(part) for part in weights])
    exact = weights.astype(np.float64, copy=False)
    # Only a weight of 0 is below `tiny`; times the logarithm of `tiny` it gives 0.
    logs = np.maximum(exact, np.finfo(np.float64).tiny)
    return -np.einsum("...k,...k->...", exact, np.log(logs, out=logs))


def true_keys(trace: Trace) -> tuple[int | None, ...]:
    """Per step the true key index, or None; padded steps have none, though a task may align them too."""
    real = real_queries(trace, "cross")
    return tuple(key if is_real else None for key, is_real in zip(trace.alignment, real, strict=True))


def cross_steps(trace: Trace) -> tuple[list[int], list[int]] | None:
    """Rows of cross-attention that have a true key, and these keys; None where there are none."""
    keys = {t: key for t, key in enumerate(true_keys(trace)) if key is not None} if "cross" in trace.attentions else {}
    return ([*keys], [*keys.values()]) if keys else None


def head_mass(trace: Trace) -> np.ndarray | None:
    """Mean weight on the true key over all steps that have one, (layer, head) float64, for the layers that the run has.

    None where the run has no cross-attention or no step has a true key.
    """
    steps = cross_steps(trace)
    return None if steps is None else trace.cross.weights[:, :, *steps].astype(np.float64).mean(-1)


def best_head(trace: Trace) -> tuple[int, int, float] | None:
    """Layer, head and mass of the head with the most weight on the true keys; None as in `head_mass`."""
    mass = head_mass(trace)
    if mass is None:
        return None
    place, head = np.unravel_index(int(mass.argmax()), mass.shape)
    return trace.cross.layers[int(place)], int(head), float(mass[place, head])
