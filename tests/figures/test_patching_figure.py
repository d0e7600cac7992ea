"""The map of patching: its cells are the effects, its labels the places, and a token in them is no markup."""

import numpy as np
import pytest

import transformer_viz as tv
from tests.figures.test_figures import numbers
from transformer_viz import figures
from transformer_viz.addresses import Place
from transformer_viz.attribution.result.patching import Patching, parting
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import DARK, LIGHT, Style
from transformer_viz.terms import Kind

EFFECTS: dict[Kind, np.ndarray] = {
    "encoder": np.linspace(-0.5, 0.2, 2 * 3 * 4).reshape(2, 3, 4),
    "cross": np.array([[[0.0, 0.1], [0.2, 0.3], [0.0, -0.4]]]),
}


@pytest.fixture
def pair():
    """Four source tokens and three steps; they part at the second."""
    cross = np.full((1, 1, 3, 4), 0.25)
    return tuple(
        tv.Trace.from_arrays(
            cross=cross,
            source_tokens=("<start>", read, "l", "<end>"),
            target_tokens=("<start>", "x", wrote),
            output_tokens=("x", wrote, "<end>"),
        )
        for read, wrote in (("<b>", "y"), ("k", "z"))
    )


def found(by="head") -> Patching:
    effects = EFFECTS if by == "head" else {kind: each[:, 0] for kind, each in EFFECTS.items()}
    return Patching(by, 1, ("y", "z"), (2.0, -1.0), effects, {"encoder": (0, 1), "cross": (4,)})


def test_a_cell_is_an_effect_on_a_scale_around_nought(pair):
    a, b = pair
    assert parting(a, b) == 1
    for kind, rows in (
        ("encoder", ["L1 H1", "L1 H2", "L1 H3", "L2 H1", "L2 H2", "L2 H3"]),
        ("cross", ["L5 H1", "L5 H2", "L5 H3"]),
    ):
        figure = figures.patching(found(), a, b, kind)
        np.testing.assert_allclose(numbers(figure.data[0].z), EFFECTS[kind].reshape(len(rows), -1), atol=1e-7)
        assert list(figure.layout.yaxis.ticktext) == rows
        assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-0.5, 0.5)
        middle = figure.layout.coloraxis.colorscale[3]
        assert middle == (0.5, LIGHT.paper)
    labels = figures.patching(found(), a, b, "encoder").layout.xaxis.ticktext
    assert labels == ("1·&lt;start&gt;", "2·&lt;b&gt;≠k", "3·l", "4·&lt;end&gt;")
    assert figures.patching(found(), a, b, "cross").layout.xaxis.ticktext == ("1·&lt;start&gt;→x", "2·x→y≠z")


def test_layers_have_a_row_each_and_the_place_a_frame(pair):
    a, b = pair
    figure = figures.patching(found("layer"), a, b, "encoder", (Place("encoder", 1), 2), style=Style("dark", large=True))
    assert list(figure.layout.yaxis.ticktext) == ["L1", "L2"]
    [frame] = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5) and frame.line.color == DARK.ink
    assert not figures.patching(found("layer"), a, b, "cross", (Place("encoder", 1), 2)).layout.shapes


def test_what_was_not_asked_for_is_refused(pair):
    with pytest.raises(OptionError, match="kind 'decoder' is not in this patching; it has encoder, cross"):
        figures.patching(found(), pair[0], pair[1], "decoder")
    with pytest.raises(OptionError, match="limit=0 is not possible"):
        figures.patching(found(), pair[0], pair[1], "cross", limit=0)
