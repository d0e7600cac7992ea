"""The large map of the step player with its candidates: its traces, and what each step changes in them.

At step t the rows after t are blank, since they have not happened yet. The frames of a small map hold its rows; a large map
would be sent once for every step (256 tokens: 107 MB), so its frames only move a cover over the rows to come.
`layout.meta` tells whoever hosts the figure which head is drawn, how many steps there are, and which one it stands at.
A run whose probabilities were not recorded has the map alone.
"""

from typing import Any

import numpy as np

from transformer_viz.analysis.attribution_maps import full, is_of_heads, map_of
from transformer_viz.errors import OptionError
from transformer_viz.figures import candidates, cells
from transformer_viz.figures.attention import colour_axes, map_traces, most_of
from transformer_viz.figures.colour_scale import WEIGHTS, Quantity, Scale
from transformer_viz.figures.figure_data import Plain, scatter
from transformer_viz.figures.margins import margins
from transformer_viz.figures.parts import panel
from transformer_viz.figures.second_map import AXES, SecondMap
from transformer_viz.figures.theme import Style, base_layout, token_labels
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

Arrangement = dict[str, Any]
"""`height` in pixels, the domains of the axes by their names, whether the colour bar has a `scale` beside it, and the width of
a `ring` in pixels that fits into the smallest cell."""
_TITLE = 26
"""Pixels above each of two maps."""
_MAP_SHARE = 0.66
_MODE_BAR = 26
"""Pixels above the candidates, where the buttons of Plotly appear."""
_MOST_TALL = 58
"""The figure grows with up to this many rows, to about 900 pixels; with more, rows become lower."""
_LEAST_HIGH = 230
"""The least height in pixels of a map without its labels."""


