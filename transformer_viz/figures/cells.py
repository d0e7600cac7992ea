"""The traces that attention pictures are made of: weights, masked cells, hatching; and the two axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.word_pooling import axis_noun
from transformer_viz.figures.figure_data import Plain, heatmap
from transformer_viz.figures.parts import filled, named_axis, rectangles
from transformer_viz.figures.theme import Theme, escape, flat_scale, token_labels
from transformer_viz.language import later, say
from transformer_viz.terms import REASON_WORDS, Kind, row_labels
from transformer_viz.trace.hidden_answer import COVERED
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import unit

# Each with what its tokens are: letters, or else tokens.
QUERY_TITLES: dict[Kind, str] = {
    "encoder": later("query: the {unit} that looks"),
    "decoder": later("query: read → written"),
    "cross": later("query: read → written"),
}
KEY_TITLES: dict[Kind, str] = {
    "encoder": later("key: the source {unit} looked at"),
    "decoder": later("key: the written {unit} looked at"),
    "cross": later("key: the source {unit} looked at"),
}
GAPS_UP_TO = 40
"""With at most this many cells side by side, there are gaps between them."""


def row_and_column() -> str:
    """The beginning of a hover, as a template of Plotly's."""
    return say("query %{{y}}<br>key %{{x}}<br>")


def cells_of(values: np.ndarray, hover: str, **more: Any) -> Plain:
    """(row, column) values as coloured cells; NaN draws nothing. `hover` is a template of Plotly's."""
    gap = int(max(values.shape) <= GAPS_UP_TO)
    looks: dict[str, Any] = {"xgap": gap, "ygap": gap, "hoverongaps": False, **more}
    return heatmap(z=values.astype(np.float32), hovertemplate=f"{hover}<extra></extra>", **looks)


def number_cells(values: np.ndarray, word: str, number: str = "%{z:.4f}", **scale: Any) -> Plain:
    """(query, key) values on a scale; the word says what one number is."""
    return cells_of(values, f"{row_and_column()}{word} <b>{number}</b>", **scale)


def flat_cells(where: np.ndarray, hover: str, colour: str) -> Plain:
    """Cells of one colour."""
    return cells_of(only(where, True), hover, colorscale=flat_scale(colour), showscale=False)


def grey(where: np.ndarray, words: str, colour: str) -> Plain:
    """(query, key) cells of one colour whose hover says `words`."""
    return flat_cells(where, f"{row_and_column()}<b>{words}</b>", colour)


def masked_trace(reasons: np.ndarray, code: int, theme: Theme) -> Plain:
    """The cells with one reason; one trace a reason, so that the hover can say why."""
    return flat_cells(
        reasons == code,
        say("query %{{y}} may not look at key %{{x}}:<br><b>{reason_words}</b>", reason_words=say(REASON_WORDS[code])),
        theme.masked,
    )


def hidden(masked: np.ndarray, colours: Theme, words: str = "") -> list[Plain]:
    """Masked cells, grey and hatched."""
    return [grey(masked, words or say("masked"), colours.masked), hatch_trace(masked, colours)] if masked.any() else []


def broken(values: np.ndarray, colours: Theme) -> list[Plain]:
    """Cells that are not numbers."""
    return [grey(np.isnan(values), say("not a number (NaN)"), colours.broken)] if np.isnan(values).any() else []


def visible(weights: np.ndarray, masked: np.ndarray) -> np.ndarray:
    """The weights with NaN, which draws nothing, where a mask took the cell away."""
    return np.where(masked, np.float32(np.nan), weights).astype(np.float32)


def codes_in(reasons: np.ndarray) -> list[int]:
    """The reasons that occur, allowed left out."""
    return [int(code) for code in np.unique(reasons) if code]


def only(reasons: np.ndarray, code: int) -> np.ndarray:
    """1 where the reason is `code`, NaN elsewhere."""
    return np.where(reasons == code, np.float32(1), np.float32(np.nan))


