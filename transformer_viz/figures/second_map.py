"""The second map of the step player: what a measure of attribution says of the same rows and keys, beside the weights.

It has axes and colours of its own. Cells without a number are dotted, and their hover says why; cells below 0 have a minus
sign, so that nobody depends on their colour.
"""

from typing import Any

import numpy as np

from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import Plain, scatter
from transformer_viz.figures.parts import colour_axis, edge, panel, words_at
from transformer_viz.figures.theme import Theme
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.trace.attribution import Attribution

AXES = 3
"""Number of the second map's axes, as in `x3`."""
_SIGN_FROM, _PALE_UP_TO = 0.04, 0.6
"""A cell has a minus sign from this share of the strongest colour on, which is dark up to the second share."""
LATER, NOTHING_LEFT = (
    later("read later than this step, so it cannot be asked"),
    later("nothing would be left to read, so it cannot be asked"),
)


class SecondMap:
    """One measure at one layer and head.

    Args:
        result: the measure.
        values: (query, key) of it.
        full: what has the strongest colour.
        theme: of the figure.
        size: of its letters.
        is_covered: a step moves a cover over the rows to come, as in a large map, instead of sending the rows that are there.
    """

    def __init__(
        self, result: Attribution, values: np.ndarray, full: float, theme: Theme, size: int, *, is_covered: bool
    ) -> None:
        self.result, self.theme, self.size = result, theme, size
        # The numbers of one row of it say nothing about another row: each is drawn as a share of its row's largest.
        self.is_by_row = result.method == "gradient"
        if self.is_by_row:
            largest = np.nan_to_num(values, nan=0).max(-1, keepdims=True)
            values, full = values / np.where(largest > 0, largest, 1), 1.0
        self.values, self.full = values.astype(np.float32), full
        missing = np.isnan(self.values)
        later = np.triu(np.ones_like(missing), 1) & (result.kind == "decoder")
        reasons = [(say(LATER), missing & later), (say(NOTHING_LEFT), missing & ~later)]
        self.unasked = [(words, here) for words, here in reasons if here.any()]
        """Cells without a number, by why."""
        self.has_signs = result.is_signed and max(self.values.shape) <= cells.GAPS_UP_TO
        self.is_covered = is_covered

    def traces(self) -> list[Plain]:
        """Numbers, what cannot be asked, signs; above them the cover."""
        cover = [cells.cover_trace(self.values.shape, self.theme)] if self.is_covered else []
        greys = [cells.grey(here, words, self.theme.masked) for words, here in self.unasked]
        dots = [cells.hatch_trace(np.isnan(self.values), self.theme, ".")] if self.unasked else []
        signs = [self.sign_trace()] if self.has_signs else []
        return [*panel(AXES, cover), self.number_trace(), *panel(AXES, (*greys, *dots, *signs))]

    def number_trace(self) -> Plain:
        """The cells with a number."""
        number = "%{z:+.4f}" if self.result.is_signed else "%{z:.4f}"
        hover = f"{cells.row_and_column()}{say(self.result.title)} <b>{number}</b> {self.about['unit']}".rstrip()
        return panel(AXES, [cells.cells_of(self.values, hover, coloraxis=f"coloraxis{AXES}")])[0]

    def sign_trace(self) -> Plain:
        """A minus sign on each cell below 0."""
        return scatter(mode="text", hoverinfo="skip", **self._signs(self.values))

    def updates(self, step: int) -> list[dict[str, Any]]:
        """Lists what a step changes in each trace: later rows are blank."""
        is_there = np.arange(len(self.values))[:, None] <= step
        if self.is_covered:
            n_others = 1 + len(self.unasked) + bool(self.unasked) + self.has_signs
            return [{"z": cells.only(is_there, False)}, *({} for _ in range(n_others))]
        seen = np.where(is_there, self.values, np.float32(np.nan))
        greys = [{"z": cells.only(here & is_there, True)} for _, here in self.unasked]
        x, y = cells.hatch_outline(np.isnan(self.values) & is_there)
        signs = [self._signs(seen)] if self.has_signs else []
        return [{"z": seen}, *greys, *([{"x": x, "y": y}] if self.unasked else []), *signs]

    def layout(self, columns: dict[str, Any], rows: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
        """Its axes, which are those of the weights at another place, its colours and its title; in a narrow figure, where it
        stands below, it has row labels of its own, and no bar."""
        is_below = place["x3"] == place["x"]
        own = {} if is_below else {"showticklabels": False, "title": {"text": ""}, "automargin": False}
        signed = self.result.is_signed
        least, title = -self.full if signed else 0.0, say(self.result.unit) or (say("of the row") if self.is_by_row else "")
        names = [rounded_words(least, 2), f"{(least + self.full) / 2:.2g}", f"{'+' if signed else ''}{self.full:.2g}"]
        bar: dict[str, Any] = {"x": place["x3"][1] + 0.01, "len": 0.6, "thickness": 10, "shows": place["scale"]}
        headings = ((say("weights"), place["x"], place["y"]), (say(self.result.title), place["x3"], place["y3"]))
        return {
            # Cells without a cause are as the page: the map would have no edge.
            # Where it stands below, its axes would otherwise lie on those of the weights.
            f"xaxis{AXES}": {**columns, **edge(self.theme), "domain": place["x3"], "anchor": f"y{AXES}"},
            f"yaxis{AXES}": {**rows, **own, "domain": place["y3"], "anchor": f"x{AXES}"},
            f"coloraxis{AXES}": colour_axis(
                self.theme, self.size, (least, self.full), names, title=title, signed=signed, **bar
            ),
            "annotations": [
                words_at(f"<b>{words}</b>", x[0], y[1], self.size, self.theme.ink, yshift=3) for words, x, y in headings
            ],
        }

    @property
    def about(self) -> dict[str, str]:
        """The word for its numbers, and their unit."""
        return {
            "word": say(self.result.title),
            "unit": say("of the row's largest") if self.is_by_row else say(self.result.unit),
        }

    def scale_words(self) -> str:
        """The scale in words, for figures without room for a bar."""
        if self.is_by_row:
            return say("{title}: share of the row's largest", title=say(self.result.title))
        fields: dict[str, Any] = {"measure": say(self.result.title), "full": self.full, "unit": say(self.result.unit)}
        if self.result.is_signed:
            return say("{measure}: −{full:.2g} to +{full:.2g} {unit}", **fields).rstrip()
        return say("{measure}: 0 to {full:.2g} {unit}", **fields).rstrip()

    def _signs(self, seen: np.ndarray) -> dict[str, Any]:
        shares = np.nan_to_num(seen, nan=0) / self.full
        rows, columns = np.nonzero(shares <= -_SIGN_FROM)
        inks = [self.theme.ink if shares[at] > -_PALE_UP_TO else self.theme.paper for at in zip(rows, columns, strict=True)]
        text = {"text": ["−"] * len(rows), "textfont": {"size": self.size, "color": inks}}
        return {"x": columns.tolist(), "y": rows.tolist(), **text}
