"""Figures without their numbers, for the exported page, which holds the numbers of all heads once and fills them in.

A template has what all heads and steps of a kind share: axes, labels, colours, hovers. It is for the light theme; a dark page
draws each colour as `dark_colours` has it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.comparison.compare import IN_A, IN_B, compare
from transformer_viz.figures import candidates, cells, masks
from transformer_viz.figures.attention import bar_traces
from transformer_viz.figures.change import change
from transformer_viz.figures.colour_scale import Scale, stops
from transformer_viz.figures.difference import crossed_pattern, masked_in_both, not_in_both, signed_cells, signed_panel
from transformer_viz.figures.figure_data import Plain, plain, scatter
from transformer_viz.figures.maps import PAGE_WIDTH, side_by_side
from transformer_viz.figures.mosaic import HeadGrid, mosaic
from transformer_viz.figures.parts import panel
from transformer_viz.figures.player import Focus
from transformer_viz.figures.second_map import AXES, LATER, NOTHING_LEFT, SecondMap
from transformer_viz.figures.theme import DARK, LIGHT, Style
from transformer_viz.language import say
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

PAGE_COLOURS = {"accent": LIGHT.accent, "muted": LIGHT.muted, "chosen": LIGHT.chosen, "other": LIGHT.other}
"""The colours that the page's script sets by itself: of an outline, of captions, of candidates."""
_ROLES = ("paper", "ink", "muted", "grid", "masked", "hatch", "curtain", "accent", "ring", "chosen", "other")


def dark_colours(scale: Scale) -> dict[str, str]:
    """The colour of the dark theme for each one of the light theme that a template has; no two of these are alike."""
    pairs = [(getattr(LIGHT, role), getattr(DARK, role)) for role in _ROLES]
    pairs += [(light, dark) for light, dark, _ in masks.LOOKS.values()]
    pairs += zip(LIGHT.scale, DARK.scale, strict=True)
    pairs += [(light, dark) for (_, light), (_, dark) in zip(stops(LIGHT, scale), stops(DARK, scale), strict=True)]
    return dict(pairs)


def player_template(
    trace: Trace,
    kind: Kind,
    *,
    large: bool = False,
    with_answer: bool = True,
    scale: Scale = "fixed",
    codes: Sequence[int] | None = None,
    measure: Attribution | None = None,
    with_candidates: bool = True,
) -> dict[str, Any]:
    """The step player's parts: `weights`, `masked` by reason, `hatch`, `row` (None where no row is a step's), `bars` (None
    without candidates), `ids` (of rows and columns in words, or None), `second` (None without a measure beside the weights),
    `colourBar` (what a logarithmic one needs);
    `wide` and `narrow` have the `layout` and the `rings`.

    `codes` are reasons that may occur; by default those that do.
    """
    # Heads differ in their masks only where an edit made them; the page has a trace for every reason that occurs.
    attention = trace.attentions[kind]
    seen = seen_reasons(attention)
    reasons = seen if seen.ndim == 2 else seen[0, 0]
    covered = attention.is_covered

    def focus(*, narrow: bool) -> Focus:
        style = Style("light", large, narrow)
        looks: dict[str, Any] = {"scale": scale, "measure": measure, "with_candidates": with_candidates}
        return Focus(trace, kind, attention.layers[0], 0, style, with_answer=with_answer, **looks)

    def sized(focus: Focus) -> dict[str, Any]:
        rings = without_numbers({**scatter(mode="markers", hoverinfo="skip"), **focus.rings(0)})
        return {"layout": focus.layout(0), "rings": rings}

    wide = focus(narrow=False)
    weights, *others = wide.traces()
    bars = [without_numbers(drawn) for drawn in others if drawn["type"] == "bar"]
    return {
        "weights": without_numbers(weights),
        "masked": {
            str(code): without_numbers(cells.masked_trace(reasons, code, LIGHT)) for code in codes or cells.codes_in(seen)
        },
        "covered": without_numbers(cells.covered_trace(covered, len(attention.keys), LIGHT)) if covered.any() else None,
        "hatch": without_numbers(cells.hatch_trace(reasons > 0, LIGHT)),
        "row": without_numbers(wide.row_trace()) if wide.is_stepped else None,
        "bars": bars[0] if bars else None,
        "ids": wide.ids,
        "second": None if wide.beside is None else second_template(wide.beside),
        "colourBar": bar_traces(scale),
        "wide": sized(wide),
        "narrow": sized(focus(narrow=True)),
        "grows": wide.grows,
    }


