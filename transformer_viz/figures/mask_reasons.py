"""Cells coloured by why they are masked: colours, words and the legend that all mask pictures share."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.figures.figure_data import Plain, heatmap, scatter
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import REASON_WORDS, Reason

_LOOKS: dict[Reason, tuple[str, str, str]] = {
    Reason.ALLOWED: ("#f4f7fa", "#1b222c", ""),
    Reason.PADDING: ("#e0a458", "#d9a05b", "it is padding"),
    Reason.FUTURE: ("#7b8fa6", "#5f7896", "it is in the future"),
    Reason.BOTH: ("#8c5a2b", "#96683f", "it is padding, and in the future"),
    Reason.EDITED: ("#b5488a", "#c56aa2", "an edit or a mistake masks it"),
    Reason.UNKNOWN: ("#9aa0a6", "#7d838a", "a mask takes it away, why was not recorded"),
    Reason.WINDOW: ("#4f9d8f", "#4a9186", "it is outside the window of this layer"),
}
"""The colours in the light and in the dark theme, and why a query may not look."""


def colour(code: int, theme: ThemeName) -> str:
    """The colour of a reason."""
    return _LOOKS[Reason(code)][theme == "dark"]


def cells(reasons: np.ndarray, theme: ThemeName, gap: int = 1) -> Plain:
    """One heatmap of reasons (query, key); the hover says each cell in words, and the axes name its query and key."""
    words = np.full(max(Reason) + 1, "", object)
    words[list(REASON_WORDS)] = [hover_words(code) for code in REASON_WORDS]
    # Each code has a flat band; the numbers between the codes, which no mask holds, repeat the one below.
    n = max(Reason) + 1
    bands = [max(code for code in REASON_WORDS if code <= number) for number in range(n)]
    return heatmap(
        z=reasons.astype(np.uint8),
        zmin=-0.5,
        zmax=max(Reason) + 0.5,
        colorscale=[[(number + edge) / n, colour(code, theme)] for number, code in enumerate(bands) for edge in (0, 1)],
        showscale=False,
        xgap=gap,
        ygap=gap,
        # An array, which Plotly does not look through cell by cell.
        text=words[reasons],
        hovertemplate="query %{y}<br>key %{x}<br>%{text}<extra></extra>",
    )


def hover_words(code: int) -> str:
    """Whether a query may look at a key, and if not, why."""
    return "may look" if code == Reason.ALLOWED else f"may not look: <b>{_LOOKS[Reason(code)][2]}</b>"


def legend(codes: Sequence[int], theme: ThemeName) -> list[Plain]:
    """An entry for each reason; the points themselves are nowhere."""
    return [
        scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=REASON_WORDS[code],
            showlegend=True,
            marker={"symbol": "square", "size": 12, "color": colour(code, theme), "line": {"width": 1, "color": "#8a94a0"}},
            hoverinfo="skip",
        )
        for code in codes
    ]
