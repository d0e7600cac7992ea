"""The masks of a run taken apart into padding, causal and combined matrices, as they are built in code."""

from dataclasses import dataclass

import numpy as np

from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True)
class MaskPart:
    """One matrix: reasons (query, key), and the tokens on its axes."""

    title: str
    kind: Kind
    reasons: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def mask_parts(trace: Trace, layer: int = 0, head: int = 0) -> tuple[MaskPart, ...]:
    """The masks of a run one by one: encoder padding, decoder padding, causal, a layer's window if it has one, the combined
    mask of the decoder, and the cross mask.

    Args:
        trace: the run; padding shows where it was kept (`pad_to`, `pad_target_to`).
        layer: from 0; matters only where windows or an edit made layers differ. A kind without it shows its first one.
        head: from 0; matters only where an edit made heads differ.
    """
    masks: dict[Kind, np.ndarray] = {}
    for kind, attention in trace.attentions.items():
        masks[kind] = attention.head_reasons(layer if layer in attention.layers else attention.layers[0], head)
    parts: list[tuple[str, Kind, np.ndarray]] = []
    if "encoder" in masks:
        parts.append(("encoder: padding", "encoder", masks["encoder"]))
    if "decoder" in masks:
        combined = masks["decoder"]
        parts.append(("decoder: padding", "decoder", combined & Reason.PADDING))
        parts.append(("decoder: causal", "decoder", combined & Reason.FUTURE))
        if (trace.decoder.reasons == Reason.WINDOW).any():
            parts.append(("decoder: window", "decoder", combined * (combined == Reason.WINDOW)))
        parts.append(("decoder: combined", "decoder", combined))
    if "cross" in masks:
        parts.append(("cross: padding", "cross", masks["cross"]))
    return tuple(MaskPart(title, kind, reasons, *trace.labels(kind)) for title, kind, reasons in parts)