def second_template(second: SecondMap) -> dict[str, Any]:
    """The second map's traces without their numbers, and how the page fills them in.

    What of a map cannot be asked depends on the head, so there is a trace for each reason; an empty one draws nothing.
    """
    has_later, grey = second.result.kind == "decoder", np.ones((1, 1), bool)
    reasons = [(True, say(LATER)), (False, say(NOTHING_LEFT))] if has_later else [(False, say(NOTHING_LEFT))]

    def placed(drawn: Plain) -> dict[str, Any]:
        return without_numbers(panel(AXES, [drawn])[0])

    return {
        "numbers": without_numbers(second.number_trace()),
        "greys": [{"isLater": is_later, "trace": placed(cells.grey(grey, words, LIGHT.masked))} for is_later, words in reasons],
        "dots": placed(cells.hatch_trace(grey, LIGHT, ".")),
        "signs": {"trace": placed(second.sign_trace()), "inks": [LIGHT.ink, LIGHT.paper]} if second.has_signs else None,
        "full": second.full,
        "isByRow": second.is_by_row,
        "hasLater": has_later,
    }


def mosaic_template(
    trace: Trace, kind: Kind, *, large: bool = False, scale: Scale = "fixed", measure: Attribution | None = None
) -> dict[str, Any]:
    """Draws all heads of a kind as small maps, with their numbers, none of them outlined."""
    figure = plain(mosaic)(trace, kind, scale=scale, measure=measure, style=Style("light", large))
    return {"data": figure.data, "layout": figure.layout}


def tile_template(trace: Trace, kind: Kind, *, large: bool = False) -> dict[str, Any]:
    """The settings for small maps of a run whose tokens the page learns only when somebody types a text."""
    attention = trace.attentions[kind]
    n_layers, n_heads = attention.weights.shape[:2]
    grid, numbers = HeadGrid(attention.layers, (n_heads, 1, 1), None, None), np.zeros((n_layers, n_heads, 1, 1), np.float32)
    scale = {"zmin": 0, "zmax": 1, "colorscale": stops(LIGHT, "fixed")}
    weights, masked = grid.exact_maps(numbers, scale, [(numbers == 0, LIGHT.masked)])
    figure = grid.figure([], [], "", kind, (1, 1), Style("light", large), None)
    frames, captions = figure.data
    return {
        "map": without_numbers(weights),
        "masked": without_numbers(masked),
        "frames": frames,
        "captions": captions,
        "layout": figure.layout,
        "title": kind_title(trace, kind, in_full=False),
    }


