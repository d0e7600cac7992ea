"""The comparing figures: what is drawn is A − B, what is no difference is drawn as what it is, labels are text."""

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analysis.made_runs import run, runs
from tests.attentions import with_parts
from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.comparison.compare import AlignedMaps, compare
from transformer_viz.figures.difference_mosaic import thinned
from transformer_viz.figures.theme import LIGHT
from transformer_viz.trace.trace import Trace

A, B = run(3, 2, 3, 5, 7), run(4, 3, 2, 7, 2)


def drawn(figure: go.Figure, panel: int, words: str = "") -> list[go.Heatmap]:
    """The heatmaps of a panel (1, 2, 3) whose hover says `words`."""
    here = [trace for trace in figure.data if trace.type == "heatmap" and trace.xaxis == ("x" if panel == 1 else f"x{panel}")]
    return [trace for trace in here if words in trace.hovertemplate]


def signed(figure: go.Figure) -> np.ndarray:
    """All that the third panel draws in the colours of a difference; cells of no two traces overlap."""
    parts = np.stack([np.asarray(trace.z) for trace in drawn(figure, 3) if trace.coloraxis == "coloraxis2"])
    assert (np.isfinite(parts).sum(0) <= 1).all()
    return np.where(np.isfinite(parts).any(0), np.nansum(parts, axis=0), np.nan)


# A figure takes 100 ms to build, mostly Plotly's own checks.
@settings(max_examples=25)
@given(runs(), runs())
def test_what_is_drawn_is_a_minus_b_and_turns_with_the_sides(a: Trace, b: Trace) -> None:
    assume(compare(a, b).kinds)
    kind = compare(a, b).kinds[-1]
    x, y = a.attentions[kind].weights, b.attentions[kind].weights
    figure, back = figures.difference(a, b, kind), figures.difference(b, a, kind)
    z = signed(figure)
    np.testing.assert_array_equal(z, -signed(back))
    q, k = min(x.shape[2], y.shape[2]), min(x.shape[3], y.shape[3])
    expected = x[0, 0, :q, :k] - y[0, 0, :q, :k]
    masks = [run.attentions[kind].head_mask(0, 0) for run in (a, b)]
    both = masks[0][:q, :k] & masks[1][:q, :k]
    np.testing.assert_array_equal(z[:q, :k], np.where(both, np.nan, expected))
    assert np.isnan(z[q:]).all() and np.isnan(z[:, k:]).all()
    for panel, weights, masked in ((1, x, masks[0]), (2, y, masks[1])):
        (heatmap,) = drawn(figure, panel, "weight")
        np.testing.assert_array_equal(heatmap.z, np.where(masked, np.nan, weights[0, 0]))


def test_absent_cells_are_dotted_and_say_who_has_them() -> None:
    figure = figures.difference(A, B, "cross")
    (only_a,), (only_b,), (neither,) = (drawn(figure, 3, words) for words in ("only A", "only B", "neither"))
    assert only_a.colorscale[0][1] == LIGHT.paper, "a canvas knows no transparent colour"
    assert np.argwhere(~np.isnan(only_a.z)).tolist() == [[q, k] for q in range(2, 7) for k in range(5)]
    assert np.argwhere(~np.isnan(only_b.z)).tolist() == [[q, k] for q in range(2) for k in (5, 6)]
    assert np.argwhere(~np.isnan(neither.z)).tolist() == [[q, k] for q in range(2, 7) for k in (5, 6)]
    (dots,) = [trace for trace in figure.data if trace.type == "scatter" and trace.fillpattern.shape == "."]
    corners = {(x, y) for x, y in zip(dots.x, dots.y, strict=True) if x is not None}
    assert corners == {(4.5, -0.5), (6.5, -0.5), (6.5, 1.5), (4.5, 1.5), (-0.5, 1.5), (-0.5, 6.5), (6.5, 6.5)}


