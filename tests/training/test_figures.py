"""The pictures of a training as data: the film with the right matrix in the right frame, the curves, and the filmstrip."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.figures.sent import assert_no_markup, numbers, spec
from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.query_rows import head_mass
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import Style, escape
from transformer_viz.terms import Kind
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.training.result import TrainingSnapshot, head_masses

STEPS = (0, 1, 7, 150, 12_500)


def with_numbers_of(step: Step, other: Step) -> Step:
    """The same tokens with another step's probabilities."""
    numbered = tuple((token, p) for (token, _), (_, p) in zip(step.candidates, other.candidates, strict=True))
    return replace(step, probability=other.probability, log_probability=other.log_probability, candidates=numbered)


@pytest.fixture(scope="module")
def moments(make_trace: Callable[..., Trace]) -> list[TrainingSnapshot]:
    """Five moments whose weights and candidates all differ; their masks and tokens do not."""
    whole = make_trace()
    found = []
    for i, step in enumerate(STEPS):
        # Another order of heads is another picture, and rows still sum to 1.
        rolled: dict[str, Any] = {kind: np.roll(each.weights, i, axis=1) for kind, each in whole.attentions.items()}
        steps = tuple(with_numbers_of(step, whole.steps[(t + i) % len(whole.steps)]) for t, step in enumerate(whole.steps))
        run = make_trace(**rolled, steps=steps)
        found.append(TrainingSnapshot(step=step, written=run, forced=run, target="answer"))
    return found


@pytest.mark.parametrize(("kind", "layer", "head"), [("encoder", 1, 3), ("decoder", 2, 1), ("cross", 0, 4)])
def test_each_frame_has_its_moments_matrix_whole(moments: list[TrainingSnapshot], kind: Kind, layer: int, head: int) -> None:
    figure = spec(figures.training_playback(moments, map_address(kind, layer, head), moment=2))
    assert [frame["name"] for frame in figure["frames"]] == ["0", "1", "2", "3", "4"]
    assert (figure["layout"]["meta"]["steps"], figure["layout"]["meta"]["step"]) == (5, 2)
    for moment, frame in zip(moments, figure["frames"], strict=True):
        weights, masked = moment.forced.attentions[kind].weights, moment.forced.attentions[kind].mask
        z = numbers(frame["data"][0]["z"])
        np.testing.assert_array_equal(np.isnan(z), masked)
        np.testing.assert_array_equal(z[~masked], weights[layer, head][~masked])
        assert frame["traces"][0] == 0
    for place, update in zip(figure["frames"][2]["traces"], figure["frames"][2]["data"], strict=True):
        assert {**figure["data"][place], **update} == figure["data"][place]
    if kind == "decoder":
        grey = figure["data"][1]
        np.testing.assert_array_equal(~np.isnan(numbers(grey["z"])), moments[0].forced.decoder.mask)
        assert "in the future" in grey["hovertemplate"]


def test_the_ways_are_the_heads_masses_and_the_marker_is_the_focus_heads(moments: list[TrainingSnapshot]) -> None:
    figure = spec(figures.training_playback(moments, "cross.3.2"))
    lines = [trace for trace in figure["data"] if trace.get("xaxis") == "x2"]
    grey, even, own, now = lines
    masses = [head_mass(moment.forced) for moment in moments]
    assert all(mass is not None for mass in masses)
    stacked = np.stack([mass for mass in masses if mass is not None])
    np.testing.assert_allclose(numbers(own["y"]), stacked[:, 2, 1])
    others = [(i, j) for i in range(3) for j in range(5) if (i, j) != (2, 1)]
    assert len(grey["y"]) == len(others) * (len(STEPS) + 1)
    for n, (layer, head) in enumerate(others):
        start = n * (len(STEPS) + 1)
        np.testing.assert_allclose(grey["y"][start : start + len(STEPS)], stacked[:, layer, head])
        assert grey["y"][start + len(STEPS)] is None
        assert grey["text"][start].startswith(f"<b>L{layer + 1} H{head + 1}</b> at step 0: ")
    # One key of eleven is padding: uniform attention has a tenth on any of the others.
    np.testing.assert_allclose(numbers(even["y"]), 0.1)
    for i, frame in enumerate(figure["frames"]):
        x, y = frame["data"][1]["x"], frame["data"][1]["y"]
        assert x == [i, i, i]
        assert y == pytest.approx([0, 1, stacked[i, 2, 1]])
    assert now["text"][2].endswith(" %</b>")


def test_without_a_true_key_the_panel_says_entropy(make_trace: Callable[..., Trace]) -> None:
    run = make_trace(alignment=(None,) * 7, expected=None)
    words = [TrainingSnapshot(step=0, written=run, forced=run, target="final output")]
    layout = spec(figures.training_playback(words, "cross"))["layout"]
    assert "entropy" in layout["annotations"][0]["text"]
    assert "written in the end" in layout["yaxis"]["title"]["text"]
    assert "entropy" in spec(figures.training_playback(words, "decoder"))["layout"]["annotations"][0]["text"]


