"""A head's map beside what it can be moved to without the output noticing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.counter_proof import CounterProof
from transformer_viz.errors import OptionError
from transformer_viz.figures.maps import heat_map, hidden, side_by_side
from transformer_viz.figures.theme import ThemeName, even, theme_of
from transformer_viz.terms import KIND_TITLES, head_label, layer_label
from transformer_viz.trace.trace import Trace

_MOST = 3


def counter_proof(
    trace: Trace,
    proofs: Sequence[CounterProof],
    layer: int,
    head: int,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    columns: int = 3,
) -> go.Figure:
    """The weights of one head as they are, and the farthest found of each scope that was moved, on one scale from 0 to 1.

    Args:
        trace: the run, by tokens.
        proofs: from `tv.counter_proof`, one or two, whose scopes have this head.
        layer: from 0.
        head: from 0.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        columns: maps side by side; 1 on a phone.

    Raises:
        OptionError: too many of them, or a scope without this head.
    """
    if not 0 < len(proofs) < _MOST:
        raise OptionError(f"{len(proofs)} counter-proofs cannot be drawn; 1 to {_MOST - 1} can, beside the map as it is")
    kind, colours = proofs[0].heads[0].kind, theme_of(theme)
    place = HeadPlace(kind, layer, head)
    masked = trace.attentions[kind].head_mask(layer, head)
    scale = {"zmin": 0, "zmax": 1, "colorscale": even(colours.scale), "showscale": False}
    maps = [(f"{head_label(layer, head)} as it is", proofs[0].of(place))]
    maps += [(_title(each), each.farthest_of(place)) for each in proofs]
    panels: list[tuple[str, list[Any]]] = [
        (title, [heat_map(np.where(masked, np.nan, weights), "weight", scale), *hidden(masked, colours)])
        for title, weights in maps
    ]
    return side_by_side((trace,) * len(panels), kind, panels, colours, 15 if large else 12, min(columns, len(panels)), None)


def _title(proof: CounterProof) -> str:
    """Which heads were moved together, and how far."""
    first, n_heads, found = proof.heads[0], len(proof.heads), proof.farthest
    with_others = KIND_TITLES[first.kind] if len({head.layer for head in proof.heads}) > 1 else layer_label(first.layer)
    return f"{'alone' if n_heads == 1 else f'with all of {with_others}'}: λ = {found.share:.2f}, {found.target}"