def hatch_trace(masked: np.ndarray, theme: Theme, shape: str = "/") -> Plain:
    """A hatch over the masked cells, because a heatmap cannot hatch: masked must not look like a small weight."""
    pattern = {"shape": shape, "fgcolor": theme.hatch, "bgcolor": theme.masked, "size": 7, "solidity": 0.18}
    return filled(*hatch_outline(masked), fillpattern=pattern)


def cover_trace(shape: tuple[int, ...], theme: Theme) -> Plain:
    """A cover over rows of a map of this shape, from one number a row: 1 covers the row, NaN does not.

    It lies above the other traces and stands first in their list: Plotly takes the hover from the first heatmap with a cell
    under the pointer, and so shows none over covered rows.
    """
    n_queries, n_keys = shape
    return heatmap(
        z=np.full((n_queries, 1), np.float32(np.nan)),
        x0=(n_keys - 1) / 2,
        dx=n_keys,
        colorscale=flat_scale(theme.paper),
        showscale=False,
        hoverongaps=False,
        hoverinfo="none",
        zorder=10,
    )


def covered_trace(where: np.ndarray, n_keys: int, theme: Theme) -> Plain:
    """Rows that are covered until somebody has answered, bool (query,): one cell a row, of paper, which no mask is."""
    hover = say("query %{{y}}<br><b>{covered}</b>", covered=say(COVERED))
    return {**flat_cells(where[:, None], hover, theme.curtain), "x0": (n_keys - 1) / 2, "dx": n_keys}


def hatch_outline(masked: np.ndarray) -> tuple[list[float | None], list[float | None]]:
    """Rectangles around each row's runs of masked cells."""
    edges = np.diff(np.pad(masked.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    # Row by row, and in each a beginning before its end.
    rows, lefts = np.nonzero(edges == 1)
    rights = np.nonzero(edges == -1)[1]
    runs = zip(rows.tolist(), (lefts - 0.5).tolist(), (rights - 0.5).tolist(), strict=True)
    return rectangles((left, row - 0.5, right, row + 0.5) for row, left, right in runs)


def rings(true_keys: Sequence[int | None], chosen: int, size: float, theme: Theme) -> dict[str, Any]:
    """A thin ring around the true key of each row, and a thicker one in the chosen row: properties of a trace of markers."""
    at = [(key, row) for row, key in enumerate(true_keys) if key is not None]
    line = {"width": [3 if row == chosen else 1.5 for _, row in at], "color": theme.ring}
    marker = {"symbol": "circle-open", "size": size, "color": theme.ring, "line": line}
    return {"x": [key for key, _ in at], "y": [row for _, row in at], "marker": marker}


def key_title(tokens: tuple[str, ...], kind: Kind, noun: str) -> str:
    """The title of a map's axis of columns."""
    return say(KEY_TITLES[kind], unit=say(noun or unit(tokens)))


def is_crowded(tokens: tuple[str, ...]) -> bool:
    """Tells whether the labels of the keys are turned upright."""
    return len(tokens) > 16 or max(map(len, tokens)) > 7


def map_labels(trace: Trace, kind: Kind) -> tuple[list[str], list[str]]:
    """The labels of a map's columns, and of its rows with what was written from them, to be drawn."""
    attention, written = trace.attentions[kind], None if kind == "encoder" else trace.output_tokens
    return token_labels(attention.keys), [escape(label) for label in row_labels(attention.queries, written)]


def token_axes(
    trace: Trace,
    kind: Kind,
    theme: Theme,
    size: int,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    upright: bool = False,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns and rows of a run's map: numeric, so that equal tokens stay apart, row 0 on top, with labels, by default
    `map_labels`. Those of the columns are turned where they are many or long, or `upright` in any case."""
    noun, attention = axis_noun(trace), trace.attentions[kind]
    columns, rows = labels or map_labels(trace, kind)
    turned: dict[str, Any] = {"tickangle": -90} if upright or is_crowded(attention.keys) else {}
    down = say(QUERY_TITLES[kind], unit=say(noun or unit(attention.queries)))
    return (
        named_axis(theme, size, columns, key_title(attention.keys, kind, noun), **turned),
        named_axis(theme, size, rows, down, down=True),
    )
