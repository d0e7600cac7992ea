"""The figures of the tab On trial: curves, knock-out, counter-proof; as data."""

import numpy as np
import pytest

from tests.figures.conftest import SOURCE, build
from transformer_viz import figures
from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.counter_proof import CounterProof, Moved
from transformer_viz.attribution.result.faithfulness import KS, MeanCurve
from transformer_viz.attribution.result.knock_out import HeadEffect, KnockOut
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import Style
from transformer_viz.trace.trace import Trace


def curve(name, first, interval=None):
    means = tuple(Mean(first - k / 100, interval) for k in KS)
    return MeanCurve(name, means, tuple(Mean(1 - mean.value, mean.interval) for mean in means))


CURVES = (curve("L2 H3", 0.9), curve("rollout", 0.7), curve("occlusion", 0.95), curve("random", 0.2))


@pytest.mark.parametrize("narrow", [False, True])
def test_each_curve_is_in_both_panels(narrow):
    figure = figures.faithfulness(CURVES, style=Style(narrow=narrow))
    assert [trace.name for trace in figure.data] == 2 * ["L2 H3", "rollout", "the cause's own order", "a random order"]
    for trace, (given, what) in zip(
        figure.data, [(each, what) for what in ("comprehensiveness", "sufficiency") for each in CURVES], strict=True
    ):
        assert trace.x == KS and [*trace.y] == [mean.value for mean in getattr(given, what)]
        assert trace.error_y.array is None
    assert [trace.showlegend for trace in figure.data] == [True] * 4 + [False] * 4
    # They differ in more than colour, and have one scale.
    marks = [(trace.marker.symbol, trace.line.dash) for trace in figure.data[:4]]
    assert len({*marks}) == 4 and figure.layout.yaxis2.matches == "y"
    below = figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert below == narrow


def test_intervals_are_drawn_and_what_has_no_number_is_not():
    with_ends = figures.faithfulness([curve("L1 H1", 0.5, (0.25, 0.75))]).data[0].error_y
    assert [*with_ends.array] == pytest.approx([0.25 + k / 100 for k in KS])
    assert [*with_ends.arrayminus] == pytest.approx([0.25 - k / 100 for k in KS])
    nothing = curve("L1 H1", np.nan)
    assert len(figures.faithfulness([nothing, curve("random", 0.1)]).data) == 2
    with pytest.raises(OptionError, match="There is no curve to draw"):
        figures.faithfulness([nothing])


def knocked_out():
    heads = [HeadPlace("cross", layer, head) for layer in (0, 2) for head in range(3)]
    effects = [HeadEffect(place, Mean(-0.1 * n if n else 1e-9), Mean(0.5), Mean(1 - 0.2 * n)) for n, place in enumerate(heads)]
    return KnockOut("zero", 3, 3, Mean(1.0), tuple(effects))


def test_what_is_lost_without_each_head():
    for number, unit in (("answers", 0.2), ("log_p", 0.1)):
        cells, outline = figures.knock_out(knocked_out(), "cross", number, (2, 1)).data
        np.testing.assert_allclose(cells.z, unit * np.arange(6).reshape(2, 3), atol=1e-6)
        # What is nothing but rounding has no sign.
        assert not np.signbit(cells.z).any()
        assert (min(outline.y), max(outline.x)) == (0.5, 1.5)
    with pytest.raises(OptionError, match="No head of kind 'encoder'"):
        figures.knock_out(knocked_out(), "encoder")
    with pytest.raises(OptionError, match="number 'loss' is not known; choose one of answers, log_p"):
        figures.knock_out(knocked_out(), "cross", "loss")  # ty: ignore[invalid-argument-type]


def proof(trace: Trace, scope: str, layers: list[int], heads: list[int]) -> CounterProof:
    places = tuple(HeadPlace("cross", layer, head) for layer in layers for head in heads)
    weights = trace.cross.weights[np.ix_(layers, heads)]
    moved = [Moved(f"to {n}", 0.5 * n, weights * n, 0.1 * n, 0.001) for n in (0, 1, 2)]
    return CounterProof(scope, places, 0.01, weights, tuple(moved))


@pytest.mark.parametrize("narrow", [False, True])
def test_the_map_is_beside_the_farthest_found_alone_and_with_others(narrow):
    trace = build()
    n_layers, n_heads = trace.cross.weights.shape[:2]
    layer, head = n_layers - 1, n_heads - 1
    alone = proof(trace, f"cross.{n_layers}.{n_heads}", [layer], [head])
    joint = proof(trace, "cross", [*range(n_layers)], [*range(n_heads)])
    figure = figures.counter_proof(trace, [alone, joint], layer, head, style=Style(narrow=narrow))
    maps = [each for each in figure.data if "weight" in (each.hovertemplate or "")]
    own = trace.cross.weights[layer, head]
    allowed = np.isfinite(np.asarray(maps[0].z, float))
    for drawn, expected in zip(maps, (own, 2 * own, 2 * own), strict=True):
        assert np.shape(drawn.z)[1] == len(SOURCE) and (drawn.zmin, drawn.zmax) == (0, 1)
        np.testing.assert_allclose(np.asarray(drawn.z, float)[allowed], expected[allowed], atol=1e-6)
    titles = [note.text for note in figure.layout.annotations]
    label = f"L{n_layers} H{n_heads}"
    assert titles == [
        f"<b>{label} as it is</b>",
        "<b>alone: λ = 1.00, to 2</b>",
        "<b>with all of cross-attention: λ = 1.00, to 2</b>",
    ]


def test_a_head_that_was_not_moved_is_refused():
    trace = build()
    alone = proof(trace, "cross.1.1", [0], [0])
    with pytest.raises(OptionError, match=r"cross.1.2 was not moved with cross.1.1"):
        figures.counter_proof(trace, [alone], 0, 1)
    with pytest.raises(OptionError, match="3 counter-proofs cannot be drawn; 1 to 2 can"):
        figures.counter_proof(trace, [alone] * 3, 0, 0)
