"""Draws the candidates of a step: bars of probability, best first."""

import math
from typing import Any

from transformer_viz.figures.figure_data import Plain, bar
from transformer_viz.figures.parts import axis, on_axes, text_width
from transformer_viz.figures.theme import Theme, token_label
from transformer_viz.language import say
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace

N_CANDIDATES = 6
_FEW = 0.01
_LONGEST_NAME, _ROOM = 14, 6.3
"""The most characters of a token beside its bar, and its largest width, as a multiple of the font size."""
_INSIDE_FROM = 0.5
"""From this probability on, the number stands inside its bar. plotly.js would decide that itself, but not for hidden bars."""


def bars(size: int, number: int) -> Plain:
    """The trace that `at_step` fills, on the axes of this number."""
    return bar(
        orientation="h",
        **on_axes(number),
        width=0.62,
        textangle=0,
        constraintext="none",
        textfont={"size": size},
        hovertemplate=say("<b>%{{customdata[0]}}</b><br>probability %{{customdata[1]}}<extra></extra>"),
        cliponaxis=False,
    )


def at_masks(trace: Trace) -> tuple[Step | None, ...]:
    """An encoder's fills as steps: for each source token a Step where it is a mask token, else None."""
    steps: dict[int, Step] = {}
    for fill in trace.fills:
        (token, p), ids = fill.candidates[0], fill.candidate_ids
        known: dict[str, Any] = {"candidates": fill.candidates, "candidate_ids": ids, "token_id": ids[0] if ids else None}
        log_p = math.log(p) if p > 0 else -math.inf
        steps[fill.place] = Step(token=token, probability=p, log_probability=log_p, rank=0, **known)
    return tuple(steps.get(place) for place in range(len(trace.source_tokens))) if steps else ()


def at_step(step: Step | None, theme: Theme) -> dict[str, Any]:
    """A step's candidates as properties of the bars; the step's own token stands out."""
    best = _best(step)
    return {
        "x": [p for _, p, _, _ in best],
        "y": list(range(len(best))),
        "text": [_number(p) for _, p, _, _ in best],
        "textposition": ["inside" if p >= _INSIDE_FROM else "outside" for _, p, _, _ in best],
        "marker": {"color": [theme.chosen if is_own else theme.other for *_, is_own in best]},
        "customdata": [[token_label(token) + number, probability_words(p, 2)] for token, p, number, _ in best],
    }


def names(step: Step | None) -> dict[str, Any]:
    """A step's candidates as ticks of the token axis."""
    best = _best(step)
    return {"tickvals": list(range(len(best))), "ticktext": [f"<b>{_name(token)}</b>" for token, *_ in best]}


def _name(token: str) -> str:
    """Cut where it would lie over the map beside it; the hover has all of it."""
    fitting = (label for most in range(_LONGEST_NAME, 1, -1) if text_width(label := token_label(token, most), 1) <= _ROOM)
    return next(fitting, token_label(token, 1))


def token_axis(theme: Theme, size: int, number: int, domain: list[float]) -> dict[str, Any]:
    """Best on top; `names` has the ticks."""
    looks: dict[str, Any] = {"tickfont": {"size": size + 2, "color": theme.ink}, "ticklabeloverflow": "allow"}
    more = {"tickmode": "array", "ticklabelstandoff": 6, "domain": domain, "anchor": f"x{number}", "fixedrange": True}
    return axis(theme, size, (N_CANDIDATES - 0.4, -0.6), **looks, **more)


def probability_axis(theme: Theme, size: int, number: int, domain: list[float]) -> dict[str, Any]:
    """The axis of probabilities, from 0 to 1."""
    ticks = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["0", "", "50 %", "", "100 %"], "tickangle": 0}
    looks: dict[str, Any] = {"tickfont": {"size": size - 2, "color": theme.muted}, "ticklabeloverflow": "allow"}
    more = {"showgrid": True, "domain": domain, "anchor": f"y{number}", "fixedrange": True}
    return axis(theme, size, (0, 1.02), say("candidates: probability"), **ticks, **looks, **more)


def _best(step: Step | None) -> list[tuple[str, float, str, bool]]:
    """The best candidates, and the step's own token in the last place where it is not among them: the label, its probability,
    its id for the hover where labels do not tell, and whether it is the step's own. Of a covered step nothing is known."""
    if step is None or not (step.candidates or step.probability):
        return []
    best, has_own = [], False
    for place, (token, p) in enumerate(step.candidates[:N_CANDIDATES]):
        number = step.candidate_ids[place] if step.candidate_ids else None
        is_own = token == step.token if number is None else number == step.token_id
        best.append((token, p, "" if number is None else f" (id {number})", is_own))
        has_own |= is_own
    own = step.token, step.probability, "" if step.token_id is None else f" (id {step.token_id})", True
    return best if has_own else [*best[: N_CANDIDATES - 1], own]


def _number(p: float) -> str:
    """Beside its bar; of what is hardly probable with two places more."""
    return probability_words(p, 2 if 0 < p < _FEW else 0)