class Focus:
    """The map of one kind, layer and head. `traces` holds what never changes, `updates(step)` what a step changes in each."""

    is_covered = False
    """Whether a step moves a cover over the rows to come, as in a large map, instead of sending the rows that are there."""

    def __init__(
        self,
        trace: Trace,
        kind: Kind,
        layer: int,
        head: Head,
        style: Style,
        *,
        with_answer: bool,
        scale: Scale = "fixed",
        measure: Attribution | None = None,
    ) -> None:
        self.trace, self.theme, self.size, self.style, self.scale = trace, style.colours, style.size, style, scale
        self.kind, self.layer, self.head = kind, layer, head
        attention = trace.attentions[kind]
        self.weights, self.of = attention.head(layer, head), WEIGHTS
        self.reasons = attention.head_reasons(layer, head)
        self.codes = cells.codes_in(self.reasons)
        self.steps = trace.steps or candidates.at_masks(trace)
        # The encoder has read everything before the first step; its map never grows.
        self.grows = kind != "encoder"
        self.is_stepped = trace.is_stepped(kind)
        self.true_keys = trace.alignment if kind == "cross" and with_answer else (None,) * trace.n_steps
        self.beside: SecondMap | None = None
        if measure is not None and measure.kind == kind:
            values = map_of(measure, layer, head)
            if values.shape != self.weights.shape:
                shapes = f"{values.shape} for a map of {self.weights.shape}"
                raise OptionError(f"{measure.title} is {shapes}, so it is of another run")
            if is_of_heads(trace, measure):  # takes the place of the weights
                self.weights, self.of = values.astype(np.float32), Quantity("norm", full(measure), measure.title)
            else:
                looks = full(measure), self.theme, self.size
                self.beside = SecondMap(measure, values, *looks, is_covered=self.is_covered)
        below = margins(token_labels(attention.keys), (), self.size, upright=cells.is_crowded(attention.keys))["b"]
        has = {"has_candidates": bool(self.steps), "has_second": self.beside is not None}
        self.place = arrange_player(self.weights.shape, below, style, **has)

    def traces(self) -> list[Plain]:
        marks = [*([self.row_trace()] if self.is_stepped else []), self.ring_trace()]
        bars = [candidates.bars(self.size, 2)] if self.steps else []
        weights, *masked = map_traces(self.weights, self.reasons, self.theme, self.of.title or self.of.word)
        # The second map has the same row and rings.
        second = [*self.beside.traces(), *panel(AXES, marks)] if self.beside else []
        return [{**weights, **self._ids()}, *masked, *marks, *bars, *second]

    def updates(self, step: int) -> list[dict[str, Any]]:
        """What a step changes in each trace of `traces`."""
        marks = [*([self._row(step)] if self.is_stepped else []), self.rings(step)]
        bars = [self._candidates(step)] if self.steps else []
        second = [*self.beside.updates(step), *marks] if self.beside else []
        return [*self._map(step), *marks, *bars, *second]

    def _map(self, step: int) -> list[dict[str, Any]]:
        """The rows that have happened; later ones are NaN and not masked, so that nothing is drawn there."""
        weights, reasons = self.weights, self.reasons
        if self.grows:
            later = np.arange(len(weights))[:, None] > step
            weights, reasons = np.where(later, np.float32(np.nan), weights), np.where(later, 0, reasons).astype(np.uint8)
        x, y = cells.hatch_outline(reasons > 0)
        grey = [{"z": cells.only(reasons, code)} for code in self.codes]
        return [{"z": cells.visible(weights, reasons > 0)}, *grey, *([{"x": x, "y": y}] if self.codes else [])]

    def map_types(self) -> list[str]:
        """What kinds of traces `_map` changes."""
        return ["heatmap"] * (1 + len(self.codes)) + ["scatter"] * bool(self.codes)

    def frame(self, step: int) -> dict[str, Any]:
        """A step as plain data. Frames name their trace type, or Plotly would take each for a scatter."""
        marks = ["scatter"] * (1 + self.is_stepped)
        second = [*self.beside.types, *marks] if self.beside else []
        types = [*self.map_types(), *marks, *["bar"] * bool(self.steps), *second]
        updates = enumerate(zip(types, self.updates(step), strict=True))
        changes = {i: {"type": kind, **update} for i, (kind, update) in updates if update}
        layout = {"layout": {"yaxis2": self._names(step)}} if self.steps else {}
        return {"name": str(step), "data": [*changes.values()], "traces": [*changes], **layout}

    def layout(self, step: int) -> dict[str, Any]:
        kind, theme, size, place = self.kind, self.theme, self.size, self.place
        columns, rows = cells.token_axes(self.trace, kind, theme, size)
        columns, rows = {**columns, "domain": place["x"]}, {**rows, "domain": place["y"]}
        keys = self.trace.attentions[kind].keys
        # On a phone the candidates stand below the map, and their axis is the figure's last.
        upright = cells.is_crowded(keys) and place["y"][0] == 0
        room = margins(token_labels(keys), cells.query_labels(self.trace, kind), size, upright=upright)
        bar: dict[str, Any] = {"scale": self.scale, "most": most_of(self.weights, self.reasons), "of": self.of}
        layout = {
            **base_layout(theme, size),
            "height": place["height"],
            "margin": {**room, **({"t": _TITLE} if self.beside else {})},
            **colour_axes(theme, size, place["x"][1] + 0.01, shows=place["scale"], **bar),
            "xaxis": columns,
            "yaxis": rows,
        }
        if self.steps:
            layout["xaxis2"] = candidates.probability_axis(theme, size, 2, place["x2"])
            layout["yaxis2"] = {**candidates.token_axis(theme, size, 2, place["y2"]), **self._names(step)}
        if self.beside:
            layout |= self.beside.layout(columns, rows, place)
        about: dict[str, Any] = {"kind": kind, "layer": self.layer, "head": self.head, "step": step}
        about["steps"] = len(self.trace.rows)
        # What the numbers of the maps are, for scripts that read them aloud; nothing where they are weights.
        about |= {} if self.of is WEIGHTS else {"word": self.of.word, "full": self.of.full}
        about |= {"beside": self.beside.about} if self.beside else {}
        # The axes on which a token has no label before its step, those of the second map included.
        axes = [*(["yaxis"] if self.grows else []), *(["xaxis"] if self.kind == "decoder" else [])]
        about["unwritten"] = [*axes, *(f"{name}{AXES}" for name in axes if self.beside)]
        return {**layout, "meta": about}

    def _ids(self) -> dict[str, Any]:
        """The ids of tokens for the hover, in a run that has ids because labels are not unique."""
        source, target, written = self.trace.source_ids, self.trace.target_ids, self.trace.output_ids
        rows, columns = (source if self.kind == "encoder" else target), (target if self.kind == "decoder" else source)
        if rows is None or columns is None:
            return {}
        arrows = [f" → {number}" for number in written] if self.grows and written else [""] * len(rows)
        named = [f"query (id {number}{arrow})" for number, arrow in zip(rows, arrows, strict=True)]
        text = [[f"{row}, key (id {number})" for number in columns] for row in named]
        number = f"{self.of.title or self.of.word} <b>%{{z:.4f}}</b>"
        return {"text": text, "hovertemplate": f"{cells.ROW_AND_COLUMN}{number}<br>%{{text}}<extra></extra>"}

    def row_trace(self) -> Plain:
        """The outline of a step's row. A line, since a step changes traces; Plotly would draw all axes anew for a shape."""
        right = self.weights.shape[1] - 0.5
        line = {"color": self.theme.accent, "width": 3 if self.style.large else 2.5}
        return scatter(x=[-0.5, right, right, -0.5, -0.5], mode="lines", line=line, hoverinfo="skip")

    def _row(self, step: int) -> dict[str, Any]:
        top, bottom = step - 0.5, step + 0.5
        return {"y": [top, top, bottom, bottom, top]}

    def ring_trace(self) -> Plain:
        return scatter(mode="markers", hoverinfo="skip")

    def rings(self, step: int) -> dict[str, Any]:
        """A thin ring around the true key of every row that has happened, thicker in this one."""
        return cells.rings(self.true_keys[: step + 1], step, self.place["ring"], self.theme)

    def _candidates(self, step: int) -> dict[str, Any]:
        return candidates.at_step(self.steps[step], self.theme)

    def _names(self, step: int) -> dict[str, Any]:
        return candidates.names(self.steps[step])


