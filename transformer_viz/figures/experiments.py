"""The figures of attribution: faithfulness curves, and maps of heads that were ablated, moved or patched."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from transformer_viz.addresses import AttentionAddress, HeadAddress, find_head
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.counter_proof import CounterProof
from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.attribution.result.patching import Patching
from transformer_viz.attribution.result.verdict import KS, MeanCurve
from transformer_viz.errors import OptionError, join_names
from transformer_viz.figures import cells
from transformer_viz.figures.cells import cells_of
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.maps import Panel, labels_of, of_a_kind, share_scale
from transformer_viz.figures.parts import (
    axis,
    chart_layout,
    colour_axis,
    edge,
    frame,
    named_axis,
    on_axes,
    panel_axes,
    text_width,
    words_at,
)
from transformer_viz.figures.theme import Style, Theme, base_layout, escape, token_label
from transformer_viz.figures.tiles import tile_map
from transformer_viz.language import later, say
from transformer_viz.terms import Head, Kind, head_label, kind_words, layer_label, place_label
from transformer_viz.trace.trace import Trace

_BASELINES = {"occlusion": later("the cause's own order"), "random": later("a random order")}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
_PANELS = (
    ("comprehensiveness", later("without the first k: <b>high</b> is faithful")),
    ("sufficiency", later("with the first k alone: <b>low</b> is faithful")),
)


@plotly_figure
def faithfulness(curves: Sequence[MeanCurve], *, style: Style = Style()) -> PlainFigure:
    """Draws the lost probability over the number of tokens k: comprehensiveness beside sufficiency, on one scale.

    Args:
        curves: from `tv.faithfulness`. Intervals are drawn where there are several texts.
        style: theme and size; the panels of a narrow figure stand below each other.

    Raises:
        OptionError: no step of these runs was judged.
    """
    colours, size, narrow = style.colours, style.size, style.narrow
    lines = _lines([curve for curve in curves if all(mean.value == mean.value for mean in curve.comprehensiveness)], colours)
    if not lines:
        raise OptionError("There is no curve to draw: no step of these runs has a cause among two tokens or more.")
    n_rows, height = (2 if narrow else 1), 250 if style.large else 210
    legend = 30 + 24 * (-(-len(lines) // 2) if narrow else 1)
    layout = {**chart_layout(colours, size, legend + n_rows * (height + 56), top=legend), "annotations": []}
    drawn: list[Plain] = []
    for place, (what, words) in enumerate(_PANELS):
        # In shares of the figure, below its title.
        below, left = 0.58 * (1 - place), 0.53 * place
        x, y = ([0.0, 1.0], [below, below + 0.36]) if narrow else ([left, left + 0.47], [0.0, 0.9])
        ks = axis(colours, size, (0.8, KS[-1] + 0.2), say("k, how many tokens"), tickvals=KS)
        one_scale = {"matches": "y"} if place else {}
        lost = axis(colours, size, (), say("probability lost"), showgrid=True, tickformat=".2f", **one_scale)
        layout |= panel_axes(place + 1, ks, lost, x, y)
        layout["annotations"].append(words_at(words, x[0], y[1], size, colours.ink))
        for curve, looks in lines:
            means: tuple[Mean, ...] = getattr(curve, what)
            name, ends = escape(_BASELINES.get(curve.name, curve.name)), [mean.interval for mean in means]
            spread: dict[str, Any] = {
                "type": "data",
                "symmetric": False,
                "thickness": 1,
                "array": [0 if end is None else end[1] - mean.value for mean, end in zip(means, ends, strict=True)],
                "arrayminus": [0 if end is None else mean.value - end[0] for mean, end in zip(means, ends, strict=True)],
            }
            line = scatter(
                x=KS,
                y=[mean.value for mean in means],
                name=name,
                legendgroup=name,
                showlegend=place == 0,
                **on_axes(place + 1),
                **({"error_y": spread} if any(ends) else {}),
                hovertemplate=say("{name}, k = %{{x}}<br>{what} <b>%{{y:.3f}}</b><extra></extra>", name=name, what=what),
                **looks,
            )
            drawn.append(line)
    return PlainFigure(drawn, layout)


def _lines(curves: Sequence[MeanCurve], colours: Theme) -> list[tuple[MeanCurve, dict[str, Any]]]:
    """The first map is the strongest; lines differ in their marks too."""
    palette = (colours.chosen, colours.accent, colours.literal, colours.broken, colours.hatch)
    lines: list[tuple[MeanCurve, dict[str, Any]]] = []
    for number, curve in enumerate(each for each in curves if each.name not in _BASELINES):
        marks = {"size": 8, "symbol": _SYMBOLS[number % len(_SYMBOLS)]}
        line = {"color": palette[number % len(palette)], "width": 2 if number else 3.5}
        lines.append((curve, {"mode": "lines+markers", "line": line, "marker": marks}))
    dashes = {"occlusion": (colours.ink, "dot"), "random": (colours.muted, "dash")}
    for curve in (each for each in curves if each.name in _BASELINES):
        colour, dash = dashes[curve.name]
        lines.append((curve, {"mode": "lines", "line": {"color": colour, "width": 2, "dash": dash}}))
    return lines


Number = Literal["answers", "log_p"]
TITLES: dict[Number, str] = {
    "answers": later("share of right answers lost without it"),
    "log_p": later("log p lost a token, nats"),
}


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


@plotly_figure
def counter_proof(
    trace: Trace, proofs: Sequence[CounterProof], head: str | HeadAddress, *, style: Style = Style()
) -> PlainFigure:
    """Draws the weights of one head beside those that were moved farthest, for each scope, on one scale from 0 to 1.

    Args:
        trace: the run, by tokens.
        proofs: from `tv.counter_proof`, one or two, whose scopes have this head.
        head: the head, such as `cross.2.3`.
        style: theme and size; the maps of a narrow figure stand below each other.

    Raises:
        OptionError: too many of them, or a scope without this head.
    """
    if not 1 <= len(proofs) <= 2:
        raise OptionError(f"{len(proofs)} counter-proofs cannot be drawn; 1 to 2 can, beside the map as it is")
    place, colours = find_head(head, trace.grid), style.colours
    kind, masked = place.kind, trace.attentions[place.kind].head_mask(place.layer, place.head)
    maps = [(say("{layer} as it is", layer=head_label(place.layer, place.head)), proofs[0].of(place))]
    for proof in proofs:
        # Which heads were moved together, and how far.
        first, farthest = proof.heads[0], proof.farthest
        layers = {head.layer for head in proof.heads}
        moved = say("with all of {what}", what=kind_words(first.kind) if len(layers) > 1 else layer_label(first.layer))
        moved = "alone" if len(proof.heads) == 1 else moved
        maps.append((f"{moved}: λ = {farthest.share:.2f}, {farthest.target}", proof.farthest_of(place)))
    panels = []
    for title, weights in maps:
        drawn = cells.number_cells(np.where(masked, np.nan, weights), "weight", **share_scale(colours))
        panels.append(Panel(title, *labels_of(trace, kind), [drawn, *cells.hidden(masked, colours)]))
    return of_a_kind(panels, trace, kind, style)


_ABOVE, _BELOW, _AREA, _ROW, _LEAST_ROW = 44, 30, 360, 26, 11
"""Pixels above the map, of the axis' title and its gap below it, of the map about, and of a row at most and at least."""
_LONGEST_WORD = 9
"""Signs of a token in a label."""
_ROWS_MEAN: dict[Kind, str] = {
    "encoder": later("source token whose row is put"),
    "decoder": later("row that is put: read → written"),
    "cross": later("row that is put: read → written"),
}


@plotly_figure
def patching(
    found: Patching,
    a: Trace,
    b: Trace,
    kind: Kind,
    place: tuple[AttentionAddress, int] | None = None,
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
    drawn = [cells_of(values, say("%{{y}} at %{{x}}<br>brings back <b>%{{z:+.3f}}</b>"), coloraxis="coloraxis")]
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
            "annotations": [words_at(f"<b>{kind_words(kind).capitalize()}</b>", 0, 1, size + 2, colours.ink, yshift=8)],
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


def places_of(found: Patching, kind: Kind) -> list[AttentionAddress]:
    """The rows of the map: every head of every layer, or every layer."""
    n_heads = found.effects[kind].shape[1] if found.by == "head" else 0
    return [AttentionAddress(kind, layer, head) for layer in found.layers[kind] for head in (range(n_heads) or (None,))]
