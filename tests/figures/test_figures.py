"""Figures as data: what is drawn is what the trace holds, where it says, and labels never act as markup."""

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.io
import pytest

from tests.figures.sent import assert_no_markup, numbers, spec
from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.errors import OptionError
from transformer_viz.figures.parts import text_width
from transformer_viz.figures.theme import Style, escape
from transformer_viz.terms import KINDS, REASON_WORDS, Kind
from transformer_viz.trace.trace import Trace

PLACES = [("encoder", 1, 3), ("decoder", 2, 1), ("cross", 0, 4)]


def test_a_theme_is_no_style(trace: Trace) -> None:
    with pytest.raises(OptionError, match=r"style='dark' is no style; give one such as tv.figures.Style\(\"dark\""):
        figures.attention(trace, "cross.1.1", style="dark")  # ty: ignore[invalid-argument-type]


@pytest.mark.parametrize(("kind", "layer", "head"), PLACES)
def test_a_map_is_the_traces_matrix_rows_are_queries(trace: Trace, kind: Kind, layer: int, head: int) -> None:
    drawn = spec(figures.attention(trace, map_address(kind, layer, head)))
    weights, masked = trace.attentions[kind].weights, trace.attentions[kind].mask
    z = numbers(drawn["data"][0]["z"])
    np.testing.assert_array_equal(np.isnan(z), masked)
    np.testing.assert_array_equal(z[~masked], weights[layer, head][~masked])
    layout = drawn["layout"]
    assert layout["yaxis"]["range"][0] > layout["yaxis"]["range"][1], "row 0 must be on top"
    assert layout["xaxis"]["range"] == [-0.5, len(trace.attentions[kind].keys) - 0.5]
    assert len(layout["xaxis"]["ticktext"]) == len(trace.attentions[kind].keys)
    assert len(layout["yaxis"]["ticktext"]) == len(trace.attentions[kind].queries)
    assert (layout["coloraxis"]["cmin"], layout["coloraxis"]["cmax"]) == (0, 1)
    assert "query" in layout["yaxis"]["title"]["text"]
    assert "key" in layout["xaxis"]["title"]["text"]


def test_masked_cells_have_a_grey_trace_that_says_why(trace: Trace) -> None:
    for kind, words in (("decoder", "in the future"), ("cross", "padding")):
        grey = spec(figures.attention(trace, kind))["data"][1]
        np.testing.assert_array_equal(~np.isnan(numbers(grey["z"])), trace.attentions[kind].mask)
        assert "may not look at" in grey["hovertemplate"]
        assert words in grey["hovertemplate"]


