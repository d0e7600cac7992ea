"""Measures of attribution in the maps: in the place of the weights, or beside them, with numbers and scales of their own."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.figures.sent import numbers, spec
from transformer_viz import figures
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import DARK, LIGHT, Style, Theme, ThemeName
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace


@pytest.fixture
def run(make_trace: Callable[..., Trace]) -> Trace:
    return make_trace()


def shape_of(run: Trace, kind: Kind) -> tuple[int, int]:
    return len(run.attentions[kind].queries), len(run.attentions[kind].keys)


def cause(run: Trace, kind: Kind = "cross") -> Attribution:
    """Of 0 but for some cells; what is read later has no number."""
    values = np.zeros(shape_of(run, kind))
    values[1, 0], values[1, 1], values[2, 1] = 2.0, -1.5, -0.01
    if kind == "decoder":
        values[np.triu_indices(len(values), 1)] = np.nan
    return Attribution("occlusion", kind, values, "word", "nats")


def norms(run: Trace, kind: Kind = "cross") -> Attribution:
    weights = run.attentions[kind].weights
    values = weights * np.linspace(1, 9, weights.shape[1], dtype=np.float32)[:, None, None]
    return Attribution("value_weighted", kind, values, layers=run.attentions[kind].layers)


def second(figure: dict[str, Any]) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace.get("xaxis") == "x3"]


@pytest.mark.parametrize("narrow", [False, True])
def test_each_map_has_its_labels_at_its_own_edges(run: Trace, narrow: bool) -> None:
    layout = spec(figures.player(run, "cross.2.3", 1, measure=cause(run), style=Style(narrow=narrow)))["layout"]
    for number in ("", "2", "3"):
        assert layout[f"xaxis{number}"].get("anchor", "y") == f"y{number}"
        assert layout[f"yaxis{number}"].get("anchor", "x") == f"x{number}"
    down = [layout[f"yaxis{number}"]["domain"] for number in ("", "3", "2")]
    # In a narrow figure there is room for labels below each.
    assert not narrow or all(below[1] < above[0] - 0.05 for above, below in pairwise(down))


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_a_cause_stands_beside_the_weights_with_a_scale_of_its_own(run: Trace, kind: Kind) -> None:
    result = cause(run, kind)
    last = len(run.rows) - 1
    figure, alone = (spec(figures.player(run, f"{kind}.2.3", last, measure=each)) for each in (result, None))
    assert numbers(figure["data"][0]["z"]) == pytest.approx(numbers(alone["data"][0]["z"]), nan_ok=True)
    drawn = second(figure)
    np.testing.assert_allclose(numbers(drawn[0]["z"]), result.values, atol=1e-7)
    axis = figure["layout"]["coloraxis3"]
    assert (axis["cmin"], axis["cmax"]) == (-2.0, 2.0)
    assert [colour for _, colour in axis["colorscale"]] == LIGHT.diverging
    assert axis["colorbar"]["title"]["text"] == "nats"
    assert "%{z:+.4f}</b> nats" in drawn[0]["hovertemplate"] and "cause by word" in drawn[0]["hovertemplate"]
    assert [each["text"] for each in figure["layout"]["annotations"]] == ["<b>weights</b>", "<b>cause by word</b>"]
    assert figure["layout"]["meta"]["beside"] == {"word": "cause by word", "unit": "nats"}


def test_what_cannot_be_asked_is_dotted_and_says_why(run: Trace) -> None:
    grey = second(spec(figures.player(run, "decoder.1.1", len(run.rows) - 1, measure=cause(run, "decoder"))))[1]
    here = np.isfinite(numbers(grey["z"]))
    assert (here == np.triu(np.ones_like(here), 1)).all()
    assert "read later than this step, so it cannot be asked" in grey["hovertemplate"]
    drawn = second(spec(figures.player(run, "decoder.1.1", 3, measure=cause(run, "decoder"))))
    dots = next(trace for trace in drawn if "fill" in trace)
    assert dots["fillpattern"]["shape"] == "."
    left = replace(cause(run), values=np.full(shape_of(run, "cross"), np.nan))
    assert "nothing would be left to read" in second(spec(figures.player(run, measure=left)))[1]["hovertemplate"]


def test_what_speaks_against_has_a_minus_sign_that_is_seen_in_both_themes(run: Trace) -> None:
    themes: dict[ThemeName, Theme] = {"light": LIGHT, "dark": DARK}
    for theme, colours in themes.items():
        drawn = second(spec(figures.player(run, step=len(run.rows) - 1, style=Style(theme), measure=cause(run))))
        signs = next(trace for trace in drawn if trace.get("mode") == "text")
        assert (signs["x"], signs["y"], signs["text"]) == ([1], [1], ["−"]), "of −0.01 of 2 nothing is seen"
        assert signs["textfont"]["color"] == [colours.paper], "on a strong colour"


def test_rows_to_come_are_blank_in_both_maps(run: Trace) -> None:
    figure = spec(figures.player(run, "decoder.1.1", 1, measure=cause(run, "decoder")))
    for frame in figure["frames"]:
        for place, changes in zip(frame["traces"], frame["data"], strict=True):
            assert changes["type"] == figure["data"][place]["type"]
            if changes["type"] == "heatmap":
                to_come = numbers(changes["z"])[int(frame["name"]) + 1 :]
                assert np.isnan(to_come).all()
    # The outlined row and the rings are the same in both.
    rows = [trace["y"] for trace in figure["data"] if trace.get("mode") == "lines" and len(trace["y"]) == 5]
    assert rows == [[0.5, 0.5, 1.5, 1.5, 0.5]] * 2


def test_by_value_the_norms_take_the_place_of_the_weights_under_their_own_name(run: Trace) -> None:
    result = norms(run)
    figure, last = spec(figures.player(run, "cross.2.3", len(run.rows) - 1, measure=result)), result.values[1, 2]
    seen = np.where(run.cross.mask, np.nan, last)
    np.testing.assert_allclose(numbers(figure["data"][0]["z"]), seen, atol=1e-6)
    assert "value-weighted norm <b>" in figure["data"][0]["hovertemplate"] and not second(figure)
    axis, largest = figure["layout"]["coloraxis"], float(result.values.max())
    assert axis["cmax"] == pytest.approx(largest), "heads compare with each other"
    assert axis["colorbar"]["title"]["text"] == "norm" and axis["colorbar"]["ticktext"][-1] == f"{largest:.2g}"
    assert figure["layout"]["meta"]["full"] == pytest.approx(largest)
    both = spec(figures.player(run, "cross.2.max", 0, measure=result, scale="log"))["layout"]
    assert both["coloraxis2"]["colorbar"]["title"]["text"] == "norm (log scale)"


def test_small_maps_by_value_and_those_of_a_kind_that_has_none(run: Trace) -> None:
    result = norms(run)
    figure = spec(figures.mosaic(run, "cross", measure=result))
    tile = numbers(figure["data"][0]["z"])[: shape_of(run, "cross")[0], : shape_of(run, "cross")[1]]
    seen = np.where(run.cross.mask, np.nan, result.values[0, 0] / result.values.max())
    np.testing.assert_allclose(tile, seen, atol=1e-6)
    assert (
        figure["layout"]["title"]["text"]
        == f"cross-attention (grey: masked, ★: best head): value-weighted norm, 0 to {result.values.max():.2g}"
    )
    other = spec(figures.mosaic(run, "encoder", measure=result))
    assert other["layout"]["title"]["text"] == "encoder self-attention (grey: masked): weights"
    beside = spec(figures.mosaic(run, "cross", measure=cause(run)))
    assert beside == spec(figures.mosaic(run, "cross"))


def test_rows_of_a_gradient_are_not_compared(run: Trace) -> None:
    values = np.zeros(shape_of(run, "cross"), np.float32)
    values[0, 1], values[1, 0], values[1, 1] = 1e-9, 4.0, 2.0
    result = Attribution("gradient", "cross", values)
    drawn = second(spec(figures.player(run, step=len(run.rows) - 1, measure=result)))[0]
    assert numbers(drawn["z"])[:2, :2].tolist() == [[0, 1], [1, 0.5]]
    assert "of the row's largest" in drawn["hovertemplate"]


def test_a_measure_of_another_run_is_refused(run: Trace) -> None:
    with pytest.raises(OptionError, match="it is of another run"):
        figures.player(run, measure=Attribution("rollout", "cross", np.zeros((2, 2), np.float32)))
    assert spec(figures.player(run, "encoder", measure=cause(run))) == spec(figures.player(run, "encoder"))
