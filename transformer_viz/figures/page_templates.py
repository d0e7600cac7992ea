"""Figures without their numbers, for the exported page, which holds the numbers of all heads once and fills them in.

A template has what all heads and steps of a kind share: axes, labels, colours, hovers. It is for the light theme and a
wide page; `dark` and `narrow` list the few properties that differ there, as (path, value).
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.figures import candidates, cells, mask_reasons
from transformer_viz.figures import masks as masks_figure
from transformer_viz.figures.attention import bar_traces
from transformer_viz.figures.colour_scale import Scale, stops
from transformer_viz.figures.figure_data import Plain, plain
from transformer_viz.figures.focus import Focus
from transformer_viz.figures.mosaic import HeadGrid, mosaic
from transformer_viz.figures.theme import LIGHT, THEMES, Style, ThemeName
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace

Change = tuple[list[str | int], Any]
_FILLED_IN = ("z", "x", "y", "text", "customdata")


def player_template(
    trace: Trace,
    kind: Kind,
    *,
    large: bool = False,
    with_answer: bool = True,
    scale: Scale = "fixed",
    codes: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The step player's parts: `weights`, `masked` by reason, `hatch`, `row` (None where no row is a step's), `rings`, `bars`
    (None without candidates), `colourBar` (what a logarithmic one needs), `layout`.

    Besides them `light` has `keys` and `queries`, the axes' labels, and the size and widths of the rings. `codes` are reasons
    that may occur; by default those that do.
    """

    # Heads differ in their masks only where an edit made them; the page has a trace for every reason that occurs.
    reasons = trace.attentions[kind].reasons
    codes, reasons = codes or cells.codes_in(reasons), reasons if reasons.ndim == 2 else reasons[0, 0]

    def parts(style: Style) -> dict[str, Any]:
        layer = trace.attentions[kind].layers[0]
        focus = Focus(trace, kind, layer, 0, style, with_answer=with_answer, scale=scale)
        weights, *others = focus.traces()
        bars = [drawn for drawn in others if drawn["type"] == "bar"]
        return {
            "weights": _without_numbers(weights),
            "masked": {str(code): _without_numbers(cells.masked_trace(reasons, code, focus.theme)) for code in codes},
            "hatch": _without_numbers(cells.hatch_trace(reasons > 0, focus.theme)),
            "row": _without_numbers(focus.row_trace()) if focus.is_stepped else None,
            "rings": _without_numbers({**focus.ring_trace(), **focus.rings(0)}),
            "bars": _without_numbers(bars[0]) if bars else None,
            "colourBar": bar_traces(focus.scale),
            "layout": focus.layout(0),
        }

    light = parts(Style(large=large))
    return {
        "light": light,
        "dark": changes(light, parts(Style("dark", large))),
        "narrow": changes(light, parts(Style("light", large, narrow=True))),
        "grows": kind != "encoder",
    }


def mosaic_template(trace: Trace, kind: Kind, *, large: bool = False, scale: Scale = "fixed") -> dict[str, Any]:
    """All heads of a kind as small maps, with their numbers, none of them outlined; `dark` differs in the dark theme."""

    def drawn(theme: ThemeName) -> dict[str, Any]:
        return json.loads(plain(mosaic)(trace, kind, scale=scale, style=Style(theme, large)).to_json())

    light = drawn("light")
    return {"light": light, "dark": changes(light, drawn("dark"))}


def tile_template(trace: Trace, kind: Kind, *, large: bool = False) -> dict[str, Any]:
    """The settings, by theme, for small maps of a run whose tokens the page learns only when somebody types a text."""
    shape, cell = trace.attentions[kind].weights.shape[:2], np.zeros((1, 1, 1, 1), np.float32)
    grid = HeadGrid(trace.attentions[kind].layers, (shape[1], 1, 1), None, None)

    def parts(style: Style) -> dict[str, Any]:
        scale = {"zmin": 0, "zmax": 1, "colorscale": stops(style.colours, "fixed")}
        numbers = np.broadcast_to(cell, (*shape, 1, 1))
        weights, masked = grid.exact_maps(numbers, scale, [(numbers == 0, style.colours.masked)])
        figure = grid.figure([], [], "", kind, (1, 1), style, None)
        frames, captions = figure.data
        return {
            "map": _without_numbers(weights),
            "masked": _without_numbers(masked),
            "frames": frames,
            "captions": captions,
            "layout": figure.layout,
            "title": kind_title(trace, kind, in_full=False),
        }

    return {"light": parts(Style("light", large)), "dark": parts(Style("dark", large))}


def candidate_steps(trace: Trace) -> list[dict[str, Any]]:
    """The candidates' bars of each step: `x`, `text` and its place, `customdata`, tick `names`, and the `chosen` one."""
    steps = []
    for step in trace.steps or candidates.at_masks(trace):
        bars, names = candidates.at_step(step, LIGHT), candidates.names(step)["ticktext"]
        chosen = [colour == LIGHT.chosen for colour in bars["marker"]["color"]]
        steps.append(
            {**{key: bars[key] for key in ("x", "text", "textposition", "customdata")}, "names": names, "chosen": chosen}
        )
    return steps


def true_keys(trace: Trace, *, with_answer: bool = True) -> list[int | None]:
    """The key that the rings mark at each step of cross-attention."""
    return list(trace.alignment) if with_answer else [None] * len(trace.alignment)


def mask_template(trace: Trace, kind: Kind, codes: Sequence[int] | None = None) -> dict[str, Any]:
    """A mask's figure, and the words of its hover by reason; `codes` as for `player_template`."""
    codes = [0, *(codes or cells.codes_in(trace.attentions[kind].reasons))]

    def parts(style: Style) -> dict[str, Any]:
        # One cell stands for all, since numbers are left out. Where heads have masks of their own, the legend is of them all.
        heatmap = _without_numbers(mask_reasons.cells(np.zeros((1, 1), np.uint8), style.theme))
        layout = masks_figure.mask_layout(trace, kind, kind_title(trace, kind, in_full=False), style)
        return {"heatmap": heatmap, "legend": mask_reasons.legend(codes, style.theme), "layout": layout}

    light, dark = parts(Style()), parts(Style("dark"))
    words = {str(code): mask_reasons.hover_words(code) for code in codes}
    return {"light": light, "dark": changes(light, dark), "words": words}


def page_colours(theme: ThemeName) -> dict[str, Any]:
    """The colours that the page's script sets by itself: of an outline, of captions, of candidates."""
    return {name: getattr(THEMES[theme], name) for name in ("accent", "muted", "chosen", "other")}


def changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> list[Change]:
    """The properties to set in `before` to turn it into `after`; lists of different length are set as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for key in [*before, *(key for key in after if key not in before)]:
            found += changes(before.get(key), after.get(key), (*path, key))
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and path[-1] != "colorscale":
        return [change for i, (a, b) in enumerate(zip(before, after, strict=True)) for change in changes(a, b, (*path, i))]
    return [] if before == after else [(list(path), after)]


def _without_numbers(drawn: Plain) -> dict[str, Any]:
    return {key: value for key, value in drawn.items() if key not in _FILLED_IN}
