"""A map of what is lost without each head: layers × heads of one kind."""

from typing import Literal

import numpy as np

from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.errors import OptionError, join_names
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.theme import Style
from transformer_viz.figures.tiles import tile_map
from transformer_viz.terms import Head, Kind

Number = Literal["answers", "log_p"]
TITLES: dict[Number, str] = {"answers": "share of right answers lost without it", "log_p": "log p lost a token, nats"}


@plotly_figure
def knock_out(
    found: KnockOut,
    kind: Kind,
    number: Number = "answers",
    focus: tuple[int, Head] | None = None,
    *,
    style: Style = Style(),
) -> PlainFigure:
    """Draws layers × heads, coloured by what is lost without each head, from the lowest number to the highest.

    Args:
        found: from `tv.knock_out`.
        kind: `encoder`, `decoder` or `cross`.
        number: `answers`, the share of right answers that do not stay, or `log_p`.
        focus: layer and head to outline.
        style: theme and size.

    Raises:
        OptionError: no head of this kind was ablated, or another number.
    """
    if number not in TITLES:
        raise OptionError(f"number {number!r} is not known; choose one of {join_names(TITLES)}")
    heads = [effect for effect in found.heads if effect.place.kind == kind]
    if not heads:
        raise OptionError(f"No head of kind {kind!r} was ablated.")
    layers = tuple(sorted({effect.place.layer for effect in heads}))
    values = np.full((len(layers), 1 + max(effect.place.head for effect in heads)), np.nan)
    for effect in heads:
        lost = 1 - effect.stays.value if number == "answers" else -effect.log_p.value
        # What is nothing but rounding is no number on a scale.
        values[layers.index(effect.place.layer), effect.place.head] = round(lost, 6) + 0.0
    return tile_map(kind, layers, values, TITLES[number], focus, style)
