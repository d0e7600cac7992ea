"""The small picture of a lesson: the run that one of its steps opens, drawn as that step points at it."""

from functools import lru_cache

import numpy as np

from transformer_viz.errors import TransformerVizError
from transformer_viz.figures import thumbnail as small
from transformer_viz.figures.theme import THEMES, Theme, ThemeName
from transformer_viz.learn.example_run import DEFAULT_MODEL, Example, example_of, folder_of, load_model, measured
from transformer_viz.learn.lesson import Ask, Lesson
from transformer_viz.learn.links import Link, read_link
from transformer_viz.learn.questions import CAUSE, Spot
from transformer_viz.trace.trace import Trace
from transformer_viz.training.replay import trace_training

_MOMENTS = 3


def thumbnail(lesson: Lesson, theme: ThemeName) -> str:
    """The picture as SVG; nothing where its run cannot be made."""
    number = min(lesson.picture, len(lesson.steps)) - 1
    start = lesson.start_of(number)
    try:
        if start is None:
            return ""
        folder = folder_of(read_link(start.address))
        return _drawn(start.address, theme, folder, has_all=lesson.steps[number].point.endswith("maps"))
    except TransformerVizError:
        return ""


@lru_cache(maxsize=64)
def _drawn(address: str, theme: ThemeName, _folder: str, *, has_all: bool) -> str:
    link, colours = read_link(address), THEMES[theme]
    if "moment" in link.values:
        return _training(link, colours)
    if (example := example_of(address)) is None:
        return ""
    if link.values.get("decoding") == "beam" and example.trace.search is not None:
        return small.tree(example.trace.search, colours)
    if has_all:
        attention = example.trace.attentions[example.focus.kind]
        heads = [(layer, head) for layer in attention.layers for head in range(attention.n_heads)]
        return small.maps([(attention.head(*at), attention.head_mask(*at)) for at in heads], attention.n_heads, colours)
    if link.values.get("measure") == "cause":
        return _with_cause(example, colours)
    return small.maps([_map(example.trace, example.focus)], 1, colours)


def _training(link: Link, colours: Theme) -> str:
    """One head before a training, in its middle, and after it."""
    model = load_model(link.values.get("checkpoint", DEFAULT_MODEL))
    found = trace_training(model, link.values.get("text") or model.task.examples()[0].text, moments=_MOMENTS)
    spot = Spot(link.kind or "cross", (link.number("layer") or 1) - 1, link.head or 0, 0)
    return small.maps([_map(one.forced, spot) for one in found], len(found), colours)


def _map(trace: Trace, spot: Spot) -> small.Map:
    attention = trace.attentions[spot.kind]
    return attention.head(spot.layer, spot.head), attention.head_mask(spot.layer, spot.head)


def _with_cause(example: Example, colours: Theme) -> str:
    values = measured(example, Ask(kind="matters-most")).attributions[CAUSE].values
    causes = np.nan_to_num(values.reshape(-1, *values.shape[-2:])[0])
    weights, masked = _map(example.trace, example.focus)
    return small.maps([(weights, masked), (causes / max(1e-9, np.abs(causes).max()), masked)], 2, colours, is_signed=True)
