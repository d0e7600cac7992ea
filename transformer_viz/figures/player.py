"""The step player: the map of one head and the candidates, one frame a step, all in one figure.

Frames are applied in the browser, so stepping costs no round trip. At step t the rows after t are blank, since they have not
happened yet. The frames of a small map hold its rows; a large map would be sent once for every step (256 tokens: 107 MB), so
its frames only move a cover over the rows to come.
`layout.meta` tells whoever hosts the figure which head is drawn, how many steps there are, and which one it stands at.
A run whose probabilities were not recorded has the map alone.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.errors import OptionError
from transformer_viz.figures import candidates, cells
from transformer_viz.figures.attention import bar_traces, bar_words, colour_axes, map_traces, most_of
from transformer_viz.figures.colour_scale import WEIGHTS, Quantity, Scale
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import margins, panel
from transformer_viz.figures.second_map import AXES, SecondMap
from transformer_viz.figures.theme import Style, base_layout
from transformer_viz.language import say
from transformer_viz.sentences.attribution_maps import full, is_of_heads, map_of
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

COVERED_FROM = 250_000
"""With more cells than this in all frames together, the map is sent once, under a cover."""
_TITLE = 26
"""Pixels above each of two maps."""
_MAP_SHARE = 0.66
_MODE_BAR = 26
"""Pixels above the candidates, where the buttons of Plotly appear."""
_MOST_TALL = 58
"""The figure grows with up to this many rows, to about 900 pixels; with more, rows become lower."""
_LEAST_HIGH = 230
"""The least height in pixels of a map without its labels."""


@plotly_figure
def player(
    trace: Trace,
    head: str | AttentionAddress = "cross",
    step: int = 0,
    *,
    with_answer: bool = True,
    scale: Scale = "fixed",
    measure: Attribution | None = None,
    style: Style = Style(),
) -> PlainFigure:
    """Draws the step player: the map of one head with the row of the step outlined, and the step's candidates.

    Args:
        trace: the run.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        step: the step that is drawn first, from 0.
        with_answer: ring the true key of each row.
        scale: what has the strongest colour: with `fixed` a weight of 1, with `head` the head's largest weight, with `log` 1 on
            a logarithmic scale that begins at 0.0001.
        measure: a result of `tv.attribute` of this kind. With a number for each head it replaces the weights; otherwise it is
            drawn as a second map.
        style: theme and size; the candidates of a narrow figure stand below the map instead of beside it.

    Returns:
        A Plotly figure with a frame for each step.

    Raises:
        OptionError: the run has no such kind, layer or head, or the measure is of another run.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> len(tv.figures.player(trace, "cross.2.3", step=1).frames)
        6
        >>> figure = tv.figures.player(trace, "cross.2.3", measure=tv.attribute(model, trace, "rollout"))
    """
    kind, layer, number = find_map(head, trace.grid)
    attention = trace.attentions[kind]
    n_queries, n_keys = len(attention.queries), len(attention.keys)
    is_large = kind != "encoder" and n_queries * n_queries * n_keys >= COVERED_FROM
    looks: dict[str, Any] = {"with_answer": with_answer, "scale": scale, "measure": measure, "is_covered": is_large}
    return Focus(trace, kind, layer, number, style, **looks).figure(step, range(len(trace.rows)))


def guess(trace: Trace, kind: Kind, layer: int, head: Head, step: int, scale: Scale, style: Style) -> PlainFigure:
    """The player of a covered run before a step is revealed, without frames.

    The rows before the step are drawn, its own is an empty outline, and the candidates are those of the step before.
    """
    focus = Focus(trace, kind, layer, head, style, with_answer=False, scale=scale, is_guess=True)
    return focus.figure(step - 1)


def scale_words(trace: Trace, kind: Kind, layer: int, head: Head, scale: Scale, measure: Attribution | None) -> str:
    """The scales of both maps in words, for figures without room for colour bars."""
    focus = Focus(trace, kind, layer, head, Style(), with_answer=False, measure=measure)
    words = bar_words(scale, most_of(focus.weights, focus.reasons), focus.of)
    return words if focus.beside is None else f"{words}; {focus.beside.scale_words()}"


class Focus:
    """The map of one kind, layer and head with its candidates: `traces` holds what never changes, `updates(step)` what a step
    changes in each.

    In a large map, which is covered, a step moves the cover over the rows to come. While somebody guesses, the row after the
    step is outlined, and the step is -1 before the first.
    """

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
        is_covered: bool = False,
        is_guess: bool = False,
        with_candidates: bool = True,
    ) -> None:
        self.trace, self.kind, self.layer, self.head = trace, kind, layer, head
        self.theme, self.size, self.style, self.scale = style.colours, style.size, style, scale
        self.is_covered, self.is_guess = is_covered, is_guess
        attention = trace.attentions[kind]
        self.weights, self.of = attention.head(layer, head), WEIGHTS
        self.reasons = attention.head_reasons(layer, head)
        self.hidden = attention.is_covered
        if self.hidden.any():
            self.weights = np.where(self.hidden[:, None], np.float32(np.nan), self.weights)
            self.reasons = np.where(self.hidden[:, None], np.uint8(0), self.reasons)
        # The row that somebody guesses is an empty outline.
        self.has_hidden = bool(self.hidden.any()) and not is_guess
        self.codes = cells.codes_in(self.reasons)
        # The encoder has read everything before the first step; its map never grows.
        self.grows = kind != "encoder"
        self.is_stepped = trace.is_stepped(kind)
        self.true_keys = trace.alignment if kind == "cross" and with_answer else (None,) * trace.n_steps
        self.steps = (trace.steps or candidates.at_masks(trace)) if with_candidates else ()
        self.beside: SecondMap | None = None
        if measure is not None and measure.kind == kind:
            values = map_of(measure, layer, head)
            if values.shape != self.weights.shape:
                shapes = f"{values.shape} for a map of {self.weights.shape}"
                raise OptionError(f"{measure.title} is {shapes}, so it is of another run")
            if is_of_heads(trace, measure):  # takes the place of the weights
                self.weights, self.of = values.astype(np.float32), Quantity("norm", full(measure), measure.title)
            else:
                self.beside = SecondMap(measure, values, full(measure), self.theme, self.size, is_covered=self.is_covered)
        self.columns, self.rows = cells.map_labels(trace, kind)
        self.is_crowded = cells.is_crowded(attention.keys)
        self.place = self._arranged()

    def figure(self, step: int, steps: Iterable[int] = ()) -> PlainFigure:
        """The figure at a step, with a frame for each of these steps."""
        traces = self.traces()
        drawn = [{**trace, **update} for trace, update in zip(traces, self.updates(step), strict=True)]
        frames = []
        for other in steps:
            # Frames name their trace type, or Plotly would take each for a scatter.
            updates = enumerate(zip(traces, self.updates(other), strict=True))
            changes = {i: {"type": trace["type"], **update} for i, (trace, update) in updates if update}
            layout = {"layout": {"yaxis2": candidates.names(self.steps[other])}} if self.steps else {}
            frames.append({"name": str(other), "data": [*changes.values()], "traces": [*changes], **layout})
        return PlainFigure([*drawn, *bar_traces(self.scale)], self.layout(step), frames)

    def traces(self) -> list[Plain]:
        weights, *masked = map_traces(self.weights, self.reasons, self.theme, say(self.of.title or self.of.word))
        marks = [*([self.row_trace()] if self.is_stepped else []), scatter(mode="markers", hoverinfo="skip")]
        cover = [cells.cover_trace(self.weights.shape, self.theme)] if self.is_covered else []
        bars = [candidates.bars(self.size, 2)] if self.steps else []
        # The second map has the same row and rings.
        second = [*self.beside.traces(), *panel(AXES, marks)] if self.beside else []
        hidden = [cells.covered_trace(self.hidden, self.weights.shape[1], self.theme)] if self.has_hidden else []
        return [*cover, {**weights, **self._ids()}, *masked, *hidden, *marks, *bars, *second]

    def updates(self, step: int) -> list[dict[str, Any]]:
        """Lists what a step changes in each trace of `traces`."""
        row = min(step + 1, self.trace.n_steps - 1) if self.is_guess else step
        outline = [{"y": [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5]}] if self.is_stepped else []
        marks = [*outline, self.rings(step)]
        bars = [candidates.at_step(self.steps[step] if step >= 0 else None, self.theme)] if self.steps else []
        second = [*self.beside.updates(step), *marks] if self.beside else []
        return [*self._map(step), *marks, *bars, *second]

    def row_trace(self) -> Plain:
        """The outline of a step's row. A line, since a step changes traces; Plotly would draw all axes anew for a shape."""
        right = self.weights.shape[1] - 0.5
        line = {"color": self.theme.accent, "width": 3 if self.style.large else 2.5}
        return scatter(x=[-0.5, right, right, -0.5, -0.5], mode="lines", line=line, hoverinfo="skip")

    def rings(self, step: int) -> dict[str, Any]:
        """A thin ring around the true key of every row that has happened, thicker in this one."""
        return cells.rings(self.true_keys[: step + 1], step, self.place["ring"], self.theme)

    def _map(self, step: int) -> list[dict[str, Any]]:
        """The rows that have happened; later ones are NaN and not masked, so that nothing is drawn there, or are covered."""
        weights, reasons = self.weights, self.reasons
        later = np.arange(len(weights))[:, None] > step
        if self.is_covered:
            n_others = 1 + len(self.codes) + bool(self.codes) + self.has_hidden
            return [{"z": cells.only(later, True)}, *({} for _ in range(n_others))]
        if self.grows:
            weights, reasons = np.where(later, np.float32(np.nan), weights), np.where(later, 0, reasons).astype(np.uint8)
        x, y = cells.hatch_outline(reasons > 0)
        grey = [{"z": cells.only(reasons, code)} for code in self.codes]
        hidden = [{"z": cells.only(self.hidden[:, None] & ~later, True)}] if self.has_hidden else []
        hatch = [{"x": x, "y": y}] if self.codes else []
        return [{"z": cells.visible(weights, reasons > 0)}, *grey, *hatch, *hidden]

    def layout(self, step: int) -> dict[str, Any]:
        theme, size, place = self.theme, self.size, self.place
        columns, rows = cells.token_axes(self.trace, self.kind, theme, size, (self.columns, self.rows))
        columns, rows = {**columns, "domain": place["x"]}, {**rows, "domain": place["y"]}
        # On a phone the candidates stand below the map, and their axis is the figure's last.
        room = margins(self.columns, self.rows, size, upright=self.is_crowded and place["y"][0] == 0)
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
            names = candidates.names(self.steps[step] if step >= 0 else None)
            layout["yaxis2"] = {**candidates.token_axis(theme, size, 2, place["y2"]), **names}
            if self.is_guess:
                words = (
                    say("candidates of step {step}: probability", step=step + 1)
                    if step >= 0
                    else say("candidates: after the first step")
                )
                layout["xaxis2"]["title"]["text"] = words
        if self.beside:
            layout |= self.beside.layout(columns, rows, place)
        about: dict[str, Any] = {"kind": self.kind, "layer": self.layer, "head": self.head, "step": step}
        about["steps"] = len(self.trace.rows)
        # What the numbers of the maps are, for scripts that read them aloud; nothing where they are weights.
        about |= {} if self.of is WEIGHTS else {"word": say(self.of.word), "full": self.of.full}
        about |= {"beside": self.beside.about} if self.beside else {}
        # The axes on which a token has no label before its step, those of the second map included.
        axes = [*(["yaxis"] if self.grows else []), *(["xaxis"] if self.kind == "decoder" else [])]
        about["unwritten"] = [*axes, *(f"{name}{AXES}" for name in axes if self.beside)]
        return {**layout, "meta": about}

    @property
    def ids(self) -> tuple[list[str], list[str]] | None:
        """The ids of each row's tokens and of each column's, in words, in a run that has ids because labels are not unique."""
        source, target, written = self.trace.source_ids, self.trace.target_ids, self.trace.output_ids
        rows, columns = (source if self.kind == "encoder" else target), (target if self.kind == "decoder" else source)
        if rows is None or columns is None:
            return None
        arrows = [f" → {number}" for number in written] if self.grows and written else [""] * len(rows)
        named = [
            say("query (id {number}{arrow})", number=number, arrow=arrow) for number, arrow in zip(rows, arrows, strict=True)
        ]
        return named, [say("key (id {number})", number=number) for number in columns]

    def _ids(self) -> dict[str, Any]:
        """The ids for the hover."""
        if self.ids is None:
            return {}
        rows, columns = self.ids
        text = [[f"{row}, {column}" for column in columns] for row in rows]
        number = f"{say(self.of.title or self.of.word)} <b>%{{z:.4f}}</b>"
        return {"text": text, "hovertemplate": f"{cells.row_and_column()}{number}<br>%{{text}}<extra></extra>"}

    def _arranged(self) -> dict[str, Any]:
        """Candidates stand right of the map, or below it in a narrow figure; so does a second map: `height` in pixels, the
        domains of the axes by their names, whether the colour bar has a `scale` beside it, and the width of a `ring` in pixels
        that fits into the smallest cell."""
        (n_queries, n_keys), narrow, large = self.weights.shape, self.style.narrow, self.style.large
        has_candidates, has_second = bool(self.steps), self.beside is not None
        # In a narrow figure Plotly turns the labels of columns.
        rows, upright = min(max(12, n_queries), _MOST_TALL), self.is_crowded or narrow
        below = margins(self.columns, (), self.size, upright=upright)["b"]
        # Large letters of 12 rows fit with the player into 720 pixels, and of 20 into 900.
        beside = (430 if large else 372) + max(0, rows - 14) * (14 if large else 12)
        place: dict[str, Any] = {"height": max(beside, _LEAST_HIGH + below), "x": [0, 1], "y": [0, 1], "scale": True}
        between = max(120, below + 40)
        if has_candidates and narrow:
            tall = 210 + between + 14 * rows
            share, first = 170 / tall, (170 + between) / tall
            place |= {"height": tall, "y": [first, 1], "x2": [0.02, 0.97], "y2": [0, share], "scale": False}
        elif has_candidates:
            place |= {"x": [0, _MAP_SHARE], "x2": [0.84 if has_second else 0.79, 1]}
            place["y2"] = [0, 1 - _MODE_BAR / place["height"]]
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
