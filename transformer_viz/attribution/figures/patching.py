"""The effect of patching each place of one run into another, as a map: one cell a place."""

import numpy as np

from transformer_viz.addresses import Place
from transformer_viz.attribution.result.patching import Patching
from transformer_viz.errors import OptionError, join_names
from transformer_viz.figures.cells import cells_of
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import colour_axis, edge, frame, named_axis, text_width, words_at
from transformer_viz.figures.theme import Style, base_layout, token_label
from transformer_viz.terms import KIND_TITLES, Kind, head_label, layer_label, place_label
from transformer_viz.trace.trace import Trace

_ABOVE, _BELOW, _AREA, _ROW, _LEAST_ROW = 44, 30, 360, 26, 11
"""Pixels above the map, of the axis' title and its gap below it, of the map about, and of a row at most and at least."""
_LONGEST_WORD = 9
"""Signs of a token in a label."""
_ROWS_MEAN: dict[Kind, str] = {
    "encoder": "source token whose row is put",
    "decoder": "row that is put: read → written",
    "cross": "row that is put: read → written",
}


@plotly_figure
def patching(
    found: Patching,
    a: Trace,
    b: Trace,
    kind: Kind,
    place: tuple[Place, int] | None = None,
    *,
    limit: float | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws heads or layers × positions of a kind: blue where B comes nearer to A's output, orange where it goes farther away.

    Args:
        found: what `patch` has found.
        a: the run whose outputs were put.
        b: the run into which they were put.
        kind: `encoder`, `decoder` or `cross`.
        place: head or layer, and query, to frame.
        limit: the effect that has the strongest colour; by default the largest of all kinds.
        style: theme and size.

    Raises:
        OptionError: this kind was not asked for, or an impossible limit.
    """
    if kind not in found.effects:
        raise OptionError(f"kind {kind!r} is not in this patching; it has {join_names(found.effects)}")
    limit = strongest(found) if limit is None else limit
    if not limit > 0:
        raise OptionError(f"limit={limit!r} is not possible; it is above 0")
    colours, size, places = style.colours, style.size - 1, places_of(found, kind)
    n = found.effects[kind].shape[-1]

    def joined(*runs: tuple[str, ...]) -> list[str]:
        """`l`, or `l≠k` where A and B differ."""
        words = zip(*([token_label(token, _LONGEST_WORD) for token in run[:n]] for run in runs), strict=True)
        return [one if one == other else f"{one}≠{other}" for one, other in words]

    # `3·l`, and `3·l→o` of what is written from it.
    written = [""] * n if kind == "encoder" else [f"→{out}" for out in joined(a.output_tokens, b.output_tokens)]
    read = map(place_label, range(n), joined(a.labels(kind)[0], b.labels(kind)[0]))
    columns = [f"{label}{out}" for label, out in zip(read, written, strict=True)]
    row_height = max(_LEAST_ROW, min(_ROW, _AREA // len(places)))
    below = _BELOW + max(text_width(label, size) for label in columns)
    names = [layer_label(at.layer or 0) if at.head is None else head_label(at.layer or 0, at.head) for at in places]
    values = found.effects[kind].reshape(len(places), len(columns))
    drawn = [cells_of(values, "%{y} at %{x}<br>brings back <b>%{z:+.3f}</b>", coloraxis="coloraxis")]
    # A line between the heads of two layers.
    if first := [row for row in range(1, len(places)) if places[row].head == 0]:
        x = [end for _ in first for end in (-0.5, len(columns) - 0.5, None)]
        y = [end for row in first for end in (row - 0.5, row - 0.5, None)]
        drawn.append(scatter(x=x, y=y, mode="lines", line={"color": colours.muted, "width": 1.5}, hoverinfo="skip"))
    framed = []
    if place is not None and place[0] in places:
        at = place[1], places.index(place[0])
        framed = [frame(*at, *at, colours.ink, 2.5)]
    ends = f"−{limit:.2g}", "0", f"+{limit:.2g}"
    return PlainFigure(
        drawn,
        {
            **base_layout(colours, size),
            "height": round(_ABOVE + below + row_height * len(places)),
            "margin": {"l": 0, "r": 20, "t": _ABOVE, "b": 8},
            "annotations": [words_at(f"<b>{KIND_TITLES[kind].capitalize()}</b>", 0, 1, size + 2, colours.ink, yshift=8)],
            "shapes": framed,
            "coloraxis": colour_axis(colours, size, (-limit, limit), ends, signed=True, lying=True),
            "xaxis": named_axis(colours, size, columns, _ROWS_MEAN[kind], tickangle=-90, **edge(colours)),
            "yaxis": named_axis(
                colours, size, names, every=max(-(-size // row_height), -(-len(names) // 64)), down=True, **edge(colours)
            ),
        },
    )


def strongest(found: Patching) -> float:
    """The largest effect of either sign, of all kinds; 1 where none has any."""
    return max(float(np.abs(effects).max(initial=0.0)) for effects in found.effects.values()) or 1.0


def places_of(found: Patching, kind: Kind) -> list[Place]:
    """The rows of the map: every head of every layer, or every layer."""
    n_heads = found.effects[kind].shape[1] if found.by == "head" else 0
    return [Place(kind, layer, head) for layer in found.layers[kind] for head in (range(n_heads) or (None,))]
