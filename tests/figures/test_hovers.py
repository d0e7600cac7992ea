"""The hover over a cell names position and token of its query and its key, whether the axis has room for them or not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.figures.sent import axis_of, heatmaps
from tests.needs import slow
from transformer_viz import Trace, figures
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.analysis.softmax import head_softmax
from transformer_viz.training.result import TrainingSnapshot

SIZES = [(7, 5), slow((71, 67))]
"""Tokens of the source and of the target: with room for all labels, and without."""


@cache
def run(n_source: int, n_target: int) -> Trace:
    rng = np.random.default_rng(n_source)

    def rows(n_queries: int, n_keys: int, *, causal: bool = False) -> np.ndarray:
        weights = rng.random((1, 2, n_queries, n_keys)) * (np.tri(n_queries, n_keys) if causal else 1)
        return weights / weights.sum(-1, keepdims=True)

    written = [f"t{i}" for i in range(1, n_target + 1)]
    made = Trace.from_arrays(
        encoder=rows(n_source, n_source),
        decoder=rows(n_target, n_target, causal=True),
        cross=rows(n_target, n_source),
        masks={"decoder": "causal"},
        source_tokens=[f"s{i}" for i in range(n_source)],
        target_tokens=["<s>", *written[:-1]],
        output_tokens=written,
        probabilities=[0.5] * n_target,
        alignment=[t % n_source for t in range(n_target)],
    )
    attentions = {kind: replace(attention, scores=attention.weights) for kind, attention in made.attentions.items()}
    return replace(made, attentions=attentions)


def moments(trace: Trace) -> list[TrainingSnapshot]:
    return [TrainingSnapshot(step=step, written=trace, forced=trace, target="final output") for step in (0, 10)]


OF_A_KIND: dict[str, Callable[[Trace, Any], go.Figure]] = {
    "attention": lambda trace, kind: figures.attention(trace, kind),
    "before_and_after": lambda trace, kind: figures.before_and_after(trace, trace, f"{kind}.1.2"),
    "change": lambda trace, kind: figures.change(trace, trace, kind),
    "difference": lambda trace, kind: figures.difference(trace, trace, kind),
    "training_playback": lambda trace, kind: figures.training_playback(moments(trace), kind),
    "mask": lambda trace, kind: figures.mask(trace, kind),
    "mask_grid": lambda trace, kind: figures.mask_grid(
        [[part for part in mask_parts(trace) if part.kind == kind]], [trace.source]
    ),
    "player": lambda trace, kind: figures.player(trace, kind),
    "softmax_maps": lambda trace, kind: figures.softmax_maps(trace, f"{kind}.1.2", head_softmax(trace, f"{kind}.1.2"), 2),
}


def label_at(axis: Any, place: int) -> str:
    """What Plotly names a place of an axis in a hover: its tick, or else its number, or what the number stands for."""
    ticks = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert not axis.labelalias or axis.hoverformat == "d", "10000 would be 10k, which stands for nothing"
    return ticks.get(place) or (axis.labelalias or {}).get(str(place), str(place))


def heard(figure: go.Figure) -> list[go.Heatmap]:
    """The heatmaps that say something of a cell."""
    return [drawn for drawn in heatmaps(figure) if drawn.hoverinfo not in ("none", "skip")]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OF_A_KIND)
def test_the_hover_names_every_query_and_key(name: str, size: tuple[int, int]) -> None:
    trace = run(*size)
    for kind in trace.kinds:
        figure = OF_A_KIND[name](trace, kind)
        cells = heard(figure)
        assert cells
        for drawn in cells:
            assert "%{y}" in drawn.hovertemplate
            assert "%{x}" in drawn.hovertemplate
            assert (drawn.x, drawn.y, drawn.x0, drawn.y0) == (None, None, None, None), "cells are counted from 0"
            for axis, tokens, n in zip(
                (axis_of(figure, drawn, "x"), axis_of(figure, drawn, "y")),
                (trace.attentions[kind].keys, trace.attentions[kind].queries),
                np.shape(drawn.z)[::-1],
                strict=True,
            ):
                assert n == len(tokens)
                labels = [label_at(axis, place) for place in range(n)]
                for place, (label, token) in enumerate(zip(labels, tokens, strict=True), start=1):
                    own = token.replace("<", "&lt;").replace(">", "&gt;")
                    assert label.split("→")[0] == f"{place}·{own}", (name, kind)


def test_the_loss_of_every_token_has_its_step() -> None:
    trace = run(65, 100)
    trace = replace(trace, steps=tuple(replace(step, rank=0) for step in trace.steps))
    figure = figures.token_losses([trace, trace], losses([trace, trace]))
    for drawn in heard(figure):
        x, y = axis_of(figure, drawn, "x"), axis_of(figure, drawn, "y")
        assert [label_at(x, place) for place in range(100)] == [str(step) for step in range(1, 101)]
        assert [label_at(y, place)[:2] for place in range(2)] == ["1:", "2:"]
