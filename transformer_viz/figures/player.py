"""The step player: the focus map and the candidates, one frame a step, all in one figure.

Frames are applied in the browser, so stepping costs no round trip. At step t the rows after t are
blank: nothing is drawn before it happened. `layout.meta` tells whoever hosts the figure how to lay it
out on a narrow screen and how many steps there are.
"""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer_viz.analysis.heads import Head, head_map, reasons_map
from transformer_viz.figures import cells
from transformer_viz.figures.attention import map_traces, until
from transformer_viz.figures.theme import Theme, ThemeName, base_layout, shown, theme_of
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Step, Trace

N_CANDIDATES = 6
_LEAST = -4.0
"""The candidates' axis begins at 10^-4; less is said in words."""


def player(
    trace: Trace,
    kind: Kind = "cross",
    layer: int = 0,
    head: Head = 0,
    step: int = 0,
    *,
    theme: ThemeName = "light",
    large: bool = False,
    with_answer: bool = True,
    height: int = 440,
) -> go.Figure:
    """The focus head's map with the row of the step outlined, and what could have been written.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        step: the step that is drawn first, from 0.
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        with_answer: ring the true key of each row.
        height: in pixels.
    """
    colours, size = theme_of(theme), 17 if large else 13
    picture = _Picture(trace, kind, layer, head, colours, size, with_answer)
    figure = go.Figure(picture.traces(step), frames=[picture.frame(t) for t in range(len(trace.steps))])
    wide, narrow = _arrangements(len(trace.queries(kind)), height)
    figure.update_layout(
        **base_layout(colours, size),
        **picture.layout(step),
        height=height,
        meta={"steps": len(trace.steps), "step": step, "narrow": narrow, "wide": wide},
    )
    figure.update_layout(**_nested(wide))
    return figure


