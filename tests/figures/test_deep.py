"""Pictures of many layers: chosen heads, an overview of all, the colours of pale maps, and how much is sent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.attentions import with_parts
from tests.figures.sent import numbers, spec
from tests.figures.test_mosaic_detail import build_long, tiles
from transformer_viz import figures
from transformer_viz.analysis.head_order import ordered, statistic
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import LIGHT
from transformer_viz.terms import Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace

LARGEST = 1_000_000
N_LAYERS, N_HEADS = 30, 9


def planted(make_trace: Callable[..., Trace], n: int) -> Trace:
    """A decoder whose heads look evenly back, but for 18.5, which looks at the first token, and 3.2, at the token before."""
    trace = build_long(make_trace, 1, 1, n)
    reasons = np.triu(np.full((n, n), int(Reason.FUTURE), dtype=np.uint8), 1)
    even = np.where(reasons > 0, 0, 1 / np.arange(1, n + 1)[:, None]).astype(np.float32)
    weights = np.tile(even, (N_LAYERS, N_HEADS, 1, 1))
    weights[17, 4] = np.eye(1, n)[np.zeros(n, dtype=int)]
    weights[2, 1] = np.eye(n)[np.maximum(np.arange(n) - 1, 0)]
    return make_trace(**{**vars(trace), "attentions": {"decoder": Attention(weights=weights, reasons=reasons)}})


@pytest.fixture(scope="module")
def short(make_trace: Callable[..., Trace]) -> Trace:
    return planted(make_trace, 12)


def test_numbers_of_heads_are_the_measures(short: Trace) -> None:
    first = statistic(short, "decoder", "first_key")
    assert first[17, 4] == 1
    # Row by row, of those with a choice: 1 of t + 1 keys.
    even = np.mean([1 / (t + 1) for t in range(1, 12)])
    np.testing.assert_allclose(np.delete(first.ravel(), [17 * 9 + 4, 2 * 9 + 1]), even, rtol=1e-6)
    distance = statistic(short, "decoder", "distance")
    assert distance[2, 1] == pytest.approx(11 / 12), "the first row has nothing before it"
    with pytest.raises(OptionError, match="choose one of"):
        statistic(short, "decoder", "mass")


def test_orders_put_the_planted_heads_where_they_belong(short: Trace) -> None:
    assert ordered(short, "decoder") == [(layer, head) for layer in range(N_LAYERS) for head in range(N_HEADS)]
    assert ordered(short, "decoder", "entropy")[:2] == [(2, 1), (17, 4)], "equal ones as in the model"
    assert ordered(short, "decoder", "first_key")[-1] == (17, 4)
    roles = ordered(short, "decoder", "role")
    assert roles.index((2, 1)) < roles.index((17, 4)) == 1, "previous, first, and then the broad ones"


def test_the_overview_has_every_head_and_frames_the_focus(short: Trace) -> None:
    figure = spec(figures.overview(short, "decoder", "first_key", (17, 4)))
    drawn, outline = figure["data"]
    np.testing.assert_allclose(numbers(drawn["z"]), statistic(short, "decoder", "first_key"), rtol=1e-6)
    assert (min(outline["x"]), max(outline["x"]), min(outline["y"]), max(outline["y"])) == (3.5, 4.5, 16.5, 17.5)
    meta = figure["layout"]["meta"]
    assert meta["tiles"][17 * 9 + 4] == [17, 4]
    assert meta["said"][17 * 9 + 4] == "1.000"
    ends = figure["layout"]["coloraxis"]
    assert ends["cmax"] == 1
    assert ends["cmin"] == pytest.approx(np.nanmin(numbers(drawn["z"])))


def test_chosen_heads_stand_in_their_order_and_a_row_may_be_short(short: Trace) -> None:
    heads = [(17, 4), (2, 1), (5, 5), (0, 0), (29, 8)]
    figure = spec(figures.mosaic(short, "decoder", (2, 1), heads=heads, columns=3))
    canvas, weights = numbers(figure["data"][0]["z"]), short.decoder.weights
    found, masked = tiles(figure, canvas), short.decoder.mask
    for place, (layer, head) in enumerate(heads):
        np.testing.assert_array_equal(found[divmod(place, 3)][~masked], weights[layer, head][~masked])
    assert np.isnan(found[1, 2]).all()
    assert figure["layout"]["meta"]["tiles"] == [list(place) for place in heads]
    captions = figure["data"][-1]
    assert captions["text"] == ["L18 H5", "L3 H2", "L6 H6", "L1 H1", "L30 H9"]
    assert captions["textfont"]["color"][1] == LIGHT.accent


def test_what_is_sent_of_a_deep_model_is_at_most_a_megabyte(make_trace: Callable[..., Trace]) -> None:
    """30 × 9 heads, 200 tokens: the overview, and a page of six layers."""
    trace = planted(make_trace, 200)
    heads = [(layer, head) for layer in range(6) for head in range(N_HEADS)]
    assert len(figures.mosaic(trace, "decoder", heads=heads).to_json()) < LARGEST
    assert len(figures.overview(trace, "decoder", "entropy").to_json()) < 50_000
    player = spec(figures.player(trace, "decoder.18.5"))
    assert player["data"][0]["zorder"] == 10, "a cover: the map travels once"


def stops(scale: list[list[Any]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([at for at, _ in scale]), np.array([[int(part) for part in colour[4:-1].split(",")] for _, colour in scale])


def test_logarithmic_colours_are_the_themes_by_decades(short: Trace) -> None:
    for figure in (figures.player(short, "decoder.1.1", scale="log"), figures.attention(short, "decoder.1.1", scale="log")):
        layout = spec(figure)["layout"]
        at, colours = stops(layout["coloraxis"]["colorscale"])
        theme = np.array([[int(part) for part in colour[4:-1].split(",")] for colour in LIGHT.scale])
        for weight in (1e-4, 1e-3, 0.02, 0.5, 1):
            share = 1 + np.log10(weight) / 4
            for channel in range(3):
                wanted = np.interp(share, np.linspace(0, 1, len(theme)), theme[:, channel])
                assert np.interp(weight, at, colours[:, channel]) == pytest.approx(wanted, abs=6)
        assert layout["coloraxis2"]["colorbar"]["ticktext"][-1] == "1"


def test_each_head_to_its_own_maximum(short: Trace) -> None:
    short = replace(short, attentions=with_parts(short, "decoder", weights=short.decoder.weights / 4))
    figure = spec(figures.mosaic(short, "decoder", heads=[(17, 4), (9, 0)], scale="head"))
    found = tiles(figure, numbers(figure["data"][0]["z"]))[0]
    for tile, (layer, head) in enumerate([(17, 4), (9, 0)]):
        weights, masked = short.decoder.weights[layer, head], short.decoder.mask
        np.testing.assert_allclose(found[tile][~masked], (weights / weights.max())[~masked], rtol=1e-6)
    assert "each head to its own maximum" in figure["layout"]["title"]["text"]
    weights = short.decoder.weights[0, 0]
    assert spec(figures.player(short, "decoder.1.1", scale="head"))["layout"]["coloraxis"]["cmax"] == weights.max()
