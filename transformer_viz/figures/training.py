"""The figures of a training: its curves, the maps of its snapshots, and their playback."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.errors import OptionError
from transformer_viz.figures import candidates, cells
from transformer_viz.figures.attention import colour_axes, map_traces
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.maps import share_scale
from transformer_viz.figures.mosaic import Grid
from transformer_viz.figures.page_templates import seen_reasons, without_numbers
from transformer_viz.figures.parts import axis, frame, on_axes, panel, panel_axes, words_at
from transformer_viz.figures.theme import Style, base_layout, escape
from transformer_viz.language import say
from transformer_viz.numbers_in_words import compact_words, percent_words
from transformer_viz.schema import whole_number
from transformer_viz.terms import Kind, head_label, row_labels
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.training.result import Course, Row, TrainingSnapshot, best_head, course, head_masses


@plotly_figure
def training(rows: Sequence[Row], steps: int, *, style: Style = Style()) -> PlainFigure:
    """Draws the course of a training in two panels over the steps: the loss (logarithmic), and shares from 0 to 1.

    Args:
        rows: rows of a checkpoint's history; every one has `step` and `loss`, some have `held_out` and `mass_LAYER_HEAD`.
        steps: where the axis ends.
        style: theme and size; the panels of a narrow figure stand below each other.
    """
    colours, size, narrow = style.colours, style.size - 1, style.narrow
    right = 0.0 if narrow else 0.55
    drawn = [
        scatter(
            x=[row["step"] for row in rows],
            y=[row["loss"] for row in rows],
            mode="lines",
            line={"color": colours.chosen, "width": 2},
            hovertemplate=say("step %{{x}}<br>loss <b>%{{y:.4f}}</b><extra></extra>"),
        )
    ]
    # Heads first, so that the exact match lies over them; the best head is named, the others are quiet.
    best = best_head(rows)
    shares: list[tuple[str, list[tuple[int, float]], dict[str, Any]]] = []
    for place, points in sorted(head_masses(rows).items(), key=lambda item: item[0] == best):
        line = {"color": colours.accent, "width": 2} if place == best else {"color": colours.other, "width": 1}
        shares.append((say("{head} on the right token", head=head_label(*place)), points, {"mode": "lines", "line": line}))
    if held_out := [(row["step"], row["held_out"]) for row in rows if isinstance(row.get("held_out"), int | float)]:
        marked = {"mode": "lines+markers", "line": {"color": colours.chosen, "width": 2.5}, "marker": {"size": 5}}
        shares.append((say("exact match, held out"), held_out, marked))
    for name, points, looks in shares:
        x, y = (list(column) for column in zip(*points, strict=True))
        hover = say("step %{{x}}<br>{name} <b>%{{y:.3f}}</b><extra></extra>", name=name)
        drawn.append(scatter(x=x, y=y, name=name, **on_axes(2), hovertemplate=hover, **looks))
    losses = [row["loss"] for row in rows if row["loss"] > 0] or [1.0]
    least, most = math.floor(math.log10(min(losses)) - 0.05), math.log10(max(losses)) + 0.1
    powers = [10.0**power for power in range(least, math.ceil(most) + 1)]
    decades: dict[str, Any] = {
        "type": "log",
        "tickvals": powers,
        "ticktext": [f"{power:g}" if power > 1e-4 else f"10<sup>−{-math.log10(power):.0f}</sup>" for power in powers],
    }
    across = axis(colours, size, (0, steps * 1.01), say("step"), showgrid=True)
    loss = axis(colours, size, (least, max(most, least + 1)), showgrid=True, **decades)
    said = say(
        "<span style='color:{chosen}'>● exact match, held out</span><br>attention on the right token:<br>"
        "<span style='color:{accent}'>● best head</span>, others grey",
        chosen=colours.chosen,
        accent=colours.accent,
    )
    looks = {"size": size - (1 if narrow else 0), "colour": colours.muted}
    return PlainFigure(
        drawn,
        {
            **base_layout(colours, size),
            "height": 520 if narrow else 300,
            "margin": {"l": 8, "r": 8, "t": 56, "b": 8},
            **panel_axes(1, across, loss, [0, 1 if narrow else 0.46], [0.6 if narrow else 0, 1]),
            **panel_axes(2, across, axis(colours, size, (-0.02, 1.02), showgrid=True), [right, 1], [0, 0.4 if narrow else 1]),
            "annotations": [
                words_at(say("loss, nats a token (log scale)"), 0, 1, **looks),
                words_at(said, right, 0.4 if narrow else 1, **looks),
            ],
            "hovermode": "closest",
        },
    )


_LONGEST_TEXT = 22


@plotly_figure
def snapshot_maps(
    moments: Sequence[tuple[str, Trace]],
    head: str | AttentionAddress,
    *,
    per_row: int = 6,
    style: Style = Style(),
) -> PlainFigure:
    """Draws one head of several Traces with the same source and target, so that the rows of all maps correspond.

    Args:
        moments: a title for each, and the run.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        per_row: how many stand side by side.
        style: theme and size.
    """
    colours, size, columns = style.colours, style.size - 1, min(per_row, len(moments))
    kind, layer, number = find_map(head, moments[0][1].grid)
    maps = [trace.attentions[kind].head(layer, number) for _, trace in moments]
    shape = max(map(len, maps)), max(values.shape[1] for values in maps)
    grid = Grid([escape(shorten(title, _LONGEST_TEXT)) for title, _ in moments], columns, shape)
    # A map that is smaller than another one ends before its tile does.
    weights = np.full((grid.n_rows, columns, *shape), np.nan, dtype=np.float32)
    masked = np.zeros(weights.shape, bool)
    for place, values, (_, trace) in zip(grid.places, maps, moments, strict=True):
        here = (*place, *map(slice, values.shape))
        masked[here] = trace.attentions[kind].head_mask(layer, number)
        weights[here] = np.where(masked[here], np.nan, values)
    drawn = grid.exact_maps(weights, share_scale(colours), [(masked, colours.masked)])
    return PlainFigure([*drawn, *grid.marks(colours, size)], grid.layout(colours, size, 40 + grid.n_rows * 190))


_MAP_SHARE = 0.56
_HALVES = {"mass": ["0", "50 %", "100 %"], "entropy": ["0", "0.5", "1"]}


@plotly_figure
def training_playback(
    moments: Sequence[TrainingSnapshot],
    head: str | AttentionAddress = "cross",
    moment: int | None = None,
    position: int = 0,
    *,
    with_answer: bool = True,
    style: Style = Style(),
) -> PlainFigure:
    """Draws the playback of a training: one head's map, every head's progress and one position's candidates, at each moment.

    Args:
        moments: from `tv.trace_training`.
        head: a head, such as `cross.2.3`; of a kind or a layer alone, such as `cross`, its first head.
        moment: the index of the moment that is drawn first, from 0; by default the last.
        position: the position in the target whose candidates are shown, from 0; its row has a frame.
        with_answer: ring the true key of each row.
        style: theme and size; in a narrow figure everything stands below each other.

    Raises:
        OptionError: no moments, or no such kind, layer, head, moment or position.
    """
    if not moments:
        raise OptionError("there are no moments to draw; tv.trace_training makes them")
    first = moments[0].forced
    at = len(moments) - 1 if moment is None else whole_number("moment", moment, 0, len(moments) - 1)
    whole_number("position", position, 0, len(first.steps) - 1)
    kind, layer, head_number = find_map(head, first.grid)
    if not isinstance(head_number, int):
        raise OptionError(f"{head} is all heads of a layer as one; a playback shows one head, as in {kind}.{layer + 1}.1")
    picture = _Playback(moments, kind, layer, head_number, position, style, with_answer)
    traces = picture.traces()
    for number, update in picture.updates(at).items():
        traces[number].update(update)
    return PlainFigure(traces, picture.layout(at), [picture.frame(i) for i in range(len(moments))])


def playback_template(
    moments: Sequence[TrainingSnapshot], kind: Kind, *, with_answer: bool = True, style: Style = Style()
) -> dict[str, Any]:
    """The playback's parts for all heads of a kind, as `player_template` has them of a run, without a map's numbers; beside
    those `names`, the axis of the candidates, and `ways`, what becomes of each head."""
    return _Playback(moments, kind, moments[0].forced.attentions[kind].layers[0], 0, 0, style, with_answer).template()


@dataclass
class _Playback:
    """One focus. `traces` is what never changes, `updates` what a moment changes, by the trace's number.

    All moments read the same target, so the rows of the map stay what they are and only the weights move. As in the step
    player, frames are applied in the browser, and `layout.meta` tells the host which head it is and at which moment.
    """

    moments: Sequence[TrainingSnapshot]
    kind: Kind
    layer: int
    head: int
    position: int
    style: Style
    with_answer: bool

    def __post_init__(self) -> None:
        self.theme, self.size, self.trace = self.style.colours, self.style.size, self.moments[0].forced
        self.attention = self.trace.attentions[self.kind]
        self.maps = [moment.forced.attentions[self.kind].head(self.layer, self.head) for moment in self.moments]
        covered = [moment.forced.attentions[self.kind].is_covered[:, None] for moment in self.moments]
        self.covered = covered if any(rows.any() for rows in covered) else []
        self.reasons = np.where(covered[0], np.uint8(0), self.attention.head_reasons(self.layer, self.head))
        self.course: Course = course(self.moments, self.kind)
        self.layers = self.attention.layers
        self.place = (
            self.attention.layer_index(self.layer),
            whole_number("head", self.head, 0, self.course.values.shape[2] - 1),
        )
        self.own = self.course.values[:, *self.place]

    def template(self) -> dict[str, Any]:
        """See `playback_template`."""
        theme, attention, last = self.theme, self.attention, len(self.moments) - 1
        seen = seen_reasons(attention)
        line = {"color": theme.accent, "width": 3 if self.style.large else 2.5}
        layout = {**self.layout(last), "shapes": []}
        framed = say("at the position above") if self.kind == "encoder" else say("at the framed row")
        layout["annotations"][1]["text"] = say("<b>candidates</b> {place}", place=framed)
        curtain = [cells.covered_trace(rows[:, 0], self.reasons.shape[1], theme) for rows in self.covered[-1:]]
        grey, even, own = (without_numbers(drawn) for drawn in panel(2, self._ways()))
        heads = [[(place, head) for head in range(attention.n_heads)] for place in range(attention.n_layers)]
        return {
            "weights": without_numbers(map_traces(self.maps[0], self.reasons, theme)[0]),
            "masked": {str(code): without_numbers(cells.masked_trace(seen, code, theme)) for code in cells.codes_in(seen)},
            "hatch": without_numbers(cells.hatch_trace(self.reasons > 0, theme)),
            "covered": without_numbers(curtain[0]) if curtain else None,
            "row": None if self.kind == "encoder" else scatter(mode="lines", line=line, hoverinfo="skip"),
            "rings": without_numbers({**scatter(mode="markers", hoverinfo="skip", cliponaxis=False), **self._rings()}),
            "bars": candidates.bars(self.size, 3),
            "names": "yaxis3",
            "colourBar": [],
            "grows": False,
            "layout": layout,
            "ways": {
                **{"grey": grey, "even": even | {"x": [-0.5, last + 0.5], "y": [self.course.uniform] * 2}, "own": own},
                "now": {**scatter(mode="lines+markers+text", **on_axes(2), hoverinfo="skip"), **self._looks_now()},
                "values": self.course.values,
                "hovers": [[self._words(*place) for place in row] for row in heads],
                "said": [[[self._value_words(value) for value in self._values(*place)] for place in row] for row in heads],
                "turns": self._turns,
            },
        }

    # ---- traces

    def traces(self) -> list[Plain]:
        rings = scatter(**self._rings(), mode="markers", hoverinfo="skip", cliponaxis=False)
        still = [*map_traces(self.maps[0], self.reasons, self.theme), rings, *panel(2, self._ways())]
        curtain = [cells.covered_trace(rows[:, 0], self.reasons.shape[1], self.theme) for rows in self.covered[:1]]
        self._moving = (0, *range(len(still), len(still) + 2 + len(curtain)))
        now = scatter(mode="lines+markers+text", **on_axes(2), hoverinfo="skip", cliponaxis=False)
        return [*still, now, candidates.bars(self.size, 3), *curtain]

    def _rings(self) -> dict[str, Any]:
        true_keys = self.trace.alignment if self.kind == "cross" and self.with_answer else ()
        return cells.rings(true_keys, self.position, min(24, max(7, 300 // max(self.reasons.shape))), self.theme)

    def updates(self, moment: int) -> dict[int, dict[str, Any]]:
        hidden = self.covered[moment : moment + 1]
        weights = cells.visible(self.maps[moment], self.reasons > 0)
        for rows in hidden:
            weights = cells.visible(weights, rows)
        step = self.moments[moment].forced.steps[self.position]
        curtain = [{"z": cells.only(rows, True)} for rows in hidden]
        updates = ({"z": weights}, self._now(moment), candidates.at_step(step, self.theme), *curtain)
        return dict(zip(self._moving, updates, strict=True))

    def frame(self, moment: int) -> dict[str, Any]:
        """A moment as plain data. Frames name their trace type, or Plotly would take each for a scatter."""
        updates = self.updates(moment)
        kinds = ("heatmap", "scatter", "bar", "heatmap")
        data = [{"type": name, **update} for name, update in zip(kinds, updates.values(), strict=False)]
        layout = {"yaxis3": candidates.names(self.moments[moment].forced.steps[self.position])}
        return {"name": str(moment), "data": data, "traces": list(updates), "layout": layout}

    def _ways(self) -> list[Plain]:
        """The other heads in grey, the line of uniform attention, and the focus head on top."""
        theme, n = self.theme, len(self.moments)
        _, n_layers, n_heads = self.course.values.shape
        others = [(i, j) for i in range(n_layers) for j in range(n_heads) if (i, j) != self.place]
        hovers = {"mode": "lines", "hovertemplate": "%{text}<extra></extra>"}
        # One trace with gaps for however many heads there are.
        grey = scatter(
            x=[x for _ in others for x in [*range(n), None]],
            y=[y for place in others for y in [*_known(self.course.values[:, *place]), None]],
            text=[words for place in others for words in [*self._words(*place), ""]],
            line={"color": theme.other, "width": 1.5},
            **hovers,
        )
        even = scatter(
            x=[-0.5, n - 0.5],
            y=[self.course.uniform] * 2,
            line={"color": theme.muted, "width": 1.5, "dash": "dot"},
            hoverinfo="skip",
            mode="lines",
        )
        own = scatter(
            x=list(range(n)),
            y=_known(self.own),
            text=self._words(*self.place),
            line={"color": theme.accent, "width": 3.5 if self.style.large else 3},
            **hovers,
        )
        return [grey, even, own]

    def _values(self, place: int, head: int) -> list[float]:
        return self.course.values[:, place, head].tolist()

    def _words(self, place: int, head: int) -> list[str]:
        return [
            say(
                "<b>{head}</b> at step {step:,}: {value:.3f}",
                head=head_label(self.layers[place], head),
                step=moment.step,
                value=value,
            )
            for moment, value in zip(self.moments, self._values(place, head), strict=True)
        ]

    def _value_words(self, value: float) -> str:
        """A head's number; nothing where it is covered."""
        if math.isnan(value):
            return ""
        return percent_words(value) if self.course.measure == "mass" else f"{value:.2f}"

    @property
    def _turns(self) -> float:
        """The number above which its words stand below the line."""
        return 0.85 if self.course.measure == "mass" else 0.15

    def _now(self, moment: int) -> dict[str, Any]:
        """A line across the panel, and the focus head's number."""
        value = float(self.own[moment])
        if math.isnan(value):  # covered until somebody has answered
            line = {"color": self.theme.muted, "width": 1}
            return {"x": [moment] * 2, "y": [0, 1], "text": ["", ""], "line": line, "marker": {"size": 0}}
        side = "left" if moment > (len(self.moments) - 1) / 2 else "right"
        return {
            "x": [moment] * 3,
            "y": [0, 1, value],
            "text": ["", "", f"<b>{self._value_words(value)}</b>"],
            "textposition": f"{'bottom' if value > self._turns else 'top'} {side}",
            **self._looks_now(),
        }

    def _looks_now(self) -> dict[str, Any]:
        return {
            "textfont": {"size": self.size + 2, "color": self.theme.accent},
            "line": {"color": self.theme.muted, "width": 1},
            "marker": {"size": [0, 0, 12], "color": self.theme.accent, "line": {"width": 2, "color": self.theme.paper}},
        }

    # ---- layout

    def layout(self, moment: int) -> dict[str, Any]:
        kind, theme, size, narrow, large = self.kind, self.theme, self.size, self.style.narrow, self.style.large
        # The map beside the two panels, or all below each other.
        n_rows = max(12, len(self.reasons))
        place: dict[str, Any] = {"x": [0, _MAP_SHARE], "y": [0, 1], "x2": [0.69, 1], "y2": [0.62, 1], "y3": [0, 0.36]}
        place |= {"height": (540 if large else 396) + max(0, n_rows - 14) * (22 if large else 12), "width": 400}
        if narrow:
            tall = 660 + 14 * n_rows
            place = {"height": tall, "width": 320, "x": [0, 1], "y": [530 / tall, 1]}
            place |= {"x2": [0.0, 0.97], "y2": [252 / tall, 390 / tall], "y3": [0, 150 / tall]}
        (left, top), (_, lower) = (place["x2"][0], place["y2"][1]), place["y3"]
        columns, rows = cells.token_axes(self.trace, kind, theme, size)
        if kind != "encoder":
            goal = say("to be written") if self.moments[0].target == "answer" else say("written in the end")
            rows["title"] = {**rows["title"], "text": say("query: read → {goal}", goal=goal)}
        # The row whose candidates are shown, as the map's axis calls it when it has the decoder's rows; the encoder's rows are
        # not those of the target, and none of them has a frame.
        row = escape(row_labels(self.trace.target_tokens, self.trace.output_tokens)[self.position])
        at, last = self.position, len(self.attention.keys) - 1
        framed = [frame(0, at, last, at, theme.accent, 3 if self.style.large else 2.5)] if kind != "encoder" else []
        names = candidates.names(self.moments[moment].forced.steps[self.position])
        steps = [compact_words(moment.step) for moment in self.moments]
        ticks = _ticks(steps, place["width"] // (size - 2))
        time: dict[str, Any] = {"tickvals": ticks, "ticktext": [steps[i] for i in ticks], "tickangle": 0}
        time |= {"ticks": "outside", "ticklen": 3, "tickcolor": theme.muted, "domain": place["x2"], "anchor": "y2"}
        value: dict[str, Any] = {"tickvals": [0, 0.5, 1], "ticktext": _HALVES[self.course.measure], "showgrid": True}
        value |= {"domain": place["y2"], "anchor": "x2"}
        if self.course.measure == "entropy":
            brief, more = say("<b>entropy of the rows</b>, each head"), say("<br>1: uniform attention")
        else:
            brief, more = say("<b>attention on the right tokens</b>, each head"), say("<br>dotted: uniform attention")
        titles = (
            (brief if narrow or self.style.large else brief + more, top),
            (say("candidates at <b>{row}</b>", row=row), lower),
        )
        return {
            **base_layout(theme, size),
            "height": place["height"],
            "margin": {"l": 8, "r": 14, "t": 8 if narrow else 44, "b": 6},
            **colour_axes(theme, size, _MAP_SHARE + 0.01, shows=not narrow),
            "xaxis": {**columns, "domain": place["x"]},
            "yaxis": {**rows, "domain": place["y"]},
            "xaxis2": axis(theme, size, (-0.5, len(steps) - 0.5), say("steps of training"), **time),
            "yaxis2": axis(theme, size, (0, 1), **value),
            "xaxis3": candidates.probability_axis(theme, size, 3, place["x2"]),
            "yaxis3": {**candidates.token_axis(theme, size, 3, place["y3"]), **names},
            "annotations": [words_at(text, left, y, size, theme.ink, yshift=6) for text, y in titles],
            "shapes": framed,
            "meta": {"kind": kind, "layer": self.layer, "head": self.head, "steps": len(self.moments), "step": moment},
        }


def _known(values: np.ndarray) -> list[float | None]:
    """Numbers of a line, with gaps where nothing is known: there is no NaN in JSON."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _ticks(words: Sequence[str], n_letters: int) -> list[int]:
    """Places of the ticks that have room in a width of `n_letters`; the first and the last always."""
    n = len(words)
    widest = max(map(len, words)) * 0.62 + 1
    every = max(1, int(np.ceil(n * widest / max(1, n_letters))))
    # From the end, where the numbers are long; the first one only if it has room.
    places = list(range(n - 1, -1, -every))[::-1]
    if places[0] > 0:
        places = [0, *places] if places[0] * n_letters >= widest * n else [0, *places[1:]]
    return places