def masked_in_one() -> tuple[Trace, Trace]:
    reasons = np.zeros((7, 5), dtype=np.uint8)
    reasons[2, 4] = reasons[6, 0] = 1
    weights = np.full((2, 3, 7, 5), np.float32(0.2))
    first, second = (
        replace(A, attentions=with_parts(A, "cross", weights=weights * np.float32(factor), reasons=mask))
        for factor, mask in ((1, np.zeros_like(reasons)), (0.5, reasons))
    )
    return first, second


def test_a_mask_of_one_alone_is_crossed_and_named() -> None:
    a, b = masked_in_one()
    (named,) = drawn(figures.difference(a, b, "cross"), 3, "masked in B, open in A")
    assert np.argwhere(~np.isnan(named.z)).tolist() == [[2, 4], [6, 0]]
    figure = figures.difference(b, a, "cross")
    assert len(drawn(figure, 3, "masked in A, open in B")) == 1
    assert [trace.fillpattern.shape for trace in figure.data if trace.type == "scatter" and trace.xaxis == "x3"] == ["x"]
    mosaic = figures.difference_mosaic(a, b, "cross")
    assert "x" in [trace.fillpattern.shape for trace in mosaic.data if trace.type == "scatter"]


def test_what_is_not_a_number_has_its_own_colour() -> None:
    weights = np.array(A.cross.weights)
    weights[0, 0, 3, 2] = np.nan
    broken = replace(A, attentions=with_parts(A, "cross", weights=weights), mistake="negated-additive")
    (heatmap,) = drawn(figures.difference(A, broken, "cross"), 3, "not a number")
    assert np.argwhere(~np.isnan(heatmap.z)).tolist() == [[3, 2]]
    assert heatmap.colorscale[0][1] == LIGHT.broken


def test_labels_join_both_sides_and_are_text() -> None:
    a = Trace.from_arrays(cross=np.full((2, 3), 1 / 3), source_tokens=["<b>", "$x$", "a"], target_tokens=["l", "m"])
    b = Trace.from_arrays(cross=np.full((3, 2), 1 / 2), source_tokens=["<b>", "z"], target_tokens=["l", "n", "o"])
    layout = figures.difference(a, b, "cross").layout
    assert layout.xaxis3.ticktext == ("1·&lt;b&gt;", "2·&#36;x&#36;≠z", "3·A: a")
    assert layout.yaxis3.ticktext == ("1·l", "2·m≠n", "3·B: o")
    assert layout.yaxis3.tickvals == (0, 1, 2)
    assert layout.yaxis3.range == (2.5, -0.5)
    a, b = replace(a, output_tokens=("m", "q")), replace(b, output_tokens=("n", "r", "s"))
    names = figures.difference(a, b, "cross").layout.yaxis3.ticktext
    assert names == ("1·l→m≠n", "2·m≠n→q≠r", "3·B: o→s")


def worded(words: str, place: tuple[int, int]) -> Trace:
    """An encoder's run by words that looks at everything alike, but in one cell."""
    tokens = words.split()
    weights = np.full((len(tokens), len(tokens)), 0.1)
    weights[place] = 0.9
    made = Trace.from_arrays(encoder=weights, source_tokens=tokens, normalised=False)
    return replace(made, made_by={"unit": "word"})


