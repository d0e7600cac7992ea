"""The second map of the step player: what a measure of attribution says of the same rows and keys, beside the weights.

It has axes and colours of its own. What a measure has no number for is dotted and says why; what is below 0 has a minus sign,
so that nobody needs to tell its colour from the others.
"""

from typing import Any

import numpy as np

from transformer_viz.figures import cells
from transformer_viz.figures.maps import grey
from transformer_viz.figures.plain import Plain, heatmap, scatter
from transformer_viz.figures.theme import Theme, even
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import Attribution

AXES = "3"
"""Of the second map, as in `x3`."""
_OWN: dict[str, Any] = {"xaxis": f"x{AXES}", "yaxis": f"y{AXES}"}
_SIGNS_UP_TO, _SIGN_FROM, _PALE_UP_TO = 40, 0.04, 0.6
"""Keys of a map whose cells have room for a sign; shares of the strongest colour from which there is one, and up to which it is
written in ink."""
LATER, NOTHING_LEFT = "read later than this step, so it cannot be asked", "nothing would be left to read, so it cannot be asked"


class Beside:
    """One measure at one layer and head.

    Args:
        result: the measure.
        values: (query, key) of it.
        full: what has the strongest colour.
        theme: of the figure.
        size: of its letters.
    """

    def __init__(self, result: Attribution, values: np.ndarray, full: float, theme: Theme, size: int) -> None:
        self.result, self.theme, self.size = result, theme, size
        # The numbers of one row of it say nothing about another row.
        self.is_by_row = result.method == "gradient"
        self.values = _by_row(values) if self.is_by_row else values.astype(np.float32)
        self.full = 1.0 if self.is_by_row else full
        self.unasked = self._unasked(result.kind)
        self.is_covered = False
        """Whether a step moves a cover over the rows to come, as in a large map, instead of sending the rows that are there."""

    def _unasked(self, kind: Kind) -> list[tuple[str, np.ndarray]]:
        """Cells without a number, by why."""
        missing = np.isnan(self.values)
        later = np.triu(np.ones_like(missing), 1) & (kind == "decoder")
        found = [(LATER, missing & later), (NOTHING_LEFT, missing & ~later)]
        return [(words, here) for words, here in found if here.any()]

    @property
    def types(self) -> list[str]:
        """Of the traces that a step changes."""
        own = ["heatmap"] * (1 + len(self.unasked)) + ["scatter"] * (bool(self.unasked) + self._has_signs)
        return ["heatmap", *own] if self.is_covered else own

    def traces(self) -> list[Plain]:
        """Numbers, what cannot be asked, signs; above them the cover."""
        cover = [cells.cover_trace(self.values.shape, self.theme)] if self.is_covered else []
        greys = [grey(here, words, self.theme.masked) for words, here in self.unasked]
        dots = {"shape": ".", "fgcolor": self.theme.hatch, "bgcolor": self.theme.masked, "size": 7, "solidity": 0.18}
        hatch = [{**cells.hatch_trace(np.isnan(self.values), self.theme), "fillpattern": dots}] if self.unasked else []
        signs = [scatter(mode="text", hoverinfo="skip", **self._signs(self.values))] if self._has_signs else []
        return [{**trace, **_OWN} for trace in (*cover, self._numbers(), *greys, *hatch, *signs)]

    def updates(self, step: int) -> list[dict[str, Any]]:
        """What a step changes in each: later rows are blank."""
        is_there = np.arange(len(self.values))[:, None] <= step
        if self.is_covered:
            return [{"z": np.where(is_there, np.float32(np.nan), np.float32(1))}, *({} for _ in self.types[1:])]
        seen = np.where(is_there, self.values, np.float32(np.nan))
        greys = [{"z": np.where(here & is_there, np.float32(1), np.float32(np.nan))} for _, here in self.unasked]
        x, y = cells.hatch_outline(np.isnan(self.values) & is_there)
        signs = [self._signs(seen)] if self._has_signs else []
        return [{"z": seen}, *greys, *([{"x": x, "y": y}] if self.unasked else []), *signs]

    def layout(self, columns: dict[str, Any], rows: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
        """Its axes, which are those of the weights at another place, its colours and its title; in a narrow figure, where it
        stands below, it has row labels of its own, and no bar."""
        is_below = place["x3"] == place["x"]
        own = {} if is_below else {"showticklabels": False, "title": {"text": ""}, "automargin": False}
        # Cells without a cause are as the page: the map would have no edge.
        edge = {"showline": True, "mirror": True, "linecolor": self.theme.grid}
        return {
            f"xaxis{AXES}": {**columns, **edge, "domain": place["x3"]},
            f"yaxis{AXES}": {**rows, **own, "domain": place["y3"]},
            f"coloraxis{AXES}": self._colours(place["x3"][1] + 0.01, shows=place["scale"]),
            "annotations": [
                self._title("weights", place["x"][0], place["y"][1]),
                self._title(self.result.title, place["x3"][0], place["y3"][1]),
            ],
        }

    @property
    def about(self) -> dict[str, str]:
        """What its numbers are."""
        return {"word": self.result.title, "unit": "of the row's largest" if self.is_by_row else self.result.unit}

    def _title(self, words: str, left: float, top: float) -> dict[str, Any]:
        place = {"x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 3}
        return {"text": f"<b>{words}</b>", "showarrow": False, "font": {"size": self.size, "color": self.theme.ink}, **place}

    def scale_words(self) -> str:
        """What the bar says, where there is no room for one."""
        if self.is_by_row:
            return f"{self.result.title}: share of the row's largest"
        first = f"−{self.full:.2g} to +" if self.result.is_signed else "0 to "
        return f"{self.result.title}: {first}{self.full:.2g} {self.result.unit}".rstrip()

    def _numbers(self) -> Plain:
        gap = int(max(self.values.shape) <= _SIGNS_UP_TO)
        number = "%{z:+.4f}" if self.result.is_signed else "%{z:.4f}"
        words = f"{self.result.title} <b>{number}</b> {self.about['unit']}".rstrip()
        hover = f"query %{{y}}<br>key %{{x}}<br>{words}<extra></extra>"
        looks: dict[str, Any] = {"coloraxis": f"coloraxis{AXES}", "xgap": gap, "ygap": gap, "hoverongaps": False}
        return heatmap(z=self.values, hovertemplate=hover, **looks)

    @property
    def _has_signs(self) -> bool:
        return self.result.is_signed and max(self.values.shape) <= _SIGNS_UP_TO

    def _signs(self, seen: np.ndarray) -> dict[str, Any]:
        shares = np.nan_to_num(seen, nan=0) / self.full
        rows, columns = np.nonzero(shares <= -_SIGN_FROM)
        inks = [self.theme.ink if shares[at] > -_PALE_UP_TO else self.theme.paper for at in zip(rows, columns, strict=True)]
        text = {"text": ["−"] * len(rows), "textfont": {"size": self.size, "color": inks}}
        return {"x": columns.tolist(), "y": rows.tolist(), **text}

    def _colours(self, x: float, *, shows: bool) -> dict[str, Any]:
        words = {"size": self.size - 1, "color": self.theme.muted}
        least = -self.full if self.result.is_signed else 0.0
        ticks = [least, (least + self.full) / 2, self.full]
        sign = "+" if self.result.is_signed else ""
        names = [rounded_words(least, 2), f"{ticks[1]:.2g}", f"{sign}{self.full:.2g}"]
        bar: dict[str, Any] = {
            "x": x, "xanchor": "left", "len": 0.6, "y": 1, "yanchor": "top", "thickness": 10, "outlinewidth": 0,
            "tickfont": words, "tickvals": ticks, "ticktext": names,
            "title": {"text": self.result.unit or ("of the row" if self.is_by_row else ""), "font": words},
        }  # fmt: skip
        colours = self.theme.diverging if self.result.is_signed else self.theme.scale
        return {"cmin": least, "cmax": self.full, "colorscale": even(colours), "colorbar": bar, "showscale": shows}


def _by_row(values: np.ndarray) -> np.ndarray:
    """Each row as shares of its largest number; a row of zeros stays."""
    largest = np.nan_to_num(values, nan=0).max(-1, keepdims=True)
    return (values / np.where(largest > 0, largest, 1)).astype(np.float32)
