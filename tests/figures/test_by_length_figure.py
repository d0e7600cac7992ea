"""Accuracy by length as data: points, interval, shade and what is said of them."""

from typing import Any

import numpy as np
import pytest

from transformer_viz import figures
from transformer_viz.errors import OptionError
from transformer_viz.evaluation.result import AccuracyAtLength, AccuracyByLength


def point(length, n_exact, mass=0.5, trained=True):
    right: dict[str, Any] = {"n_strings": 40, "n_exact": n_exact, "token_accuracy": 0.625, "n_letters": 7}
    return AccuracyAtLength(length=length, is_trained=trained, head_mass=((0.1, mass), (0.05, 0.0)), **right)


def report(*points):
    return AccuracyByLength(checkpoint="x", points=points, trained=(3, 7), samples=40, seed=0)


FOUND = report(point(2, 0, trained=False), point(3, 40, 0.75), point(7, 31), point(11, 1, 0.01, trained=False))


def traces_of(figure):
    return {trace.name.split(",")[0].split(" (")[0]: trace for trace in figure.data}


def test_points_interval_and_mass_are_those_of_the_report():
    figure = figures.accuracy_by_length(FOUND)
    found = traces_of(figure)
    exact, band, mass = found["whole output right"], found["its 95 % interval"], found["weight on the right token"]
    assert list(exact.x) == [2, 3, 7, 11]
    np.testing.assert_allclose(exact.y, [0, 1, 31 / 40, 1 / 40])
    np.testing.assert_allclose(mass.y, [0.5, 0.75, 0.5, 0.01])
    assert "layer 1 head 2" in mass.name
    assert list(band.x) == [2, 3, 7, 11, 11, 7, 3, 2]
    np.testing.assert_allclose(band.y[:4], [p.interval[1] for p in FOUND.points])
    np.testing.assert_allclose(band.y[4:][::-1], [p.interval[0] for p in FOUND.points])
    assert "0 of 40" in exact.hovertext[0]
    assert "outside training" in exact.hovertext[0]
    assert "as in training" in exact.hovertext[1]
    assert "62.5 %" in exact.hovertext[1]
    assert mass.line.dash, "the lines differ in more than colour"
    assert figure.layout.yaxis.range[0] <= 0 < 1 <= figure.layout.yaxis.range[1]


def test_the_shade_covers_the_lengths_of_training_that_are_drawn():
    (shade,) = figures.accuracy_by_length(FOUND).layout.shapes
    assert (shade.x0, shade.x1) == (2.5, 7.5)
    (words,) = figures.accuracy_by_length(FOUND).layout.annotations
    assert words.text == "trained on 3–7"
    (shade,) = figures.accuracy_by_length(report(point(5, 3), point(9, 0))).layout.shapes
    assert (shade.x0, shade.x1) == (4.5, 7.5), "never beyond what is drawn"
    outside = figures.accuracy_by_length(report(point(9, 3, trained=False), point(11, 0, trained=False)))
    assert not outside.layout.shapes
    assert not outside.layout.annotations


def test_nothing_to_draw():
    with pytest.raises(OptionError, match="at least one"):
        figures.accuracy_by_length(report())