def test_rings_are_on_the_true_keys_of_all_rows_or_hidden(moments: list[TrainingSnapshot]) -> None:
    figure = spec(figures.training_playback(moments, "cross", position=2))
    (rings,) = [trace for trace in figure["data"] if trace.get("marker", {}).get("symbol") == "circle-open"]
    assert list(zip(rings["x"], rings["y"], strict=True)) == [(6, 0), (5, 1), (6, 2), (4, 3), (2, 4), (1, 5)]
    widths = list(rings["marker"]["line"]["width"])
    assert widths[2] > max(widths[:2] + widths[3:]), "that of the position is the heaviest"
    hidden = spec(figures.training_playback(moments, "cross", with_answer=False))["data"]
    assert next(trace for trace in hidden if trace.get("marker", {}).get("symbol") == "circle-open")["x"] == []
    (row,) = figure["layout"]["shapes"]
    assert (row["y0"], row["y1"]) == (1.5, 2.5)


@pytest.mark.parametrize("position", [0, 3, 6])
def test_candidates_are_those_of_the_position_at_the_moment(moments: list[TrainingSnapshot], position: int) -> None:
    for moment, frame in zip(moments, spec(figures.training_playback(moments, position=position))["frames"], strict=True):
        best = moment.forced.steps[position].candidates[:6]
        np.testing.assert_allclose(frame["data"][2]["x"], [p for _, p in best])
        assert frame["layout"]["yaxis3"]["ticktext"] == [f"<b>{escape(token)}</b>".replace(" ", "␣") for token, _ in best]


@pytest.mark.parametrize(
    ("kind", "style"), [("encoder", Style()), ("decoder", Style(narrow=True)), ("cross", Style("dark", large=True))]
)
def test_no_token_acts_as_markup_and_all_is_valid_plotly(moments: list[TrainingSnapshot], kind: Kind, style: Style) -> None:
    figure = figures.training_playback(moments, kind, position=6, style=style)
    assert_no_markup(figure)
    assert len(go.Figure(figure.to_dict()).frames) == len(STEPS)
    layout = spec(figure)["layout"]
    for axis in ("xaxis", "yaxis"):
        assert len(set(layout[axis]["ticktext"])) == len(layout[axis]["ticktext"])
    assert layout["yaxis"]["range"][0] > layout["yaxis"]["range"][1], "row 0 must be on top"
    assert layout["yaxis3"]["domain"][1] < layout["yaxis2"]["domain"][0], "the candidates stand below the ways"


def test_impossible_places_are_refused(moments: list[TrainingSnapshot]) -> None:
    places: list[dict[str, Any]] = [
        {"moment": 5},
        {"moment": -1},
        {"position": 7},
        {"head": "cross.4.1"},
        {"head": "cross.1.mean"},
    ]
    for wrong in places:
        with pytest.raises(OptionError, match=r"not possible|no head cross|shows one head"):
            figures.training_playback(moments, **wrong)
    with pytest.raises(OptionError, match="no moments"):
        figures.training_playback([])


ROWS = [
    {"step": 50, "loss": 2.0, "held_out": 0.25, "mass_0_0": 0.1, "mass_1_2": 0.3},
    {"step": 100, "loss": 0.5},
    {"step": 150, "loss": 0.05, "held_out": 0.75, "mass_0_0": 0.2, "mass_1_2": 0.9, "at": 17.5},
]


def test_curves_hold_the_numbers_and_name_the_best_head():
    figure = figures.training(ROWS, 1000, style=Style(narrow=True))
    loss, *shares = figure.data
    assert (list(loss.x), list(loss.y)) == ([50, 100, 150], [2.0, 0.5, 0.05])
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in shares] == [
        ("L1 H1 on the right token", [50, 150], [0.1, 0.2]),
        ("L2 H3 on the right token", [50, 150], [0.3, 0.9]),
        ("exact match, held out", [50, 150], [0.25, 0.75]),
    ]
    assert shares[1].line.color != shares[0].line.color and figure.layout.yaxis.type == "log"
    assert figure.layout.xaxis.range[1] >= 1000
    assert len(figures.training([{"step": 1, "loss": 0.0}], 10).data) == 1
    assert head_masses([{"step": 1, "mass_x": 3, "mass_0_1": "no"}]) == {}


def test_a_filmstrip_holds_every_map_where_it_is_drawn(hello):
    moments = [("step 0: <b>", hello), ("step 5", hello), ("step 9: " + "x" * 90, hello)]
    figure = figures.snapshot_maps(moments, "cross.2.3", per_row=2)
    drawn = np.asarray(figure.data[0].z)
    wanted = hello.cross.weights[1, 2]
    n_queries, n_keys = wanted.shape
    captions = figure.data[-1]
    for x, y in zip(captions.x, captions.y, strict=True):
        left, top = int(x - (n_keys - 1) / 2), int(np.ceil(y + 0.5))
        np.testing.assert_array_equal(drawn[top : top + n_queries, left : left + n_keys], wanted)
    assert np.isfinite(drawn).sum() == 3 * wanted.size
    assert captions.text[0] == "step 0: &lt;b&gt;"
    assert captions.text[2].endswith("…")
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)


def test_a_filmstrip_draws_masked_cells_as_masked(hello):
    figure = figures.snapshot_maps([("now", hello)], "decoder.1.1")
    drawn, grey = (np.asarray(figure.data[i].z)[-len(hello.target_tokens) :] for i in (0, 1))
    masked = hello.decoder.mask
    assert np.array_equal(np.isnan(drawn), masked)
    assert np.array_equal(grey == 1, masked)
