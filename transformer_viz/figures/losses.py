"""The loss of each token of a padded batch; padded positions are drawn as left out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.loss import Losses
from transformer_viz.figures import cells
from transformer_viz.figures.figure_data import PlainFigure, plotly_figure
from transformer_viz.figures.parts import colour_axis, named_axis
from transformer_viz.figures.theme import Style, base_layout, token_label
from transformer_viz.language import say
from transformer_viz.trace.trace import Trace

_LONGEST_SOURCE = 14


@plotly_figure
def token_losses(traces: Sequence[Trace], loss: Losses, *, style: Style = Style()) -> PlainFigure:
    """Draws the loss of each token: rows are sentences, columns are steps, colour is −log p of the right token, in its cell.

    Args:
        traces: teacher-forced runs with the same number of steps.
        loss: from `analysis.losses` of the same runs.
        style: theme and size; in a narrow figure rows are steps and columns are sentences, since a phone's row of steps is too
            short for their tokens.
    """
    colours, size, narrow = style.colours, style.size, style.narrow
    n_steps, first = loss.per_token.shape[1], traces[0].written.start

    def laid(values: np.ndarray) -> np.ndarray:
        """(sentence, step) as it is drawn."""
        return values.T if narrow else values

    tokens = np.array([[token_label(step.token) for step in trace.steps[trace.n_given :]] for trace in traces])
    losses, where = np.where(loss.counted, loss.per_token, np.nan), say("sentence %{{y}}, step %{{x}}")
    where = say("sentence %{{x}}, step %{{y}}") if narrow else where
    words: dict[str, Any] = {"text": laid(tokens), "texttemplate": "%{text}", "textfont": {"size": size}}
    gaps = {"xgap": 2, "ygap": 2}
    hover = say("{where}: should write <b>%{{text}}</b><br>loss <b>%{{z:.4f}}</b>", where=where)
    left_out = say("{where}: padding, left out<br>its loss would be %{{customdata:.4f}}", where=where)
    padding = cells.flat_cells(laid(~loss.counted), left_out, colours.masked)
    drawn = [
        cells.cells_of(laid(losses), hover, coloraxis="coloraxis", **words, **gaps),
        {**padding, "customdata": laid(loss.per_token.astype(np.float32)), **gaps},
        cells.hatch_trace(laid(~loss.counted), colours),
    ]
    if np.isnan(loss.per_token).any():
        drawn.append(
            cells.flat_cells(laid(np.isnan(loss.per_token)), say("{where}: not a number (NaN)", where=where), colours.broken)
        )
    steps = [str(first + t + 1) for t in range(n_steps)], "step"
    sentences = [f"{i}: {token_label(trace.source, _LONGEST_SOURCE)}" for i, trace in enumerate(traces, 1)], ""
    across, down = (sentences, steps) if narrow else (steps, sentences)
    # Pixels; beside a phone's rows there are many of them.
    row_height = (28 if style.large else 24) if narrow else (48 if style.large else 40)
    largest = float(np.nanmax(losses, initial=1.0))
    return PlainFigure(
        drawn,
        {
            **base_layout(colours, size),
            "height": 100 + row_height * len(down[0]),
            "margin": {"l": 8, "r": 8, "t": 8, "b": 56},
            "coloraxis": colour_axis(colours, size, (0, largest), title=say("−log p"), thickness=10),
            "xaxis": named_axis(colours, size, *across),
            "yaxis": named_axis(colours, size, *down, down=True),
        },
    )
