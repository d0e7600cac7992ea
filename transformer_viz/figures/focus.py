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
from transformer_viz.figures.player_layout import TITLE, arrange_player
from transformer_viz.figures.second_map import AXES, SecondMap
from transformer_viz.figures.theme import Style, base_layout, token_labels
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace


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
        self.beside = None if measure is None or measure.kind != kind else self._second_map(measure)
        below = margins(token_labels(attention.keys), (), self.size, upright=cells.is_crowded(attention.keys))["b"]
        has = {"has_candidates": bool(self.steps), "has_second": self.beside is not None}
        self.place = arrange_player(self.weights.shape, below, style, **has)

    def _second_map(self, measure: Attribution) -> SecondMap | None:
        """The measure as a map of its own; one of heads takes the place of the weights instead."""
        values = map_of(measure, self.layer, self.head)
        if values.shape != self.weights.shape:
            shapes = f"{values.shape} for a map of {self.weights.shape}"
            raise OptionError(f"{measure.title} is {shapes}, so it is of another run")
        if is_of_heads(self.trace, measure):
            self.weights, self.of = values.astype(np.float32), Quantity("norm", full(measure), measure.title)
            return None
        return SecondMap(measure, values, full(measure), self.theme, self.size, is_covered=self.is_covered)

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
            "margin": {**room, **({"t": TITLE} if self.beside else {})},
            **colour_axes(theme, size, place["x"][1] + 0.01, shows=place["scale"], **bar),
            "xaxis": columns,
            "yaxis": rows,
        }
        if self.steps:
            layout["xaxis2"] = candidates.probability_axis(theme, size, 2, place["x2"])
            layout["yaxis2"] = {**candidates.token_axis(theme, size, 2, place["y2"]), **self._names(step)}
        if self.beside:
            layout |= self.beside.layout(columns, rows, place)
        about = {"kind": kind, "layer": self.layer, "head": self.head, "steps": len(self.trace.rows), "step": step}
        return {**layout, "meta": {**about, **self._about()}}

    def _about(self) -> dict[str, Any]:
        """What the numbers of the maps are, for scripts that read them aloud; nothing where they are weights."""
        instead = {} if self.of is WEIGHTS else {"word": self.of.word, "full": self.of.full}
        return {**instead, **({} if self.beside is None else {"beside": self.beside.about}), "unwritten": self._unwritten()}

    def _unwritten(self) -> list[str]:
        """The axes on which a token has no label before its step, those of the second map included."""
        axes = [*(["yaxis"] if self.grows else []), *(["xaxis"] if self.kind == "decoder" else [])]
        return [*axes, *(f"{name}{AXES}" for name in axes if self.beside)]

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
        at = [(key, t) for t, key in enumerate(self.true_keys[: step + 1]) if key is not None]
        marker = {
            "symbol": "circle-open",
            "size": self.place["ring"],
            "color": self.theme.ring,
            "line": {"width": [3 if t == step else 1.5 for _, t in at], "color": self.theme.ring},
        }
        return {"x": [key for key, _ in at], "y": [t for _, t in at], "marker": marker}

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
