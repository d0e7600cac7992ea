"""The focus map of the player with its candidates: what it is drawn with, and what each step changes in that.

At step t the rows after t are blank: nothing is drawn before it happened. A frame of a small map holds its rows; a large map
would travel once for every step (256 tokens: 107 MB), so its frames only move a cover over the rows to come.
`layout.meta` tells whoever hosts the figure which head is drawn, how many steps there are, and which one it stands at.
A run whose probabilities were not recorded has the map alone.
"""

from typing import Any

import numpy as np

from transformer_viz.analysis.attributed import full, is_of_heads, map_of
from transformer_viz.analysis.words import axis_noun
from transformer_viz.errors import OptionError
from transformer_viz.figures import candidates, cells
from transformer_viz.figures.arrangement import TITLE, Arrangement
from transformer_viz.figures.attention import colour_axes, map_traces, most_of
from transformer_viz.figures.beside import AXES, Beside
from transformer_viz.figures.margins import margins
from transformer_viz.figures.plain import Plain, scatter
from transformer_viz.figures.shades import WEIGHTS, Quantity, Scale
from transformer_viz.figures.theme import Theme, base_layout, labels
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace


class Focus:
    """One focus. `traces` is what never changes, `updates` what a step changes in each of them."""

    place: Arrangement
    scale: Scale
    ring: float
    """The width of a ring, in pixels."""
    of: Quantity = WEIGHTS
    beside: Beside | None = None
    """The second map."""

    def __init__(self, trace: Trace, kind: Kind, layer: int, head: Head, theme: Theme, size: int, with_answer: bool) -> None:
        self.trace, self.theme, self.size = trace, theme, size
        self.kind, self.layer, self.head = kind, layer, head
        self.weights = trace.attentions[kind].head(layer, head)
        self.reasons = trace.attentions[kind].head_reasons(layer, head)
        self.codes = cells.codes_in(self.reasons)
        self.steps = trace.steps or candidates.at_masks(trace)
        # The encoder has read everything before the first step; its map never grows.
        self.grows = kind != "encoder"
        self.is_stepped = trace.is_stepped(kind)
        self.true_keys = trace.alignment if kind == "cross" and with_answer else (None,) * trace.n_steps

    def show_measure(self, measure: Attribution | None) -> None:
        """A measure of this kind: in the place of the weights where it is one of heads, else as a second map."""
        if measure is None or measure.kind != self.kind:
            return
        values = map_of(measure, self.layer, self.head)
        if values.shape != self.weights.shape:
            shapes = f"{values.shape} for a map of {self.weights.shape}"
            raise OptionError(f"{measure.title} is {shapes}, so it is of another run")
        if is_of_heads(self.trace, measure):
            self.weights, self.of = values.astype(np.float32), Quantity("norm", full(measure), measure.title)
        else:
            self.beside = Beside(measure, values, full(measure), self.theme, self.size)

    def traces(self) -> list[Plain]:
        row = [self.row_trace()] if self.is_stepped else []
        bars = [self._bars()] if self.steps else []
        maps = map_traces(self.weights, self.reasons, self.theme, self.of.title or self.of.word)
        return [*maps, *row, self.ring_trace(), *bars, *self._second()]

    def _second(self) -> list[Plain]:
        """The second map, with the same row and rings."""
        if self.beside is None:
            return []
        row = [self.row_trace()] if self.is_stepped else []
        marks = [{**trace, "xaxis": f"x{AXES}", "yaxis": f"y{AXES}"} for trace in (*row, self.ring_trace())]
        return [*self.beside.traces(), *marks]

    def updates(self, step: int) -> list[dict[str, Any]]:
        """What a step changes in each trace of `traces`."""
        row = [self._row(step)] if self.is_stepped else []
        bars = [self._candidates(step)] if self.steps else []
        second = [*self.beside.updates(step), *row, self.rings(step)] if self.beside else []
        return [*self._map(step), *row, self.rings(step), *bars, *second]

    def _map(self, step: int) -> list[dict[str, Any]]:
        weights, reasons = self._until(step)
        x, y = cells.hatch_outline(reasons > 0)
        grey = [{"z": cells.only(reasons, code)} for code in self.codes]
        hatch = [{"x": x, "y": y}] if self.codes else []
        return [{"z": cells.visible(weights, reasons > 0)}, *grey, *hatch]

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
        kind, theme, place = self.kind, self.theme, self.place
        names = cells.query_labels(self.trace.attentions[kind].queries, self.trace.output_tokens if self.grows else None)
        candidates = (
            {
                "xaxis2": {**self._probability_axis(), "domain": place["x2"]},
                "yaxis2": {**self._candidate_axis(), **self._names(step), "domain": place["y2"]},
            }
            if self.steps
            else {}
        )
        keys, looks = self.trace.attentions[kind].keys, {"noun": axis_noun(self.trace)}
        columns = cells.key_axis(keys, kind, theme, self.size, **looks, domain=place["x"])
        rows = cells.query_axis(names, self.trace.attentions[kind].queries, kind, theme, self.size, **looks, domain=place["y"])
        # On a phone the candidates stand below the map, and their axis is the figure's last.
        upright = cells.is_crowded(keys) and place["y"][0] == 0
        return {
            **base_layout(theme, self.size),
            "height": place["height"],
            "margin": {**margins(labels(keys), names, self.size, upright=upright), **({"t": TITLE} if self.beside else {})},
            **self._colours(),
            "xaxis": columns,
            "yaxis": rows,
            **candidates,
            **(self.beside.layout(columns, rows, place) if self.beside else {}),
            "meta": {
                "kind": kind,
                "layer": self.layer,
                "head": self.head,
                "steps": len(self.trace.rows),
                "step": step,
                **self._ids(),
                **self._about(),
            },
        }

    def _colours(self) -> dict[str, Any]:
        place, most = self.place, most_of(self.weights, self.reasons)
        looks: dict[str, Any] = {"scale": self.scale, "most": most, "shows": place["scale"], "of": self.of}
        return colour_axes(self.theme, self.size, place["x"][1] + 0.01, **looks)

    def _about(self) -> dict[str, Any]:
        """For whoever reads numbers off the maps: what they are, unless they are weights, and those of the second map."""
        instead = {} if self.of is WEIGHTS else {"word": self.of.word, "full": self.of.full}
        return {**instead, **({} if self.beside is None else {"beside": self.beside.about})}

    def _ids(self) -> dict[str, Any]:
        """For the hover, what stands behind the labels of columns and rows where the run has ids."""
        source, target, written = self.trace.source_ids, self.trace.target_ids, self.trace.output_ids
        rows, columns = (source if self.kind == "encoder" else target), (target if self.kind == "decoder" else source)
        if rows is None or columns is None:
            return {}
        arrows = [f" → {number}" for number in written] if self.grows and written else [""] * len(rows)
        named = [f" (id {number}{arrow})" for number, arrow in zip(rows, arrows, strict=True)]
        return {"ids": {"x": [f" (id {number})" for number in columns], "y": named}}

    def _until(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have happened; later ones are NaN and not masked, so that nothing is drawn there."""
        if not self.grows:
            return self.weights, self.reasons
        later = np.arange(len(self.weights))[:, None] > step
        return np.where(later, np.float32(np.nan), self.weights), np.where(later, 0, self.reasons).astype(np.uint8)

    def row_trace(self) -> Plain:
        """The outline of a step's row. A line, since a step changes traces; Plotly would draw all axes anew for a shape."""
        right = len(self.trace.attentions[self.kind].keys) - 0.5
        line = {"color": self.theme.accent, "width": 3 if self.size > 13 else 2.5}
        return scatter(x=[-0.5, right, right, -0.5, -0.5], mode="lines", line=line, hoverinfo="skip", cliponaxis=False)

    def _row(self, step: int) -> dict[str, Any]:
        top, bottom = step - 0.5, step + 0.5
        return {"y": [top, top, bottom, bottom, top]}

    def ring_trace(self) -> Plain:
        return scatter(mode="markers", hoverinfo="skip", cliponaxis=False)

    def rings(self, step: int) -> dict[str, Any]:
        """A thin ring around the true key of every row that has happened, thicker in this one."""
        at = [(key, t) for t, key in enumerate(self.true_keys[: step + 1]) if key is not None]
        marker = {
            "symbol": "circle-open",
            "size": self.ring,
            "color": self.theme.ring,
            "line": {"width": [3 if t == step else 1.5 for _, t in at], "color": self.theme.ring},
        }
        return {"x": [key for key, _ in at], "y": [t for _, t in at], "marker": marker}

    def _bars(self) -> Plain:
        return candidates.bars(self.size, "2")

    def _candidates(self, step: int) -> dict[str, Any]:
        return candidates.at_step(self.steps[step], self.theme)

    def _names(self, step: int) -> dict[str, Any]:
        return candidates.names(self.steps[step])

    def _candidate_axis(self) -> dict[str, Any]:
        return candidates.token_axis(self.theme, self.size, "2")

    def _probability_axis(self) -> dict[str, Any]:
        return candidates.probability_axis(self.theme, self.size, "2")


class GuessFocus(Focus):
    """A covered run after a step: the outline is that of the row that is to be guessed. Step -1 is before the first."""

    def _row(self, step: int) -> dict[str, Any]:
        return super()._row(min(step + 1, self.trace.n_steps - 1))

    def _candidates(self, step: int) -> dict[str, Any]:
        return super()._candidates(step) if step >= 0 else {"x": [], "y": []}

    def _names(self, step: int) -> dict[str, Any]:
        return super()._names(step) if step >= 0 else {"tickvals": [], "ticktext": []}

    def layout(self, step: int) -> dict[str, Any]:
        layout = super().layout(step)
        if self.trace.steps:
            words = (
                f"candidates of step {step + 1}: probability (log scale)" if step >= 0 else "candidates: after the first step"
            )
            layout["xaxis2"]["title"] = {**layout["xaxis2"]["title"], "text": words}
        return layout


class CoveredFocus(Focus):
    """A large map: its numbers are there from the beginning, and a step moves the cover over the rows to come."""

    def traces(self) -> list[Plain]:
        return [cells.cover_trace(self.weights.shape, self.theme), *super().traces()]

    def show_measure(self, measure: Attribution | None) -> None:
        super().show_measure(measure)
        if self.beside is not None:
            self.beside.is_covered = True

    def map_types(self) -> list[str]:
        return ["heatmap", *super().map_types()]

    def _map(self, step: int) -> list[dict[str, Any]]:
        to_come = np.arange(len(self.weights))[:, None] > step
        return [{"z": np.where(to_come, np.float32(1), np.float32(np.nan))}, *({} for _ in super().map_types())]
