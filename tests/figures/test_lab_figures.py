"""The laboratory's pictures as data: what is drawn is what was in force, on axes that say so."""

import numpy as np
import pytest

from tests.figures.sent import axis_of, heatmaps
from transformer_viz import decode, figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.analysis.softmax import softmax
from transformer_viz.errors import OptionError


@pytest.fixture(scope="module")
def batch(tiny):
    return decode(
        tiny,
        ["hello", "a b"],
        target=["abc", "e"],
        pad_to=9,
        pad_target_to=5,
        record=("weights", "scores"),
        edits=["cross:1-2"],
    )


def first_map(figure, x):
    return next(trace for trace in heatmaps(figure) if trace.xaxis == x)


def test_a_grid_draws_every_matrix_with_its_own_axes(batch):
    parts = [mask_parts(trace) for trace in batch]
    figure = figures.mask_grid(parts, ["one", "two"])
    drawn = heatmaps(figure)
    assert len(drawn) == 10
    for trace, part in zip(drawn, [part for row in parts for part in row], strict=True):
        np.testing.assert_array_equal(np.asarray(trace.z), part.reasons)
        x, y = axis_of(figure, trace, "x"), axis_of(figure, trace, "y")
        assert len(set(x.ticktext)) == len(part.keys)
        assert len(set(y.ticktext)) == len(part.queries)
        assert y.range[0] > y.range[1], "row 0 on top"
        assert x.range[0] < x.range[1]
    boxes = [(axis_of(figure, t, "x").domain, axis_of(figure, t, "y").domain) for t in drawn]
    for i, (x1, y1) in enumerate(boxes):
        assert 0 <= x1[0] < x1[1] <= 1
        assert 0 <= y1[0] < y1[1] <= 1
        for x2, y2 in boxes[:i]:
            assert x1[1] <= x2[0] or x2[1] <= x1[0] or y1[1] <= y2[0] or y2[1] <= y1[0], "panels overlap"


def test_three_maps_from_scores_to_weights(batch):
    trace = batch[1]
    scores, masked = trace.cross.scores[1, 2], trace.cross.mask
    figure = figures.softmax_maps(trace, "cross.2.3", softmax(scores, masked), 3)
    np.testing.assert_array_equal(first_map(figure, "x").z, scores)
    np.testing.assert_array_equal(np.isnan(first_map(figure, "x2").z), masked)
    np.testing.assert_allclose(first_map(figure, "x3").z, trace.cross.weights[1, 2], atol=1e-6)
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(2.5, 3.5)] * 3
    assert first_map(figure, "x").zmin == -first_map(figure, "x").zmax


def test_before_after_and_the_signed_difference(tiny):
    before, after = decode(tiny, "hello", pad_to=9), decode(tiny, "hello", pad_to=9, edits=["cross:2-*"])
    figure = figures.before_and_after(before, after, "cross.1.mean")
    a, b = (np.nan_to_num(np.asarray(first_map(figure, name).z)) for name in ("x", "x2"))
    n = min(len(a), len(b))
    signed = first_map(figure, "x3")
    assert (signed.zmin, signed.zmax) == (-1, 1)
    np.testing.assert_allclose(np.asarray(signed.z), b[:n] - a[:n], atol=1e-6)
    backwards = figures.before_and_after(after, before, "cross.1.mean")
    np.testing.assert_array_equal(np.asarray(first_map(backwards, "x3").z), -np.asarray(signed.z))


def test_a_change_lies_on_the_axes_of_the_mask_beside_it(tiny):
    before, after = decode(tiny, "hello", pad_to=9), decode(tiny, "hello", pad_to=9, edits=["cross:2-1", "decoder:off"])
    beside = figures.mask(after, "cross", height=400).layout
    figure = figures.change(before, after, "cross.1.mean", height=400)
    for name in ("height", "xaxis.range", "yaxis.range", "xaxis.ticktext", "margin.t"):
        assert figure.layout[name] == beside[name], name
    a, b = (np.asarray(run.cross.weights)[0].mean(0) for run in (before, after))
    n = min(len(a), len(b))
    drawn, hatched = heatmaps(figure)
    hidden = np.isnan(np.asarray(drawn.z))
    np.testing.assert_allclose(np.asarray(drawn.z)[~hidden], (b[:n] - a[:n])[~hidden], atol=1e-6)
    assert hidden[:, 7:].all() and not hidden[:, :7].any(), "padding, masked in both"
    np.testing.assert_array_equal(np.asarray(hatched.z) == 1, hidden)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)


def test_a_loss_for_every_token_and_none_for_padding(batch):
    found = losses(batch)
    figure = figures.token_losses(batch, found)
    drawn, padding = heatmaps(figure)
    np.testing.assert_array_equal(np.isnan(drawn.z), ~found.counted)
    np.testing.assert_array_equal(np.isnan(padding.z), found.counted)
    assert list(drawn.text[0]) == ["a", "b", "c", "&lt;end&gt;", "&lt;pad&gt;"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]


def test_impossible_pictures_are_named(batch, hello):
    with pytest.raises(OptionError, match="a name for each"):
        figures.mask_grid([mask_parts(batch[0])], [])
    with pytest.raises(OptionError, match="no scores of this kind"):
        figures.softmax_maps(hello, "cross.1.1", softmax(np.zeros((1, 1)), np.zeros((1, 1), dtype=bool)), 0)


def test_the_map_of_a_head_that_is_switched_off_is_struck_out_with_the_weights_it_had(tiny):
    before, after = (decode(tiny, "hello", target="abc", edits=edits) for edits in ((), ("cross.1.2:zero",)))
    for head, is_off in ((0, False), (1, True), ("mean", False)):
        figure = figures.attention(after, map_address("cross", 0, head))
        assert len(figure.layout.shapes) == (2 if is_off else 0)
        assert ("its output is 0" in figure.layout.title.text) == is_off
        drawn = np.asarray(first_map(figure, None).z)
        np.testing.assert_array_equal(np.isnan(drawn), after.cross.head_mask(0, head))
        np.testing.assert_allclose(np.nan_to_num(drawn), np.nan_to_num(before.cross.head(0, head)), atol=1e-6)
