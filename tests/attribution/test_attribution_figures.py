"""The figures of the room as data: faithfulness, knock-out, counter-proof, patching."""

import numpy as np
import pytest

import transformer_viz as tv
from tests.figures.conftest import SOURCE, build
from tests.figures.sent import numbers
from transformer_viz import figures
from transformer_viz.addresses import AttentionAddress, HeadAddress
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.counter_proof import CounterProof, MovedWeights
from transformer_viz.attribution.result.knock_out import HeadEffect, KnockOut
from transformer_viz.attribution.result.patching import Patching, parting
from transformer_viz.attribution.result.verdict import KS, MeanCurve
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import DARK, LIGHT, Style
from transformer_viz.terms import Kind


def curve(name, first, interval=None):
    means = tuple(Mean(first - k / 100, interval) for k in KS)
    return MeanCurve(name, means, tuple(Mean(1 - mean.value, mean.interval) for mean in means))


CURVES = (curve("L2 H3", 0.9), curve("rollout", 0.7), curve("occlusion", 0.95), curve("random", 0.2))


def test_each_curve_is_in_both_panels():
    figure = figures.faithfulness(CURVES, style=Style(narrow=True))
    assert [trace.name for trace in figure.data] == 2 * ["L2 H3", "rollout", "the cause's own order", "a random order"]
    means = [getattr(one, what) for what in ("comprehensiveness", "sufficiency") for one in CURVES]
    for trace, expected in zip(figure.data, means, strict=True):
        assert trace.x == KS and [*trace.y] == [mean.value for mean in expected] and trace.error_y.array is None
    assert [trace.showlegend for trace in figure.data] == [True] * 4 + [False] * 4
    # They differ in more than colour, and have one scale.
    marks = [(trace.marker.symbol, trace.line.dash) for trace in figure.data[:4]]
    assert len({*marks}) == 4 and figure.layout.yaxis2.matches == "y"
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    ends = figures.faithfulness([curve("L1 H1", 0.5, (0.25, 0.75))]).data[0].error_y
    assert [*ends.array] == pytest.approx([0.25 + k / 100 for k in KS])
    assert [*ends.arrayminus] == pytest.approx([0.25 - k / 100 for k in KS])
    nothing = curve("L1 H1", np.nan)
    assert len(figures.faithfulness([nothing, curve("random", 0.1)]).data) == 2
    with pytest.raises(OptionError, match="There is no curve to draw"):
        figures.faithfulness([nothing])


def test_what_is_lost_without_each_head():
    heads = [HeadAddress("cross", layer, head) for layer in (0, 2) for head in range(3)]
    effects = [HeadEffect(place, Mean(-0.1 * n if n else 1e-9), Mean(0.5), Mean(1 - 0.2 * n)) for n, place in enumerate(heads)]
    result = KnockOut("zero", 3, 3, Mean(1.0), tuple(effects))
    for number, unit in (("answers", 0.2), ("log_p", 0.1)):
        cells, outline = figures.knock_out(result, "cross", number, (2, 1)).data
        np.testing.assert_allclose(cells.z, unit * np.arange(6).reshape(2, 3), atol=1e-6)
        # What is nothing but rounding has no sign.
        assert not np.signbit(cells.z).any()
        assert (min(outline.y), max(outline.x)) == (0.5, 1.5)
    with pytest.raises(OptionError, match="No head of kind 'encoder'"):
        figures.knock_out(result, "encoder")
    with pytest.raises(OptionError, match="number 'loss' is not known; choose one of answers, log_p"):
        figures.knock_out(result, "cross", "loss")  # ty: ignore[invalid-argument-type]


def proof(trace: tv.Trace, scope: str, layers: list[int], heads: list[int]) -> CounterProof:
    places = tuple(HeadAddress("cross", layer, head) for layer in layers for head in heads)
    weights = trace.cross.weights[np.ix_(layers, heads)]
    return CounterProof(
        scope, places, 0.01, weights, tuple(MovedWeights(f"to {n}", n / 2, weights * n, n / 10, 0.001) for n in range(3))
    )