def difference_template(a: Trace, b: Trace, kind: Kind, *, limit: float = 1.0, large: bool = False) -> dict[str, Any]:
    """The parts of a map of A − B: `numbers` by who masks a cell (0 for neither), `crossed`, `both` and `broken` without their
    numbers; `absent` with them; `pairs` of rows and of columns; `wide` and `narrow` layouts."""
    comparison = compare(a, b)
    laid = comparison.one_head(HeadAddress(kind, comparison.layers(kind)[0], 0))
    all_cells = np.ones(laid.present.shape, bool)

    def bare(*drawn: Plain) -> list[dict[str, Any]]:
        return [without_numbers(each) for each in panel(1, list(drawn))]

    def layout(*, narrow: bool) -> dict[str, Any]:
        style = Style("light", large, narrow)
        return side_by_side([signed_panel(comparison, kind, limit, [])], style, width=PAGE_WIDTH // 3).layout

    return {
        "pairs": comparison.pairs(kind),
        "numbers": {str(code): bare(signed_cells(laid.difference, code))[0] for code in (0, IN_A, IN_B)},
        "crossed": bare(*crossed_pattern(all_cells, LIGHT))[0],
        "both": bare(*masked_in_both(all_cells, LIGHT)),
        "broken": bare(*cells.broken(np.where(all_cells, np.nan, 0), LIGHT))[0],
        "absent": panel(1, not_in_both(laid.present, LIGHT)),
        "wide": layout(narrow=False),
        "narrow": layout(narrow=True),
    }


def change_template(before: Trace, after: Trace, kind: Kind, *, height: int, large: bool = False) -> dict[str, Any]:
    """Makes a `difference_template` of `after` minus `before`, in the rows and columns of `mask` for the run `after`.

    At the same height, the rows of both figures are level.
    """
    template, n_after = difference_template(after, before, kind, large=large), after.attentions[kind].weights.shape[2:]
    of_both = tuple(map(min, n_after, before.attentions[kind].weights.shape[2:]))
    words: Any = {"names": ("after", "before"), "axis": "coloraxis"}
    layout = plain(change)(before, after, kind, height=height, style=Style("light", large)).layout
    layout["coloraxis"]["colorbar"]["title"]["text"] = say("after − before")
    return {
        **template,
        "pairs": [[(at, at if at < both else None) for at in range(n)] for n, both in zip(n_after, of_both, strict=True)],
        "numbers": {str(code): without_numbers(signed_cells(np.zeros((1, 1)), code, **words)) for code in (0, IN_A, IN_B)},
        "absent": [],
        "wide": layout,
        "narrow": layout,
    }


def difference_dark_colours() -> dict[str, str]:
    """The colours of the dark theme by those of the light one, like `dark_colours`, for a map of A − B."""
    pairs = [(getattr(LIGHT, role), getattr(DARK, role)) for role in (*_ROLES, "broken")]
    return {**dict(zip(LIGHT.diverging, DARK.diverging, strict=True)), **dict(pairs)}


def candidate_steps(trace: Trace) -> list[dict[str, Any]]:
    """The candidates' bars of each step: `x`, `text` and its place, `customdata`, tick `names`, and the `chosen` one."""
    steps = []
    for step in trace.steps or candidates.at_masks(trace):
        bars, names = candidates.at_step(step, LIGHT), candidates.names(step)["ticktext"]
        chosen = [colour == LIGHT.chosen for colour in bars["marker"]["color"]]
        kept = {key: bars[key] for key in ("x", "text", "textposition", "customdata")}
        steps.append({**kept, "names": names, "chosen": chosen})
    return steps


def mask_template(trace: Trace, kind: Kind, codes: Sequence[int] | None = None, *, large: bool = False) -> dict[str, Any]:
    """A mask's figure, and the words of its hover by reason; `codes` as for `player_template`."""
    codes = [0, *(codes or cells.codes_in(seen_reasons(trace.attentions[kind])))]
    # One cell stands for all, since numbers are left out. Where heads have masks of their own, the legend is of them all.
    return {
        "heatmap": without_numbers(masks.reason_cells(np.zeros((1, 1), np.uint8), "light")),
        "legend": masks.reason_legend(codes, "light"),
        "layout": masks.mask_layout(trace, kind, kind_title(trace, kind, in_full=False), Style("light", large)),
        "words": {str(code): say(masks.LOOKS[code][2]) for code in codes},
    }


def seen_reasons(attention: Attention) -> np.ndarray:
    """The reasons of masks; none for rows that are covered until somebody answers."""
    return np.where(attention.is_covered[:, None], np.uint8(0), attention.reasons)


def without_numbers(drawn: Plain) -> dict[str, Any]:
    """A trace without what differs from head to head and step to step."""
    return {key: value for key, value in drawn.items() if key not in ("z", "x", "y", "text", "customdata")}