def test_no_token_reaches_any_figure_as_markup(trace: Trace) -> None:
    drawn = [figures.attention(trace, k) for k in KINDS] + [figures.mask(trace, k) for k in KINDS]
    drawn += [figures.player(trace, k) for k in KINDS] + [figures.mosaic(trace, k) for k in KINDS]
    drawn += [figures.mask_grid([mask_parts(trace)], [trace.source]), figures.token_losses([trace], losses([trace]))]
    drawn += [figures.before_and_after(trace, trace, f"{k}.1.1") for k in KINDS]
    for figure in drawn:
        assert_no_markup(figure)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("cross.4.1", "no head cross.4.1; its cross attention has layers 1 to 3, and heads 1 to 5"),
        ("cross.1.6", "no head cross.1.6; its cross attention has layers 1 to 3, and heads 1 to 5"),
        ("cross.0.1", "0 is not possible"),
        ("middle.1.1", "kind 'middle' is not known; choose one of encoder, decoder, cross"),
        ("cross.1.sum", "is not an address of attention"),
        ("cross.1.1:2", "names a row, which is not meant here"),
        (("cross", 1, 1), "is no head; write it as text, as in 'cross.2.3', or as a HeadAddress"),
        (None, "None is no head"),
    ],
)
def test_impossible_places_are_refused(trace: Trace, head: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        figures.attention(trace, head)


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_a_frame_draws_nothing_that_has_not_happened(trace: Trace, kind: Kind) -> None:
    figure = spec(figures.player(trace, f"{kind}.2.3", step=3))
    weights, masked = trace.attentions[kind].weights, trace.attentions[kind].mask
    assert [frame["name"] for frame in figure["frames"]] == [str(t) for t in range(len(trace.steps))]
    for t, frame in enumerate(figure["frames"]):
        z = numbers(frame["data"][0]["z"])
        assert np.isnan(z[t + 1 :]).all()
        np.testing.assert_array_equal(np.isnan(z[: t + 1]), masked[: t + 1])
        np.testing.assert_array_equal(z[: t + 1][~masked[: t + 1]], weights[1, 2][: t + 1][~masked[: t + 1]])
        grey = numbers(frame["data"][1]["z"])
        assert np.isnan(grey[t + 1 :]).all()
        np.testing.assert_array_equal(~np.isnan(grey[: t + 1]), masked[: t + 1])
        row = frame["data"][-3]
        assert row["y"] == [t - 0.5, t - 0.5, t + 0.5, t + 0.5, t - 0.5]


def test_the_first_picture_is_the_frame_of_its_step(trace: Trace) -> None:
    figure = spec(figures.player(trace, "cross.2.3", step=3))
    frame = figure["frames"][3]
    for place, update in zip(frame["traces"], frame["data"], strict=True):
        drawn = figure["data"][place]
        assert drawn["type"] == update["type"]
        for name in ("z", "x", "y", "text"):
            if name in update and update[name] is not None and name != "text":
                np.testing.assert_array_equal(numbers(drawn[name]), numbers(update[name]))
    assert figure["layout"]["yaxis2"]["ticktext"] == frame["layout"]["yaxis2"]["ticktext"]


def test_rings_are_on_the_true_keys_until_now(trace: Trace) -> None:
    frames = spec(figures.player(trace, "cross"))["frames"]
    rings = frames[4]["data"][-2]
    assert list(zip(rings["x"], rings["y"], strict=True)) == [(6, 0), (5, 1), (6, 2), (4, 3), (2, 4)]
    assert len(frames[6]["data"][-2]["x"]) == 6, "the end has no true key"
    whole = spec(figures.player(trace, "cross.1.1", 4, style=Style(narrow=True)))
    (drawn,) = (entry for entry in whole["data"] if entry.get("mode") == "markers")
    assert drawn["marker"] == whole["frames"][4]["data"][-2]["marker"], "as large whether it was stepped to or not"
    hidden = spec(figures.player(trace, "cross", with_answer=False))["frames"][4]["data"][-2]
    assert hidden["x"] == []


def test_candidates_are_the_steps_own(trace: Trace) -> None:
    for t, frame in enumerate(spec(figures.player(trace, "cross"))["frames"]):
        bars = frame["data"][-1]
        best = trace.steps[t].candidates[:6]
        np.testing.assert_allclose(bars["x"], [p for _, p in best])
        assert frame["layout"]["yaxis2"]["ticktext"] == [f"<b>{escape(token)}</b>".replace(" ", "␣") for token, _ in best]


def test_a_candidate_is_as_long_as_it_is_probable_and_says_so(trace: Trace) -> None:
    """However little that is: the axis begins at 0, and no number is below its end."""
    probable = (("a", 0.99994), ("b", 5.2e-5), ("c", 7.3e-9), ("d", 0.0))
    own = {"token": trace.output_tokens[0], "candidates": ((trace.output_tokens[0], 0.99994), *probable[1:])}
    run = replace(trace, steps=(replace(trace.steps[0], **own), *trace.steps[1:]))
    figure = spec(figures.player(run, "cross"))
    bars = figure["frames"][0]["data"][-1]
    np.testing.assert_array_equal(bars["x"], [p for _, p in probable])
    assert bars["text"] == ["over 99 %", "0.01 %", "under 0.01 %", "0 %"]
    axis = figure["layout"]["xaxis2"]
    assert axis["range"][0] == 0 and axis.get("type") != "log" and axis["tickvals"][0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_tile_is_its_heads_matrix_and_a_click_finds_it(trace: Trace, kind: Kind) -> None:
    figure = spec(figures.mosaic(trace, kind, (1, 2)))
    canvas, grey, grid = numbers(figure["data"][0]["z"]), numbers(figure["data"][1]["z"]), figure["layout"]["meta"]
    weights, masked = trace.attentions[kind].weights, trace.attentions[kind].mask
    n_layers, n_heads, n_queries, n_keys = weights.shape
    assert (grid["layers"], grid["heads"], grid["kind"]) == (n_layers, n_heads, kind)
    covered = np.zeros(canvas.shape, dtype=bool)
    for layer in range(n_layers):
        for head in range(n_heads):
            top, left = layer * grid["pitch_y"], head * grid["pitch_x"]
            tile = (slice(top, top + n_queries), slice(left, left + n_keys))
            covered[tile] = True
            np.testing.assert_array_equal(np.isnan(canvas[tile]), masked)
            np.testing.assert_array_equal(canvas[tile][~masked], weights[layer, head][~masked])
            np.testing.assert_array_equal(~np.isnan(grey[tile]), masked)
            # The inverse, as charts.js computes it from a click at the middle of any cell.
            ys, xs = np.mgrid[tile]
            assert set(np.floor((xs + 0.5) / grid["pitch_x"]).astype(int).ravel()) == {head}
            assert set(np.floor((ys + 0.5) / grid["pitch_y"]).astype(int).ravel()) == {layer}
    assert np.isnan(canvas[~covered]).all()
    assert np.isnan(grey[~covered]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_figure_shows_each_reason(trace: Trace, kind: Kind) -> None:
    figure = spec(figures.mask(trace, kind))
    reasons = trace.attentions[kind].reasons
    (drawn,) = [entry for entry in figure["data"] if entry["type"] == "heatmap"]
    np.testing.assert_array_equal(numbers(drawn["z"]), reasons)
    # Each code has a flat band of its own: the colour at its place in the range is the legend's.
    names = {entry["name"]: entry["marker"]["color"] for entry in figure["data"] if entry["type"] == "scatter"}
    for code in {0, *reasons.ravel().tolist()}:
        place = (code - drawn["zmin"]) / (drawn["zmax"] - drawn["zmin"])
        colours = {colour for edge, colour in drawn["colorscale"] if abs(edge - place) < 0.1 + 1e-9}
        assert names[REASON_WORDS[code]] in colours


def test_a_notebook_shows_no_logo_and_no_button_that_shares(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotly.io.renderers, "default", "notebook_connected")
    figure = figures.attention(trace, "cross")
    for html in (figure._repr_html_(), figure.to_html()):
        assert '"displaylogo": false' in html and '"showSendToCloud": false' in html
    assert '"displaylogo": true' in figure.to_html(config={"displaylogo": True})


def test_names_of_candidates_leave_the_map_free_and_the_hover_has_them_whole(trace: Trace) -> None:
    token = " counterrevolutionaries"
    step = replace(trace.steps[0], token=token, candidates=((token, 0.5), ("漢字" * 9, 0.2), ("iiiiiiiiiiiii", 0.1)))
    run = replace(trace, steps=(step, *trace.steps[1:]), output_tokens=(token, *trace.output_tokens[1:]))
    frame = spec(figures.player(run, "cross"))["frames"][0]
    names = [name[3:-4] for name in frame["layout"]["yaxis2"]["ticktext"]]
    assert names[2] == "iiiiiiiiiiiii" and all(name.endswith("…") for name in names[:2])
    assert max(text_width(name, 15) for name in names) <= 95, "what the map and its bar leave free where row labels are long"
    assert [whole for whole, _ in frame["data"][-1]["customdata"][:2]] == ["␣counterrevolutionaries", "漢字" * 9]
