"""Attention of made-up runs, and of runs that are changed by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace


def unmasked(weights: np.ndarray) -> Attention:
    """Weights (layer, head, query, key) with nothing masked."""
    return Attention(weights=weights, reasons=np.zeros(weights.shape[2:], dtype=np.uint8))


def with_parts(trace: Trace, kind: Kind, **parts: Any) -> dict[Kind, Attention]:
    """The attention of a run, with other parts in one kind."""
    return {**trace.attentions, kind: replace(trace.attentions[kind], **parts)}


def chosen(attentions: Mapping[Kind, Attention], fields: dict[str, Any]) -> dict[Kind, Attention]:
    """Takes `encoder`, `decoder` and `cross` out of `fields`: other weights, a whole Attention, or None for a kind that is not
    there."""
    found = dict(attentions)
    for kind in [kind for kind in KINDS if kind in fields]:
        given = fields.pop(kind)
        if given is None:
            del found[kind]
        else:
            found[kind] = given if isinstance(given, Attention) else replace(found[kind], weights=given, layers=())
    return found
