"""One row of a map, as bars: `figures.row(trace, "cross.1.1", step=3)`."""

import numpy as np

from transformer_viz.addresses import AttentionAddress, find_map
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.errors import OptionError
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import Plain, PlainFigure, bar, plotly_figure
from transformer_viz.figures.parts import SHARES, axis
from transformer_viz.figures.theme import Style, Theme, base_layout
from transformer_viz.language import say
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import REASON_WORDS, head_title
from transformer_viz.trace.trace import Trace

_WORDS_FROM, _MOST_WORDS = 0.01, 40
"""The weight from which on its number stands above a bar, and the most bars that have room for one."""


@plotly_figure
def row(trace: Trace, head: str | AttentionAddress, step: int = 0, *, style: Style = Style()) -> PlainFigure:
    """Draws one row of a head's map: a bar for each key, as high as its weight, from 0 to 1. A masked key is hatched.

    Args:
        trace: the run.
        head: a head, such as `cross.2.3`, or all heads of a layer as one, `cross.2.mean` or `cross.2.max`; of a kind or a layer
            alone, such as `cross`, its first head.
        step: the row, from 0: of what writes the step, of an encoder the place of the token that looks.
        style: theme and size, such as `tv.figures.Style("dark", large=True)`.

    Returns:
        A Plotly figure, which a notebook shows; `figure.write_html("row.html")` and the like are Plotly's.

    Raises:
        OptionError: the run has no such kind, layer, head or row.

    Example:
        >>> import transformer_viz as tv
        >>> trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "hello")
        >>> figure = tv.figures.row(trace, "cross.2.2", 1)
        >>> figure.layout.title.text
        'cross-attention, layer 2 head 2, row 2: o → l'
        >>> [round(weight) for weight in figure.data[0].y]  # its largest weight is on the second l
        [0, 0, 0, 0, 1, 0, 0]
    """
    colours, size = style.colours, style.size
    kind, layer, number = find_map(head, trace.grid)
    attention = trace.attentions[kind]
    n_rows = attention.weights.shape[2]
    if not 0 <= step < n_rows:
        raise OptionError(f"step={step} is not possible; the {kind} map of this run has rows 0 to {n_rows - 1}")
    weights, reasons = attention.head(layer, number)[step], attention.head_reasons(layer, number)[step]
    columns, _ = cells.token_axes(trace, kind, colours, size)
    looks = cells.map_labels(trace, kind)[1][step].split("·", 1)[-1].replace("→", " → ")
    title = say("{attention}, {head}, row {row}: {looks}", attention=kind_title(trace, kind), head=head_title(layer, number),
                row=step + 1, looks=looks)  # fmt: skip
    if (reasons > 0).any():
        columns["title"]["text"] = say("{title} (hatched: masked)", title=columns["title"]["text"])
    ticks = {"tickvals": SHARES, "ticktext": [percent_words(share) for share in SHARES]}
    return PlainFigure(
        [_weights(weights, reasons, colours, size), *_masked(reasons, colours)],
        {
            **base_layout(colours, size),
            "title": {"text": title, "font": {"size": size + 2}},
            "barmode": "overlay",
            "xaxis": columns,
            "yaxis": axis(colours, size, (0, 1.08), say("weight"), showgrid=True, **ticks),
            "height": 360 if style.large else 300,
            "margin": {"t": 48, "l": 8, "r": 8, "b": 8},
        },
    )


def _weights(weights: np.ndarray, reasons: np.ndarray, colours: Theme, size: int) -> Plain:
    seen = np.where(reasons > 0, np.float32(np.nan), weights)
    says = len(seen) <= _MOST_WORDS
    return bar(
        x=list(range(len(seen))),
        y=seen,
        marker={"color": colours.chosen},
        text=[percent_words(float(weight)) if says and weight >= _WORDS_FROM else "" for weight in seen],
        textposition="outside",
        textfont={"size": size - 1},
        cliponaxis=False,
        hovertemplate=say("key %{{x}}<br>weight <b>%{{y:.4f}}</b>") + "<extra></extra>",
    )


def _masked(reasons: np.ndarray, colours: Theme) -> list[Plain]:
    """A hatched column for each masked key, one trace a reason, so that the hover can say why."""
    pattern = {"shape": "/", "fgcolor": colours.hatch, "bgcolor": colours.masked, "size": 7, "solidity": 0.18}
    return [
        bar(
            x=np.nonzero(reasons == code)[0].tolist(),
            y=[1] * int((reasons == code).sum()),
            marker={"pattern": pattern, "color": colours.masked, "line": {"width": 0}},
            hovertemplate=say("key %{{x}}:<br><b>{reason_words}</b>", reason_words=say(REASON_WORDS[code])) + "<extra></extra>",
        )
        for code in cells.codes_in(reasons)
    ]
