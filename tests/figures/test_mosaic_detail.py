"""Mosaics of more cells: bytes instead of numbers, then blocks instead of cells. What is drawn is still the run's."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.attentions import with_parts
from tests.figures.sent import numbers, spec
from transformer_viz import figures
from transformer_viz.figures.theme import DARK, LIGHT, Style
from transformer_viz.terms import Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace


def build_long(make_trace: Callable[..., Trace], n_layers: int, n_heads: int, n: int, seed: int = 0) -> Trace:
    """A decoder of n tokens with the causal mask, and one column of padding."""
    reasons = np.triu(np.full((n, n), int(Reason.FUTURE), dtype=np.uint8), 1)
    reasons[5:, 3] = Reason.PADDING
    raw = np.random.default_rng(seed).random((n_layers, n_heads, n, n)).astype(np.float32) ** 6
    raw = np.where(reasons > 0, np.float32(0), raw)
    step = make_trace().steps[0]
    return make_trace(
        source_tokens=("a",), source_letters=(None,), target_tokens=("b",) * n, output_tokens=(step.token,) * n,
        steps=(step,) * n, alignment=(None,) * n,
        attentions={"decoder": Attention(weights=raw / raw.sum(-1, keepdims=True), reasons=reasons)},
    )  # fmt: skip


def tiles(figure: dict[str, Any], canvas: np.ndarray) -> np.ndarray:
    """(layer, head, row, column) of the canvas."""
    grid = figure["layout"]["meta"]
    n_layers, n_heads = grid["layers"], grid["heads"]
    rows = canvas.shape[0] - (n_layers - 1) * grid["pitch_y"]
    columns = canvas.shape[1] - (n_heads - 1) * grid["pitch_x"]
    return np.array(
        [
            [canvas[y * grid["pitch_y"] :, x * grid["pitch_x"] :][:rows, :columns] for x in range(n_heads)]
            for y in range(n_layers)
        ]
    )


def test_bytes_are_the_weights_in_250_shades_and_masked_cells_have_a_code(make_trace: Callable[..., Trace]) -> None:
    trace = build_long(make_trace, 2, 3, 37)
    figure = spec(figures.mosaic(trace, "decoder", (1, 2)))
    drawn, *others = [entry for entry in figure["data"] if entry["type"] == "heatmap"]
    assert not others
    assert drawn["z"]["dtype"] == "u1"
    assert (drawn["zmin"], drawn["zmax"]) == (0, 255)
    canvas = numbers(drawn["z"])
    found, masked = tiles(figure, canvas), np.broadcast_to(trace.decoder.mask, (2, 3, 37, 37))
    np.testing.assert_array_equal(found == 2, masked)
    np.testing.assert_allclose((found[~masked] - 5) / 250, trace.decoder.weights[~masked], atol=0.5 / 250 + 1e-6)
    assert (canvas == 0).sum() == canvas.size - found.size, "between the tiles nothing is drawn"
    assert figure["layout"]["title"]["text"] == "decoder self-attention (grey: masked)"


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_byte_has_its_colour(make_trace: Callable[..., Trace], theme: Any) -> None:
    """The scale, looked up as Plotly does: linear between stops."""
    name = "light" if theme is LIGHT else "dark"
    drawn = spec(figures.mosaic(build_long(make_trace, 1, 2, 37), "decoder", style=Style(name)))["data"][0]
    stops = drawn["colorscale"]
    assert [edge for edge, _ in stops] == sorted(edge for edge, _ in stops)
    assert (stops[0][0], stops[-1][0]) == (0, 1)

    def flat_at(code: int) -> set[str]:
        below = max(i for i, (edge, _) in enumerate(stops) if edge <= code / 255)
        return {colour for _, colour in stops[below : below + 2]}

    assert flat_at(0) == {theme.paper}
    assert flat_at(2) == {theme.masked}
    last = len(theme.scale) - 1
    for i, colour in enumerate(theme.scale):
        at = (5 + 250 * i / last) / 255
        assert any(abs(edge - at) < 1e-9 and stop == colour for edge, stop in stops)


@pytest.mark.parametrize(("n_layers", "n_heads", "n"), [(1, 8, 67), (2, 3, 131), (5, 2, 97), (7, 16, 41)])
def test_more_cells_than_pixels_show_the_strongest_of_each_block_and_say_so(
    make_trace: Callable[..., Trace], n_layers: int, n_heads: int, n: int
) -> None:
    trace = build_long(make_trace, n_layers, n_heads, n)
    figure = spec(figures.mosaic(trace, "decoder"))
    tall, wide = figure["layout"]["meta"]["block"]
    assert tall * wide > 1
    found = tiles(figure, numbers(figure["data"][0]["z"]))
    weights, masked = trace.decoder.weights, trace.decoder.mask
    assert found.shape == (n_layers, n_heads, -(-n // tall), -(-n // wide))
    for row in range(found.shape[2]):
        for column in range(found.shape[3]):
            block = (slice(row * tall, (row + 1) * tall), slice(column * wide, (column + 1) * wide))
            if masked[block].all():
                assert (found[:, :, row, column] == 2).all()
            else:
                strongest = weights[(..., *block)].max((2, 3))
                np.testing.assert_allclose((found[:, :, row, column] - 5) / 250, strongest, atol=0.5 / 250 + 1e-6)
    assert figure["layout"]["title"]["text"].endswith(f"each cell the strongest of {tall} × {wide}")


def test_numbers_that_are_none_are_left_blank(make_trace: Callable[..., Trace]) -> None:
    whole = build_long(make_trace, 1, 2, 37)
    weights = whole.decoder.weights.copy()
    weights[0, 1, 9] = np.nan
    broken = replace(whole, attentions=with_parts(whole, "decoder", weights=weights), mistake="some")
    figure = spec(figures.mosaic(broken, "decoder"))
    found = tiles(figure, numbers(figure["data"][0]["z"]))
    masked = whole.decoder.mask
    np.testing.assert_array_equal(found[0, 1, 9] == 0, ~masked[9])
    assert (found == 0).sum() == (~masked[9]).sum()