def test_the_map_is_beside_the_farthest_found_alone_and_with_others():
    trace = build()
    n_layers, n_heads = trace.cross.weights.shape[:2]
    layer, head, label = n_layers - 1, n_heads - 1, f"L{n_layers} H{n_heads}"
    alone = proof(trace, f"cross.{n_layers}.{n_heads}", [layer], [head])
    joint = proof(trace, "cross", [*range(n_layers)], [*range(n_heads)])
    figure = figures.counter_proof(trace, [alone, joint], HeadAddress("cross", layer, head), style=Style(narrow=True))
    maps = [each for each in figure.data if "weight" in (each.hovertemplate or "")]
    weights = trace.cross.weights[layer, head]
    allowed = np.isfinite(np.asarray(maps[0].z, float))
    for drawn, expected in zip(maps, (weights, 2 * weights, 2 * weights), strict=True):
        assert np.shape(drawn.z)[1] == len(SOURCE) and (drawn.zmin, drawn.zmax) == (0, 1)
        np.testing.assert_allclose(np.asarray(drawn.z, float)[allowed], expected[allowed], atol=1e-6)
    titles = f"{label} as it is", "alone: λ = 1.00, to 2", "with all of cross-attention: λ = 1.00, to 2"
    assert [note.text for note in figure.layout.annotations] == [f"<b>{title}</b>" for title in titles]
    with pytest.raises(OptionError, match=r"cross.1.2 was not moved with cross.1.1"):
        figures.counter_proof(trace, [proof(trace, "cross.1.1", [0], [0])], "cross.1.2")
    with pytest.raises(OptionError, match="3 counter-proofs cannot be drawn; 1 to 2 can"):
        figures.counter_proof(trace, [alone] * 3, "cross.1.1")


EFFECTS: dict[Kind, np.ndarray] = {
    "encoder": np.linspace(-0.5, 0.2, 2 * 3 * 4).reshape(2, 3, 4),
    "cross": np.array([[[0.0, 0.1], [0.2, 0.3], [0.0, -0.4]]]),
}
BY_HEAD = Patching("head", 1, ("y", "z"), (2.0, -1.0), EFFECTS, {"encoder": (0, 1), "cross": (4,)})
BY_LAYER = Patching("layer", 1, ("y", "z"), (2.0, -1.0), {kind: each[:, 0] for kind, each in EFFECTS.items()}, BY_HEAD.layers)


A, B = (
    tv.Trace.from_arrays(
        cross=np.full((1, 1, 3, 4), 0.25),
        source_tokens=("<start>", read, "l", "<end>"),
        target_tokens=("<start>", "x", wrote),
        output_tokens=("x", wrote, "<end>"),
    )
    for read, wrote in (("<b>", "y"), ("k", "z"))
)
"""Four source tokens, of which one would be markup, and three steps; they part at the second."""


def test_a_cell_is_an_effect_on_a_scale_around_nought():
    assert parting(A, B) == 1
    columns: dict[Kind, tuple[str, ...]] = {
        "encoder": ("1·&lt;start&gt;", "2·&lt;b&gt;≠k", "3·l", "4·&lt;end&gt;"),
        "cross": ("1·&lt;start&gt;→x", "2·x→y≠z"),
    }
    for kind, expected in columns.items():
        figure = figures.patching(BY_HEAD, A, B, kind)
        rows = [f"L{layer + 1} H{head}" for layer in BY_HEAD.layers[kind] for head in (1, 2, 3)]
        np.testing.assert_allclose(numbers(figure.data[0].z), EFFECTS[kind].reshape(len(rows), -1), atol=1e-7)
        assert (list(figure.layout.yaxis.ticktext), figure.layout.xaxis.ticktext) == (rows, expected)
        axis = figure.layout.coloraxis
        assert (axis.cmin, axis.cmax, axis.colorscale[3]) == (-0.5, 0.5, (0.5, LIGHT.paper))
    figure = figures.patching(BY_LAYER, A, B, "encoder", (AttentionAddress("encoder", 1), 2), style=Style("dark", large=True))
    assert list(figure.layout.yaxis.ticktext) == ["L1", "L2"]
    [frame] = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5) and frame.line.color == DARK.ink
    assert not figures.patching(BY_LAYER, A, B, "cross", (AttentionAddress("encoder", 1), 2)).layout.shapes
    with pytest.raises(OptionError, match="kind 'decoder' is not in this patching; it has encoder, cross"):
        figures.patching(BY_HEAD, A, B, "decoder")
    with pytest.raises(OptionError, match="limit=0 is not possible"):
        figures.patching(BY_HEAD, A, B, "cross", limit=0)
