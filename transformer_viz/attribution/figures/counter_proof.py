"""A head's map beside what it can be moved to without the output noticing."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.addresses import HeadPlace
from transformer_viz.attribution.result.counter_proof import CounterProof
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.maps import Panel, labels_of, of_a_kind, share_scale
from transformer_viz.figures.theme import Style
from transformer_viz.terms import KIND_TITLES, head_label, layer_label
from transformer_viz.trace.trace import Trace


@plotly_figure
def counter_proof(
    trace: Trace, proofs: Sequence[CounterProof], layer: int, head: int, *, style: Style = Style()
) -> PlainFigure:
    """Draws the weights of one head beside those that were moved farthest, for each scope, on one scale from 0 to 1.

    Args:
        trace: the run, by tokens.
        proofs: from `tv.counter_proof`, one or two, whose scopes have this head.
        layer: from 0.
        head: from 0.
        style: theme and size; the maps of a narrow figure stand below each other.

    Raises:
        OptionError: too many of them, or a scope without this head.
    """
    if not 1 <= len(proofs) <= 2:
        raise OptionError(f"{len(proofs)} counter-proofs cannot be drawn; 1 to 2 can, beside the map as it is")
    kind, colours = proofs[0].heads[0].kind, style.colours
    place, masked = HeadPlace(kind, layer, head), trace.attentions[kind].head_mask(layer, head)
    maps = [(f"{head_label(layer, head)} as it is", proofs[0].of(place))]
    for proof in proofs:
        # Which heads were moved together, and how far.
        first, farthest = proof.heads[0], proof.farthest
        layers = {head.layer for head in proof.heads}
        moved = f"with all of {KIND_TITLES[first.kind] if len(layers) > 1 else layer_label(first.layer)}"
        moved = "alone" if len(proof.heads) == 1 else moved
        maps.append((f"{moved}: λ = {farthest.share:.2f}, {farthest.target}", proof.farthest_of(place)))
    panels = []
    for title, weights in maps:
        drawn = cells.number_cells(np.where(masked, np.nan, weights), "weight", **share_scale(colours))
        panels.append(Panel(title, *labels_of(trace, kind), [drawn, *cells.hidden(masked, colours)]))
    return of_a_kind(panels, trace, kind, style)
