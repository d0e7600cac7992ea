"""The pictures of a training, as data."""

import numpy as np
import pytest

from transformer_viz import figures
from transformer_viz.figures.theme import Style
from transformer_viz.training.result import head_masses

ROWS = [
    {"step": 50, "loss": 2.0, "held_out": 0.25, "mass_0_0": 0.1, "mass_1_2": 0.3},
    {"step": 100, "loss": 0.5},
    {"step": 150, "loss": 0.05, "held_out": 0.75, "mass_0_0": 0.2, "mass_1_2": 0.9, "at": 17.5},
]


@pytest.mark.parametrize("narrow", [False, True])
def test_curves_hold_the_numbers_and_name_the_best_head(narrow):
    figure = figures.training(ROWS, 1000, style=Style(narrow=narrow))
    loss, *shares = figure.data
    assert (list(loss.x), list(loss.y)) == ([50, 100, 150], [2.0, 0.5, 0.05])
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in shares] == [
        ("L1 H1 on the right token", [50, 150], [0.1, 0.2]),
        ("L2 H3 on the right token", [50, 150], [0.3, 0.9]),
        ("exact match, held out", [50, 150], [0.25, 0.75]),
    ]
    assert shares[1].line.color != shares[0].line.color
    assert figure.layout.yaxis.type == "log"
    assert list(figure.layout.yaxis2.range) == [-0.02, 1.02]
    assert figure.layout.xaxis.range[1] >= 1000


def test_without_checks_there_is_the_loss_alone():
    figure = figures.training([{"step": 1, "loss": 0.0}], 10)
    assert len(figure.data) == 1
    assert head_masses([{"step": 1, "mass_x": 3, "mass_0_1": "no"}]) == {}


def test_a_filmstrip_holds_every_map_where_it_is_drawn(hello):
    moments = [("step 0: <b>", hello), ("step 5", hello), ("step 9: " + "x" * 90, hello)]
    figure = figures.snapshot_maps(moments, "cross", 1, 2, per_row=2)
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
    figure = figures.snapshot_maps([("now", hello)], "decoder", 0, 0)
    drawn, grey = (np.asarray(figure.data[i].z)[-len(hello.target_tokens) :] for i in (0, 1))
    masked = hello.decoder.mask
    assert np.array_equal(np.isnan(drawn), masked)
    assert np.array_equal(grey == 1, masked)
