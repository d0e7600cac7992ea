"""What could have been written at a step: bars of probability on a logarithmic axis, best first."""

import math
from typing import Any

from transformer_viz.figures.margins import text_width
from transformer_viz.figures.plain import Plain, bar
from transformer_viz.figures.theme import Theme, shown
from transformer_viz.trace.trace import Candidate, Fill, Step, Trace

N_CANDIDATES = 6
LEAST = -4.0
"""The axis begins at 10^-4; less is said in words."""
_LONGEST_NAME, _ROOM = 14, 6.3
"""Signs of a token beside its bar, and how wide it may be, as a multiple of the letters' size."""
_INSIDE_FROM = 0.03
"""From here up a bar is long enough for its own number, also on a phone; plotly.js measures too late, when bars are hidden."""


def bars(size: int, axes: str) -> Plain:
    """The trace that `at_step` fills; `axes` is the number of its axes, as in `x2`."""
    return bar(
        orientation="h",
        xaxis=f"x{axes}",
        yaxis=f"y{axes}",
        width=0.62,
        textangle=0,
        constraintext="none",
        textfont={"size": size},
        hovertemplate="<b>%{customdata[0]}</b><br>probability %{customdata[1]}<extra></extra>",
        cliponaxis=False,
    )


def at_masks(trace: Trace) -> tuple[Step | None, ...]:
    """What an encoder alone would put at its mask tokens, as steps: one for each token, None where there is no mask."""
    fills = {fill.place: fill for fill in trace.fills}
    return tuple(_as_step(fills.get(place)) for place in range(len(trace.source_tokens))) if fills else ()


def _as_step(fill: Fill | None) -> Step | None:
    if fill is None:
        return None
    token, p = fill.candidates[0]
    number = fill.candidate_ids[0] if fill.candidate_ids else None
    found: dict[str, Any] = {"candidates": fill.candidates, "candidate_ids": fill.candidate_ids, "token_id": number}
    return Step(token=token, probability=p, log_probability=math.log(p) if p > 0 else -math.inf, rank=0, **found)


def at_step(step: Step | None, theme: Theme) -> dict[str, Any]:
    """A step's candidates as properties of the bars; the step's own token stands out."""
    best = _best(step)
    return {
        "x": [max(p, 10**LEAST) for _, p, _, _ in best],
        "y": list(range(len(best))),
        "text": [_probability(p) for _, p, _, _ in best],
        "textposition": ["inside" if p >= _INSIDE_FROM else "outside" for _, p, _, _ in best],
        "marker": {"color": [theme.chosen if is_own else theme.other for *_, is_own in best]},
        "customdata": [[shown(token) + number, f"{p:.3g}"] for token, p, number, _ in best],
    }


def names(step: Step | None) -> dict[str, Any]:
    """A step's candidates as ticks of the token axis."""
    best = _best(step)
    return {"tickvals": list(range(len(best))), "ticktext": [f"<b>{_name(token)}</b>" for token, *_ in best]}


def _name(token: str) -> str:
    """Cut where it would lie over the map beside it; the hover has all of it."""
    fitting = (label for most in range(_LONGEST_NAME, 1, -1) if text_width(label := shown(token, most), 1) <= _ROOM)
    return next(fitting, shown(token, 1))


def token_axis(theme: Theme, size: int, axes: str) -> dict[str, Any]:
    """Best on top; `names` has the ticks."""
    return {
        "range": [N_CANDIDATES - 0.4, -0.6],
        "tickmode": "array",
        "tickfont": {"size": size + 2, "color": theme.ink},
        "ticklabelstandoff": 6,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
        "automargin": True,
        "ticklabeloverflow": "allow",
        "anchor": f"x{axes}",
    }


def probability_axis(theme: Theme, size: int, axes: str) -> dict[str, Any]:
    """From 10^-4 to 1."""
    return {
        "type": "log",
        "range": [LEAST, 0.02],
        "tickvals": [1e-4, 1e-3, 1e-2, 1e-1, 1],
        "ticktext": ["≤ 0.0001", "0.001", "0.01", "0.1", "1"],
        "tickfont": {"size": size - 2, "color": theme.muted},
        "tickangle": 0,
        "title": {
            "text": "candidates: probability (log scale)",
            "font": {"size": size, "color": theme.muted},
            "standoff": 6,
        },
        "gridcolor": theme.grid,
        "automargin": True,
        "ticklabeloverflow": "allow",
        "zeroline": False,
        "fixedrange": True,
        "anchor": f"y{axes}",
    }


def _best(step: Step | None) -> list[tuple[str, float, str, bool]]:
    """The best candidates, and the step's own token in the last place where it is not among them: the label, its probability,
    its id for the hover where labels do not tell, and whether it is the step's own."""
    if step is None:
        return []
    ids = step.candidate_ids or (None,) * len(step.candidates)
    own = (step.token, step.probability), step.token_id
    best = list(zip(step.candidates, ids, strict=True))[:N_CANDIDATES]

    def is_own(candidate: Candidate, number: int | None) -> bool:
        return candidate[0] == step.token if number is None else number == step.token_id

    if not any(is_own(*each) for each in best):
        best = [*best[: N_CANDIDATES - 1], own]
    return [(*found, "" if number is None else f" (id {number})", is_own(found, number)) for found, number in best]


def _probability(p: float) -> str:
    """Four places, never rounded up to certainty; below them the order of magnitude."""
    if p < 10**LEAST:
        return f"10<sup>{math.floor(math.log10(p))}</sup>" if p > 0 else "0"
    return f"{math.floor(p * 1e4) / 1e4:.4f}" if p < 1 else "1"