class GuessFocus(Focus):
    """The map while somebody guesses, after `step` (-1 = before the first): the next row, to be guessed, is outlined."""

    def _row(self, step: int) -> dict[str, Any]:
        return super()._row(min(step + 1, self.trace.n_steps - 1))

    def _candidates(self, step: int) -> dict[str, Any]:
        return super()._candidates(step) if step >= 0 else {"x": [], "y": []}

    def _names(self, step: int) -> dict[str, Any]:
        return super()._names(step) if step >= 0 else {"tickvals": [], "ticktext": []}

    def layout(self, step: int) -> dict[str, Any]:
        layout = super().layout(step)
        if self.trace.steps:
            words = f"candidates of step {step + 1}: probability" if step >= 0 else "candidates: after the first step"
            layout["xaxis2"]["title"] = {**layout["xaxis2"]["title"], "text": words}
        return layout


class CoveredFocus(Focus):
    """A large map: its numbers are there from the beginning, and a step moves the cover over the rows to come."""

    is_covered = True

    def traces(self) -> list[Plain]:
        return [cells.cover_trace(self.weights.shape, self.theme), *super().traces()]

    def map_types(self) -> list[str]:
        return ["heatmap", *super().map_types()]

    def _map(self, step: int) -> list[dict[str, Any]]:
        to_come = np.arange(len(self.weights))[:, None] > step
        return [{"z": cells.only(to_come, True)}, *({} for _ in super().map_types())]


def arrange_player(shape: tuple[int, int], below: int, style: Style, *, has_candidates: bool, has_second: bool) -> Arrangement:
    """Candidates stand right of the map, or below it in a narrow figure; so does a second map.

    Args:
        shape: how many queries and keys a map has.
        below: pixels that the labels of the keys take below a map.
        style: of the figure.
        has_candidates: whether there are any.
        has_second: whether there is a second map.
    """
    n_queries, n_keys = shape
    rows, narrow = min(max(12, n_queries), _MOST_TALL), style.narrow
    # Large letters of 12 rows fit with the player into 720 pixels, and of 20 into 900.
    beside = (430 if style.large else 372) + max(0, rows - 14) * (14 if style.large else 12)
    place: Arrangement = {"height": max(beside, _LEAST_HIGH + below), "x": [0, 1], "y": [0, 1], "scale": True}
    between = max(120, below + 40)
    if has_candidates and narrow:
        tall = 210 + between + 14 * rows
        share, first = 170 / tall, (170 + between) / tall
        place |= {"height": tall, "y": [first, 1], "x2": [0.02, 0.97], "y2": [0, share], "scale": False}
    elif has_candidates:
        place |= {"x": [0, _MAP_SHARE], "x2": [0.84 if has_second else 0.79, 1], "y2": [0, 1 - _MODE_BAR / place["height"]]}
    if has_second and not narrow:
        place |= {"height": place["height"] + _TITLE, "x": [0, 0.33], "x3": [0.42, 0.75], "y3": place["y"]}
    elif has_second:
        height, between = place["height"], max(120, below + 40 + _TITLE)
        high = place["y"][1] * height - place["y"][0] * height
        tall = height + between + high
        first = (tall - high) / tall
        place |= {"y2": [0, place["y2"][1] * height / tall]} if has_candidates else {}
        place |= {"height": round(tall + _TITLE), "y": [first, 1]}
        place |= {"x3": place["x"], "y3": [first - (between + high) / tall, first - between / tall]}
    # Pixels that the labels take from the figure's height, and the least width of the map between them.
    labels, width = (110, 250) if narrow else (90, 400)
    bottom, top = place["y"]
    cell = min((place["height"] - labels) * (top - bottom) / n_queries, width / n_keys)
    return {**place, "ring": max(5, min(24, round(cell) - 3))}