def test_words_lie_upon_each_other_by_their_text_and_the_title_says_it() -> None:
    a, b = worded("the house is small", (1, 3)), worded("[CLS] The house was small [SEP]", (0, 0))
    figure = figures.difference(a, b, "encoder")
    labels = ["1·B: [CLS]", "1·the≠The", "2·house", "3·is≠was", "4·small", "6·B: [SEP]"]
    assert list(figure.layout.xaxis3.ticktext) == list(figure.layout.yaxis3.ticktext) == labels
    assert figure.layout.annotations[2].text == "<b>A − B, words by their text</b>"
    z = signed(figure)
    assert z[2, 4] == np.nanmax(z) == pytest.approx(0.8)
    assert np.isfinite(z).tolist() == [[0 < row < 5 and 0 < column < 5 for column in range(6)] for row in range(6)]
    rings = [(ring.x0 + 0.5, ring.y0 + 0.5) for ring in figure.layout.shapes]
    assert rings == [(3, 1), (4, 2), (4, 2)], "the same cell in A, in B and in A − B"
    (dots,) = [trace for trace in figure.data if trace.type == "scatter" and trace.fillpattern.shape == "."]
    ends = [(x, y) for x, y in zip(dots.x, dots.y, strict=True) if x is not None]
    boxes = {(*ends[place], *ends[place + 2]) for place in range(0, len(ends), 5)}
    across = {(-0.5, 0.5, 0.5, 4.5), (4.5, 0.5, 5.5, 4.5)}
    assert boxes == across | {(-0.5, -0.5, 5.5, 0.5), (-0.5, 4.5, 5.5, 5.5)}
    assert "words by their text" in figures.difference_mosaic(a, b, "encoder").layout.title.text


# ---- all heads


def canvas(figure: go.Figure) -> np.ndarray:
    return np.asarray(figure.data[0].z)


def test_each_tile_of_the_mosaic_is_its_heads_difference() -> None:
    figure = figures.difference_mosaic(A, B, "cross", (1, 0))
    meta: Any = figure.layout.meta
    assert (meta["kind"], meta["layers"], meta["heads"], meta["block"]) == ("cross", 2, 2, [1, 1])
    for layer in range(2):
        for head in range(2):
            laid = compare(A, B).one_head(map_address("cross", layer, head))
            top, left = layer * meta["pitch_y"], head * meta["pitch_x"]
            tile = canvas(figure)[top : top + 7, left : left + 7]
            np.testing.assert_array_equal(tile, np.where(laid.masked == 3, np.nan, laid.difference))
    assert LIGHT.accent in [drawn.line.color for drawn in figure.data if drawn.type == "scatter"]


def test_larger_mosaics_travel_as_bytes_that_turn_with_the_sides() -> None:
    a, b = run(2, 1, 2, 41, 37), run(3, 1, 2, 41, 37)
    there, back = (canvas(figures.difference_mosaic(*pair, "cross")) for pair in ((a, b), (b, a)))
    assert there.dtype == np.uint8
    numbers = there > 5
    np.testing.assert_array_equal(numbers, back > 5)
    np.testing.assert_array_equal(there[numbers].astype(int) - 130, 130 - back[numbers].astype(int))
    laid = compare(a, b).all_heads("cross")
    shades = np.rint(laid.difference[0, 0] * 124) + 130
    tile = there[:37, :41]
    np.testing.assert_array_equal(tile[tile > 5], shades[tile > 5])
    assert (tile[laid.masked[0, 0] == 3] == 2).all()


@given(st.integers(0, 99), st.integers(1, 4), st.integers(1, 5))
def test_a_block_shows_the_difference_farthest_from_0(seed: int, rows: int, columns: int) -> None:
    random = np.random.default_rng(seed)
    difference = random.choice([-0.5, -0.25, 0, 0.25, 0.5, np.nan], (2, 3, 11, 7)).astype(np.float32)
    laid = AlignedMaps(difference, np.full((11, 7), 3, dtype=np.uint8), np.zeros(difference.shape, dtype=np.uint8))
    found = thinned(laid, (rows, columns)).difference
    other = thinned(replace(laid, difference=-difference), (rows, columns)).difference
    np.testing.assert_array_equal(found, -other)
    for q in range(found.shape[2]):
        for k in range(found.shape[3]):
            block = difference[:, :, q * rows : (q + 1) * rows, k * columns : (k + 1) * columns].reshape(2, 3, -1)
            for place in np.ndindex(2, 3):
                known = [value for value in block[place] if not np.isnan(value)]
                farthest = max(known, key=abs, default=np.nan)
                np.testing.assert_equal(found[*place, q, k], np.float32(farthest))
