"""The masks of a run taken apart, as they are built in code, and how much weight goes where the right mask forbids it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.language import later
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.trace import Trace


@dataclass(frozen=True)
class MaskPart:
    """One matrix: reasons (query, key), and the tokens on its axes; it may be covered until a question is answered."""

    title: str
    kind: Kind
    reasons: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    is_covered: bool = False


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
        parts.append((later("encoder: padding"), "encoder", masks["encoder"]))
    if "decoder" in masks:
        combined = masks["decoder"]
        parts.append((later("decoder: padding"), "decoder", combined & Reason.PADDING))
        parts.append((later("decoder: causal"), "decoder", combined & Reason.FUTURE))
        if (trace.decoder.reasons == Reason.WINDOW).any():
            parts.append((later("decoder: window"), "decoder", combined * (combined == Reason.WINDOW)))
        parts.append((later("decoder: combined"), "decoder", combined))
    if "cross" in masks:
        parts.append((later("cross: padding"), "cross", masks["cross"]))
    return tuple(MaskPart(title, kind, reasons, *trace.labels(kind)) for title, kind, reasons in parts)


def forbidden_weight(right: Sequence[Trace], given: Sequence[Trace]) -> tuple[Kind, float] | None:
    """Finds the kind of attention with the most weight on forbidden keys, and the mean weight there.

    Args:
        right: teacher-forced runs with the right masks.
        given: the same sentences and targets with other masks.

    Returns:
        The kind and the mean weight, 0 to 1, over sentences, layers, heads and those real queries that have a forbidden key;
        None where nothing is forbidden.
    """
    shares: dict[Kind, float] = {}
    for kind in KINDS:
        kind_shares = [
            weight_on(after, kind, cells)
            for before, after in zip(right, given, strict=True)
            if (cells := _forbidden(before, kind)) is not None
        ]
        if kind_shares:
            shares[kind] = float(np.mean(kind_shares))
    if not shares:
        return None
    kind = max(shares, key=lambda each: shares[each])
    return kind, shares[kind]


def most_forbidden(right: Trace, given: Trace) -> tuple[Kind, int, int, float] | None:
    """The head that looks most at what the right mask hides: its kind, layer, place in the layer, and mean share of weight.

    Args:
        right: a teacher-forced run with the right masks.
        given: the same sentence and target with other masks.

    Returns:
        None where no head looks at anything hidden. Rows that are not numbers are left out, as in `forbidden_weight`.
    """
    parts: list[tuple[float, Kind, int, int]] = []
    for kind in given.kinds:
        cells = _forbidden(right, kind)
        if cells is None:
            continue
        attention = given.attentions[kind]
        on = np.where(cells, attention.weights, 0).sum(-1, dtype=np.float32)[..., cells.any(-1)]
        shares = np.where(np.isfinite(on), on, 0).mean(-1)
        layer, head = np.unravel_index(shares.argmax(), shares.shape)
        parts.append((float(shares[layer, head]), kind, attention.layers[layer], int(head)))
    share, kind, at, head = max(parts, default=(0.0, "cross", 0, 0))
    return (kind, at, head, share) if share > 0 else None


def _forbidden(trace: Trace, kind: Kind) -> np.ndarray | None:
    """bool (query, key) of the real queries; None where nothing is forbidden."""
    if kind not in trace.kinds:
        return None
    masked = trace.attentions[kind].mask
    cells = (masked if masked.ndim == 2 else masked.all((0, 1))) & real_queries(trace, kind)[:, None]
    return cells if cells.any() else None


def weight_on(trace: Trace, kind: Kind, cells: np.ndarray) -> float:
    """The mean, over layers, heads and the rows that have such cells, of the weight on `cells`, bool (query, key).

    Rows that are not numbers are left out; 0 where there is no such row.
    """
    attention, rows = trace.attentions.get(kind), cells.any(-1)
    if attention is None or not rows.any():
        return 0.0
    on = np.where(cells, attention.weights, 0).sum(-1, dtype=np.float32)[..., rows]
    on = on[np.isfinite(on)]
    return float(on.mean()) if on.size else 0.0