class _Picture:
    """One focus: builds the traces of any step."""

    def __init__(self, trace: Trace, kind: Kind, layer: int, head: Head, theme: Theme, size: int, with_answer: bool) -> None:
        self.trace, self.kind, self.layer, self.head = trace, kind, layer, head
        self.theme, self.size, self.with_answer = theme, size, with_answer
        self.weights = head_map(trace, kind, layer, head)
        self.reasons = reasons_map(trace, kind, layer, head)
        self.codes = cells.codes_in(self.reasons)
        # The encoder has read everything before the first step; its map never grows.
        self.grows = kind != "encoder"

    def traces(self, step: int) -> list[go.Heatmap | go.Scatter | go.Bar]:
        rows = step + 1 if self.grows else None
        return [*map_traces(self.trace, self.kind, self.layer, self.head, self.theme, self.size, rows), self._bars(step)]

    def layout(self, step: int) -> dict[str, Any]:
        kind, theme = self.kind, self.theme
        written = self.trace.output_tokens if self.grows else None
        names = cells.query_labels(self.trace.queries(kind), written)
        return {
            "xaxis": cells.key_axis(self.trace.keys(kind), kind, theme, self.size),
            "yaxis": cells.query_axis(names, kind, theme, self.size),
            "xaxis2": self._probability_axis(),
            "yaxis2": {**self._candidate_axis(), **self._candidate_names(step)},
            "shapes": self._shapes(step),
        }

    def frame(self, step: int) -> go.Frame:
        return go.Frame(
            name=str(step),
            data=[*self._map_updates(step), self._bars(step)],
            traces=list(range(self._n_map_traces() + 1)) if self.grows else [self._n_map_traces()],
            layout={"shapes": self._shapes(step), "yaxis2": self._candidate_names(step)},
        )

    def _n_map_traces(self) -> int:
        return 1 + len(self.codes) + (1 if self.grows or self.reasons.any() else 0)

    def _map_updates(self, step: int) -> list[go.Heatmap | go.Scatter]:
        if not self.grows:
            return []
        weights, reasons = until(self.weights, self.reasons, step + 1)
        x, y = cells.hatch_outline(reasons > 0)
        return [
            go.Heatmap(z=cells.visible(weights, reasons > 0)),
            *(go.Heatmap(z=cells.only(reasons, code)) for code in self.codes),
            go.Scatter(x=x, y=y),
        ]

    def _shapes(self, step: int) -> list[dict[str, Any]]:
        if not self.grows:
            return []
        n_keys = len(self.trace.keys(self.kind))
        line = {"color": self.theme.accent, "width": 3 if self.size > 13 else 2.5}
        row = {"type": "rect", "x0": -0.5, "x1": n_keys - 0.5, "y0": step - 0.5, "y1": step + 0.5, "line": line}
        return [*self._rings(step), row]

    def _rings(self, step: int) -> list[dict[str, Any]]:
        """A thin ring around the true key of every row that has happened."""
        if self.kind != "cross" or not self.with_answer:
            return []
        true_keys = [(t, key) for t, key in enumerate(self.trace.alignment[: step + 1]) if key is not None]
        return [
            {
                "type": "circle",
                "x0": key - 0.4,
                "x1": key + 0.4,
                "y0": t - 0.4,
                "y1": t + 0.4,
                "line": {"color": self.theme.ring, "width": 1.5 if t < step else 2.5},
            }
            for t, key in true_keys
        ]

    def _bars(self, step: int) -> go.Bar:
        best = self._best(step)
        chosen = self.trace.output_tokens[step]
        return go.Bar(
            x=[max(p, 10**_LEAST) for _, p in best],
            y=list(range(len(best))),
            orientation="h",
            xaxis="x2",
            yaxis="y2",
            width=0.62,
            text=[_probability(p) for _, p in best],
            textposition="auto",
            textangle=0,
            textfont={"size": self.size},
            marker={"color": [self.theme.chosen if token == chosen else self.theme.other for token, _ in best]},
            customdata=[[shown(token), f"{p:.3g}"] for token, p in best],
            hovertemplate="<b>%{customdata[0]}</b><br>probability %{customdata[1]}<extra></extra>",
            cliponaxis=False,
        )

    def _best(self, step: int) -> list[tuple[str, float]]:
        """The best candidates, and the written token in the last place where it is not among them."""
        here: Step = self.trace.steps[step]
        best = list(here.candidates[:N_CANDIDATES])
        if here.token not in {token for token, _ in best}:
            best = [*best[: N_CANDIDATES - 1], (here.token, here.probability)]
        return best

    def _candidate_names(self, step: int) -> dict[str, Any]:
        best = self._best(step)
        return {"tickvals": list(range(len(best))), "ticktext": [f"<b>{shown(token)}</b>" for token, _ in best]}

    def _candidate_axis(self) -> dict[str, Any]:
        return {
            "range": [N_CANDIDATES - 0.4, -0.6],
            "tickmode": "array",
            "tickfont": {"size": self.size + 2, "color": self.theme.ink},
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
            "anchor": "x2",
        }

    def _probability_axis(self) -> dict[str, Any]:
        return {
            "type": "log",
            "range": [_LEAST, 0.02],
            "tickvals": [1e-4, 1e-3, 1e-2, 1e-1, 1],
            "ticktext": ["≤ 10⁻⁴", "10⁻³", "0.01", "0.1", "1"],
            "tickfont": {"size": self.size - 1, "color": self.theme.muted},
            "title": {
                "text": "candidate: probability (log scale)",
                "font": {"size": self.size, "color": self.theme.muted},
                "standoff": 6,
            },
            "gridcolor": self.theme.grid,
            "zeroline": False,
            "fixedrange": True,
            "anchor": "y2",
        }


def _arrangements(n_queries: int, height: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Map beside candidates, and for narrow screens map above candidates; as flat relayout patches."""
    wide = {
        "xaxis.domain": [0, 0.66],
        "yaxis.domain": [0, 1],
        "xaxis2.domain": [0.79, 1],
        "yaxis2.domain": [0.0, 1],
        "height": height,
    }
    tall = 560 if n_queries <= 16 else 680
    narrow = {
        "xaxis.domain": [0, 1],
        "yaxis.domain": [0.46, 1],
        "xaxis2.domain": [0.1, 1],
        "yaxis2.domain": [0, 0.28],
        "height": tall,
    }
    return wide, narrow


def _nested(patch: dict[str, Any]) -> dict[str, Any]:
    """`{"xaxis.domain": d}` as `{"xaxis_domain": d}`, plotly's keyword form."""
    return {name.replace(".", "_"): value for name, value in patch.items()}


def _probability(p: float) -> str:
    if p < 10**_LEAST:
        return f"10<sup>{math.floor(math.log10(p))}</sup>" if p > 0 else "0"
    return f"{np.floor(p * 1e4) / 1e4:.4f}" if p < 1 else "1"
