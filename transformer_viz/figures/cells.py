"""The traces that attention pictures are made of: weights, masked cells, hatching, and the two axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.figures.plain import Plain, heatmap, scatter
from transformer_viz.figures.theme import Theme, escape, flat, labels
from transformer_viz.terms import REASON_WORDS, Kind, row_labels
from transformer_viz.vocabulary import unit

# Each with what its tokens are: letters, or else tokens.
QUERY_TITLES: dict[Kind, str] = {
    "encoder": "query: the {} that looks",
    "decoder": "query: read → written",
    "cross": "query: read → written",
}
KEY_TITLES: dict[Kind, str] = {
    "encoder": "key: the source {} looked at",
    "decoder": "key: the written {} looked at",
    "cross": "key: the source {} looked at",
}
_GAPS_UP_TO = 40
MOST_TICKS = 64
"""Labels that an axis has room for."""


def weights_trace(weights: np.ndarray, masked: np.ndarray, word: str = "weight") -> Plain:
    """A heatmap of (query, key) weights on the layout's colour axis; masked cells stay empty for `masked_trace`. The word says
    what one number is."""
    gap = 1 if max(weights.shape) <= _GAPS_UP_TO else 0
    return heatmap(
        z=visible(weights, masked),
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        hoverongaps=False,
        hovertemplate=f"query %{{y}}<br>key %{{x}}<br>{word} <b>%{{z:.4f}}</b><extra></extra>",
    )


def visible(weights: np.ndarray, masked: np.ndarray) -> np.ndarray:
    """The weights with NaN, which draws nothing, where a mask took the cell away."""
    return np.where(masked, np.float32(np.nan), weights).astype(np.float32)


def masked_trace(reasons: np.ndarray, code: int, theme: Theme) -> Plain:
    """A grey heatmap of the cells with one reason; one trace a reason, so that the hover can say why."""
    gap = 1 if max(reasons.shape) <= _GAPS_UP_TO else 0
    return heatmap(
        z=only(reasons, code),
        colorscale=flat(theme.masked),
        showscale=False,
        xgap=gap,
        ygap=gap,
        hoverongaps=False,
        hovertemplate=f"query %{{y}} may not look at key %{{x}}:<br><b>{REASON_WORDS[code]}</b><extra></extra>",
    )


def codes_in(reasons: np.ndarray) -> list[int]:
    """The reasons that occur, allowed left out."""
    return [int(code) for code in np.unique(reasons) if code]


def only(reasons: np.ndarray, code: int) -> np.ndarray:
    """1 where the reason is `code`, NaN elsewhere."""
    return np.where(reasons == code, np.float32(1), np.float32(np.nan)).astype(np.float32)


def hatch_trace(masked: np.ndarray, theme: Theme) -> Plain:
    """A hatch over the masked cells, because a heatmap cannot hatch: masked must not look like a small weight."""
    x, y = hatch_outline(masked)
    return scatter(
        x=x,
        y=y,
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillpattern={"shape": "/", "fgcolor": theme.hatch, "bgcolor": theme.masked, "size": 7, "solidity": 0.18},
        hoverinfo="skip",
    )


def cover_trace(shape: tuple[int, ...], theme: Theme) -> Plain:
    """Paper over whole rows of a map of this shape, one number a row: 1 covers it, NaN does not.

    It lies above the other traces and is the first of them: Plotly asks heatmaps in order what is under the
    hand, and the first that has a cell there answers, here with nothing.
    """
    n_queries, n_keys = shape
    return heatmap(
        z=np.full((n_queries, 1), np.float32(np.nan)),
        x0=(n_keys - 1) / 2,
        dx=n_keys,
        colorscale=flat(theme.paper),
        showscale=False,
        hoverongaps=False,
        hoverinfo="none",
        zorder=10,
    )


def hatch_outline(masked: np.ndarray) -> tuple[list[float | None], list[float | None]]:
    """Rectangles around each row's runs of masked cells, one closed polygon each, None between two."""
    x: list[float | None] = []
    y: list[float | None] = []
    edges = np.diff(np.pad(masked.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    # Row by row, and in each a beginning before its end.
    for row, left, right in zip(np.nonzero(edges == 1)[0].tolist(), *_sides(edges), strict=True):
        x += [left, right, right, left, left, None]
        y += [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, None]
    return x, y


def _sides(edges: np.ndarray) -> tuple[list[float], list[float]]:
    """Where each run of masked cells begins, and where it ends."""
    return (np.nonzero(edges == 1)[1] - 0.5).tolist(), (np.nonzero(edges == -1)[1] - 0.5).tolist()


def key_axis(
    tokens: tuple[str, ...], kind: Kind, theme: Theme, font_size: int, *, noun: str = "", **options: Any
) -> dict[str, Any]:
    """Numeric columns with labels, so that equal tokens stay apart; `noun` says what they are, where they do not."""
    return {
        **_axis(labels(tokens), KEY_TITLES[kind].format(noun or unit(tokens)), theme, font_size),
        **({"tickangle": -90} if is_crowded(tokens) else {}),
        **options,
    }


def is_crowded(tokens: tuple[str, ...]) -> bool:
    """Whether the labels of the keys are turned upright."""
    return len(tokens) > 16 or max(map(len, tokens)) > 7


def query_axis(
    tick_labels: Sequence[str],
    queries: tuple[str, ...],
    kind: Kind,
    theme: Theme,
    font_size: int,
    *,
    noun: str = "",
    **options: Any,
) -> dict[str, Any]:
    """Numeric rows, row 0 on top, with the labels that `query_labels` made of `queries`; `noun` as for `key_axis`."""
    axis = _axis(tick_labels, QUERY_TITLES[kind].format(noun or unit(queries)), theme, font_size)
    return {**axis, "range": axis["range"][::-1], **options}


def query_labels(queries: tuple[str, ...], written: tuple[str, ...] | None) -> list[str]:
    """The labels of a map's rows, as `terms.row_labels` has them, to be drawn."""
    return [escape(label) for label in row_labels(queries, written)]


def ticks(tick_labels: Sequence[str], every: int) -> dict[str, Any]:
    """Positions from 0 and their labels, of which the axis shows one in `every`, and the hover over a cell all.

    For a position whose label is left out Plotly has its number, to which an alias gives the label.
    """
    n = len(tick_labels)
    left_out = {str(place): tick_labels[place] for place in range(n) if place % every}
    shown = {"tickmode": "array", "tickvals": list(range(0, n, every)), "ticktext": list(tick_labels[::every])}
    return {**shown, "labelalias": left_out, "hoverformat": "d"} if left_out else shown


def _axis(tick_labels: Sequence[str], title: str, theme: Theme, font_size: int) -> dict[str, Any]:
    n = len(tick_labels)
    return {
        "range": [-0.5, n - 0.5],
        **ticks(tick_labels, -(-n // MOST_TICKS)),
        "tickfont": {"size": font_size, "color": theme.ink},
        "title": {"text": title, "font": {"size": font_size, "color": theme.muted}, "standoff": 6},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        # The margins make room for every label; to look which of them would run over costs a fifth of the drawing.
        "ticklabeloverflow": "allow",
        "ticks": "",
    }
