"""Colours, fonts and the one escape through which every token goes on its way into a picture.

Sequential maps are cmocean's `dense` (light) and `ice` (dark): perceptually even, safe for the
colour-blind, and 0 is close to the page in both. Thyng et al. 2016, "True colors of oceanography".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import bidirectional

import plotly.colors
import plotly.graph_objects as go

from transformer_viz.terms import LONGEST_LABEL, place_labels, visible

ThemeName = Literal["light", "dark"]
FONT = "'Source Sans Pro', 'Source Sans', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """The colours of a picture."""

    paper: str
    ink: str
    muted: str
    grid: str
    masked: str
    """Cells that a mask took away; far from every colour of the scale."""
    hatch: str
    accent: str
    """The row of this step, and the tile in focus."""
    ring: str
    """The true key."""
    chosen: str
    other: str
    scale: list[str]
    diverging: list[str]
    """Negative orange, positive blue, 0 the colour of the page: even for the colour-blind."""
    broken: str
    """A number that is none."""
    code: str
    """Of a program's words, beside a figure."""
    literal: str
    """Likewise of its texts and numbers."""


LIGHT = Theme(
    paper="#ffffff",
    ink="#1c2430",
    muted="#5b6676",
    grid="#dfe4ea",
    masked="#d9d4cc",
    hatch="#a69f94",
    accent="#cc430d",
    ring="#cc430d",
    chosen="#2f6f9f",
    other="#a9b7c6",
    scale=list(plotly.colors.cmocean.dense),
    diverging=["#8f3400", "#d9722e", "#f3bd94", "#ffffff", "#9cc4e0", "#3f83b5", "#0b4a78"],
    broken="#d6336c",
    code="#1a5d94",
    literal="#1e6b34",
)
DARK = Theme(
    paper="#0e1117",
    ink="#eceff4",
    muted="#a3adba",
    grid="#2a313c",
    masked="#4a4640",
    hatch="#7d766c",
    accent="#ff9f45",
    ring="#ff9f45",
    chosen="#7fb8e0",
    other="#4b5868",
    scale=list(plotly.colors.cmocean.ice),
    diverging=["#ffc48a", "#d97a2b", "#6e3c13", "#0e1117", "#164a6e", "#3f8fc4", "#a8dcff"],
    broken="#f06595",
    code="#7fb8e0",
    literal="#7bd08a",
)


_FROM_RIGHT = ("R", "AL")


def theme_of(name: ThemeName) -> Theme:
    """The light or the dark theme."""
    return DARK if name == "dark" else LIGHT


def escape(text: str) -> str:
    """Text as Plotly draws it literally: it renders labels as markup, and `$…$` as formulas where MathJax is loaded."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
    safe = "".join(symbol if symbol.isprintable() else f"\\u{ord(symbol):04x}" for symbol in safe)
    return safe if safe.isascii() or not any(bidirectional(symbol) in _FROM_RIGHT for symbol in safe) else _in_order(safe)


def _in_order(label: str) -> str:
    """Left-to-right marks around an arrow: between two words that are written from the right it would stand in their order."""
    return label.replace("→", "\u200e→\u200e")


def shown(token: str, most: int = LONGEST_LABEL) -> str:
    """A token as a label: a space is drawn ␣, nothing in it acts as markup, and what is longer than `most` is cut."""
    return escape(visible(token, most))


def labels(tokens: Iterable[str]) -> list[str]:
    """`3·l`: the label of each token, to be drawn."""
    return [escape(label) for label in place_labels(tokens)]


def base_layout(theme: Theme, font_size: int = 13) -> dict[str, Any]:
    """What every figure's layout begins with."""
    return {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": font_size, "color": theme.ink},
        "hoverlabel": {"font": {"family": FONT, "size": font_size + 1}},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "template": go.layout.Template(),
    }


def even(colours: list[str]) -> list[list[Any]]:
    """A colour scale of these colours at even distances, as the browser reads it: of a list of colours it knows nothing."""
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


def flat(colour: str) -> list[list[Any]]:
    """A colour scale of one colour."""
    return [[0, colour], [1, colour]]


def see_through(colour: str, share: float) -> str:
    """A `#rrggbb` colour that covers what is under it by this share."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share})"
