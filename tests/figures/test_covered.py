"""A row that is covered until somebody answers is neither drawn nor called as masked ones are."""

from typing import Any

import numpy as np
import pytest

from tests.figures.sent import numbers, spec
from transformer_viz import figures
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.figures.player import guess
from transformer_viz.terms import Kind
from transformer_viz.trace.hidden_answer import COVERED, hide_answer
from transformer_viz.trace.trace import Trace

FROM = 2


def named(drawn: dict[str, Any], words: str) -> list[dict[str, Any]]:
    return [data for data in drawn["data"] if words in data.get("hovertemplate", "")]


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_the_hover_of_a_covered_row_says_so(trace: Trace, kind: Kind) -> None:
    drawn = spec(figures.player(hide_answer(trace, FROM), kind, step=FROM + 1))
    n_rows, n_keys = trace.attentions[kind].weights.shape[2:]
    (cover,) = named(drawn, f"<b>{COVERED}</b>")
    np.testing.assert_array_equal(np.flatnonzero(numbers(cover["z"])[:, 0] == 1), [FROM, FROM + 1])
    assert numbers(cover["z"]).shape == (n_rows, 1) and (cover["x0"], cover["dx"]) == ((n_keys - 1) / 2, n_keys)
    weights, *masks = named(drawn, "weight") + named(drawn, "may not look at")
    for data in (weights, *masks):
        assert np.isnan(numbers(data["z"])[FROM:]).all(), data["hovertemplate"]
    assert not named(drawn, "not recorded")
    # Each frame fits the traces: nothing of it before its row has come.
    before = drawn["frames"][FROM - 1]
    z = numbers(before["data"][before["traces"].index(drawn["data"].index(cover))]["z"])
    assert np.isnan(z).all()


def test_a_whole_run_has_no_cover_and_a_guess_is_an_empty_outline(trace: Trace) -> None:
    assert not named(spec(figures.player(trace)), COVERED)
    assert COVERED not in str(guess(hide_answer(trace, FROM), "cross", 0, 0, FROM, "fixed", figures.Style()).data)


def test_small_maps_have_nothing_of_it_and_do_not_call_it_masked(trace: Trace) -> None:
    hidden = hide_answer(trace, FROM)
    drawn = spec(figures.mosaic(hidden, "decoder"))
    whole = spec(figures.mosaic(trace, "decoder"))
    n_rows, n_keys = trace.decoder.weights.shape[2:]
    for data, known in zip(drawn["data"][:2], whole["data"][:2], strict=True):
        tile, of_whole = (numbers(one["z"])[:n_rows, :n_keys] for one in (data, known))
        assert np.isnan(tile[FROM:]).all()
        np.testing.assert_array_equal(tile[:FROM], of_whole[:FROM])
    assert "masked" not in spec(figures.mosaic(hide_answer(trace, 0), "decoder"))["layout"]["title"]["text"]


def test_the_best_head_has_a_star_unless_a_row_is_covered(trace: Trace) -> None:
    found = best_head(trace)
    assert found is not None
    name = f"L{found[0] + 1} H{found[1] + 1}"
    names = [each for each in figures.mosaic(trace, "cross").data[-1].text if each.endswith("★")]
    assert names == [f"{name} ★"]
    for other in (figures.mosaic(trace, "decoder"), figures.mosaic(hide_answer(trace, FROM), "cross")):
        assert "★" not in "".join(other.data[-1].text) + other.layout.title.text
