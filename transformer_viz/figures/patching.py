"""How much of the difference between two runs each place of one brings back when it is put into the other: a cell a place."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.addresses import Place
from transformer_viz.analysis.patching import Patching
from transformer_viz.errors import OptionError, listed
from transformer_viz.figures import cells
from transformer_viz.figures.margins import text_width
from transformer_viz.figures.plain import Plain, PlainFigure, heatmap, scatter
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, even, shown, theme_of
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


def patching(
    found: Patching,
    a: Trace,
    b: Trace,
    kind: Kind,
    place: tuple[Place, int] | None = None,
    *,
    limit: float | None = None,
    theme: ThemeName = "light",
    large: bool = False,
) -> go.Figure:
    """Heads, or layers, × positions of a kind: blue, B comes nearer to what A wrote; orange, it goes farther away.

    Args:
        found: what `patch` has found.
        a: the run whose outputs were put.
        b: the run into which they were put.
        kind: `encoder`, `decoder` or `cross`.
        place: head or layer, and query, to frame.
        limit: the effect that has the strongest colour; by default the largest of all kinds.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.

    Raises:
        OptionError: this kind was not asked for, or an impossible limit.
    """
    return plain_patching(found, a, b, kind, place, limit=limit, theme=theme, large=large).to_plotly()


def plain_patching(
    found: Patching,
    a: Trace,
    b: Trace,
    kind: Kind,
    place: tuple[Place, int] | None = None,
    *,
    limit: float | None = None,
    theme: ThemeName,
    large: bool,
) -> PlainFigure:
    """The same as plain data."""
    if kind not in found.effects:
        raise OptionError(f"kind {kind!r} is not in this patching; it has {listed(found.effects)}")
    limit = strongest(found) if limit is None else limit
    if not limit > 0:
        raise OptionError(f"limit={limit!r} is not possible; it is above 0")
    colours, size = theme_of(theme), 15 if large else 12
    places, columns = places_of(found, kind), _position_labels(found, a, b, kind)
    values = found.effects[kind].reshape(len(places), len(columns))
    row = max(_LEAST_ROW, min(_ROW, _AREA // len(places)))
    below = _BELOW + max(text_width(label, size) for label in columns)
    names = [_name(each) for each in places]
    chosen = None if place is None or place[0] not in places else (places.index(place[0]), place[1])
    return PlainFigure(
        [_map(values), *_layers_apart(places, len(columns), colours)],
        {
            **base_layout(colours, size),
            "height": round(_ABOVE + below + row * len(places)),
            "margin": {"l": 0, "r": 20, "t": _ABOVE, "b": 8},
            "annotations": [_title(KIND_TITLES[kind].capitalize(), colours, size)],
            **({} if chosen is None else {"shapes": [_frame(*chosen, colours)]}),
            "coloraxis": _colour_axis(limit, colours, size),
            "xaxis": {**_axis(columns, 1, _ROWS_MEAN[kind], colours, size), "tickangle": -90},
            "yaxis": {**_axis(names, -(-size // row), "", colours, size), "range": [len(places) - 0.5, -0.5]},
        },
    )


def strongest(found: Patching) -> float:
    """The largest effect of either sign, of all kinds; 1 where none has any."""
    return max(float(np.abs(effects).max(initial=0.0)) for effects in found.effects.values()) or 1.0


def places_of(found: Patching, kind: Kind) -> list[Place]:
    """The rows of the map: every head of every layer, or every layer."""
    n_heads = found.effects[kind].shape[1] if found.by == "head" else 0
    return [Place(kind, layer, head) for layer in found.layers[kind] for head in (range(n_heads) or (None,))]


def _position_labels(found: Patching, a: Trace, b: Trace, kind: Kind) -> list[str]:
    """The columns of the map: `3·l`, and `3·l→o` of what is written from it; `l≠k` where A and B differ."""
    n = found.effects[kind].shape[-1]
    read = _joined(a.labels(kind)[0][:n], b.labels(kind)[0][:n])
    written = [""] * n if kind == "encoder" else [f"→{out}" for out in _joined(a.output_tokens[:n], b.output_tokens[:n])]
    return [f"{place_label(place, word)}{out}" for place, (word, out) in enumerate(zip(read, written, strict=True))]


def _joined(a: tuple[str, ...], b: tuple[str, ...]) -> list[str]:
    words = zip(*([shown(token, _LONGEST_WORD) for token in run] for run in (a, b)), strict=True)
    return [one if one == other else f"{one}≠{other}" for one, other in words]


def _name(place: Place) -> str:
    assert place.layer is not None
    return layer_label(place.layer) if place.head is None else head_label(place.layer, place.head)


def _map(values: np.ndarray) -> Plain:
    gap = int(max(values.shape) <= 40)
    hover = "%{y} at %{x}<br>brings back <b>%{z:+.3f}</b><extra></extra>"
    return heatmap(z=values.astype(np.float32), coloraxis="coloraxis", xgap=gap, ygap=gap, hovertemplate=hover)


def _layers_apart(places: list[Place], n_columns: int, colours: Theme) -> list[Plain]:
    """A line between the heads of two layers."""
    rows = [row for row in range(1, len(places)) if places[row].head == 0]
    x = [end for _ in rows for end in (-0.5, n_columns - 0.5, None)]
    y = [end for row in rows for end in (row - 0.5, row - 0.5, None)]
    return [scatter(x=x, y=y, mode="lines", line={"color": colours.muted, "width": 1.5}, hoverinfo="skip")] if rows else []


def _axis(labels: list[str], every: int, words: str, colours: Theme, size: int) -> dict[str, Any]:
    return {
        "range": [-0.5, len(labels) - 0.5],
        **cells.ticks(labels, max(every, -(-len(labels) // cells.MOST_TICKS))),
        "title": {"text": words, "font": {"size": size, "color": colours.muted}, "standoff": 4},
        "tickfont": {"size": size, "color": colours.ink},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "",
        "showline": True,
        "mirror": True,
        "linecolor": colours.grid,
    }


def _title(words: str, colours: Theme, size: int) -> dict[str, Any]:
    place = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 8}
    return {"text": f"<b>{words}</b>", "showarrow": False, "font": {"size": size + 2, "color": colours.ink}, **place}


def _frame(row: int, column: int, colours: Theme) -> dict[str, Any]:
    sides = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", "xref": "x", "yref": "y", "line": {"color": colours.ink, "width": 2.5}, **sides}


def _colour_axis(limit: float, colours: Theme, size: int) -> dict[str, Any]:
    """A lying bar above the map's right end."""
    bar: dict[str, Any] = {
        "orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "len": 0.38, "thickness": 8, "xpad": 0,
        "ypad": 4, "outlinewidth": 1, "outlinecolor": colours.grid, "tickvals": [-limit, 0, limit], "ticks": "",
        "ticktext": [f"−{limit:.2g}", "0", f"+{limit:.2g}"], "ticklabelposition": "outside top",
        "tickfont": {"size": size - 1, "color": colours.muted},
    }  # fmt: skip
    return {"cmin": -limit, "cmax": limit, "colorscale": even(colours.diverging), "colorbar": bar}
