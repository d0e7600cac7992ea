"""Colours and fonts of figures, and the escaping that every token passes before it is drawn.

Sequential maps are cmocean's `dense` (light) and `ice` (dark): perceptually even, safe for the
colour-blind, and 0 is close to the page in both. Thyng et al. 2016, "True colors of oceanography".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import bidirectional

import numpy as np
import plotly.colors

from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import place_labels
from transformer_viz.text_display import LONGEST_LABEL, display_token

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
    curtain: str
    """The colour of what is covered until somebody has answered: paper, which no mask and no weight is."""
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
    """NaN and infinite numbers."""
    code: str
    """Keywords of the program code that is shown beside a figure."""
    literal: str
    """Strings and numbers of the program code that is shown beside a figure."""


LIGHT = Theme(
    paper="#ffffff",
    ink="#1c2430",
    muted="#5b6676",
    grid="#dfe4ea",
    masked="#d9d4cc",
    hatch="#a69f94",
    curtain="#fbf4e2",
    accent="#cc430d",
    ring="#1f8f4e",
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
    curtain="#2b2a25",
    accent="#ff9f45",
    ring="#1f9d55",
    chosen="#7fb8e0",
    other="#4b5868",
    scale=list(plotly.colors.cmocean.ice),
    diverging=["#ffc48a", "#d97a2b", "#6e3c13", "#0e1117", "#164a6e", "#3f8fc4", "#a8dcff"],
    broken="#f06595",
    code="#7fb8e0",
    literal="#7bd08a",
)


THEMES: dict[ThemeName, Theme] = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Style:
    """The looks of a figure.

    Attributes:
        theme: `light` or `dark`.
        large: bigger letters, for a projector.
        narrow: for a phone: panels stand below each other instead of side by side.

    Raises:
        OptionError: another theme.
    """

    theme: ThemeName = "light"
    large: bool = False
    narrow: bool = False

    def __post_init__(self) -> None:
        if self.theme not in THEMES:
            raise OptionError(f"theme {self.theme!r} is not possible for a figure; choose one of {join_names(THEMES)}")

    @property
    def colours(self) -> Theme:
        """The colours of its theme."""
        return THEMES[self.theme]

    @property
    def size(self) -> int:
        """The size of letters in pixels; a figure of many small parts has one less."""
        return 16 if self.large else 13


def escape(text: str) -> str:
    """Text as Plotly draws it literally: it renders labels as markup, and `$…$` as formulas where MathJax is loaded."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
    if not safe.isprintable():
        safe = "".join(symbol if symbol.isprintable() else f"\\u{ord(symbol):04x}" for symbol in safe)
    # An arrow would turn round between two right-to-left words, unless left-to-right marks stand around it.
    has_words_from_right = "→" in safe and not {"R", "AL"}.isdisjoint(map(bidirectional, safe))
    return safe.replace("→", "\u200e→\u200e") if has_words_from_right else safe


def token_label(token: str, most: int = LONGEST_LABEL) -> str:
    """A token as a label: a space is drawn ␣, nothing in it acts as markup, and what is longer than `most` is cut."""
    return escape(display_token(token, most))


def token_labels(tokens: Iterable[str]) -> list[str]:
    """`3·l`: the label of each token, to be drawn."""
    return [escape(label) for label in place_labels(tokens)]


def base_layout(theme: Theme, font_size: int = 13) -> dict[str, Any]:
    """The beginning of every figure's layout."""
    return {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": font_size, "color": theme.ink},
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": font_size + 1}},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
    }


def even_scale(colours: list[str]) -> list[list[Any]]:
    """A colour scale with these colours at even distances, in the one form that plotly.js reads."""
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


def flat_scale(colour: str) -> list[list[Any]]:
    """A colour scale of one colour."""
    return [[0, colour], [1, colour]]


def rgb(colour: str) -> list[int]:
    """Red, green and blue of `#rrggbb` or `rgb(r, g, b)`, 0 to 255."""
    if colour.startswith("#"):
        return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return [int(float(part)) for part in colour[4:-1].split(",")]


def see_through(colour: str, share: float) -> str:
    """A colour that covers what is under it by this share."""
    red, green, blue = rgb(colour)
    return f"rgba({red}, {green}, {blue}, {share})"


def ink_on(value: float | None, colours: Theme, scale: Sequence[str] = ()) -> str:
    """Black or white, whichever stands out more from the tile (WCAG 2.2, contrast ratio): 4.5 at least, on any colour.

    Args:
        value: how far along the colours the tile is, 0 to 1; None for one without a number.
        colours: of the picture.
        scale: its colours where they are not the sequential ones.
    """
    if value is None:
        return colours.ink
    stops = np.array([rgb(colour) for colour in scale or colours.scale])
    place = np.clip(value, 0, 1) * (len(stops) - 1)
    channels = np.array([np.interp(place, np.arange(len(stops)), channel) for channel in stops.T]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ (0.2126, 0.7152, 0.0722))
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"
