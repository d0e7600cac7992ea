"""The tiles and the lengths as data: what is drawn is what was measured, in the right place, as literal text."""

import numpy as np
import pytest

from tests.figures.sent import axis_of
from transformer_viz import figures
from transformer_viz.analysis import alignment
from transformer_viz.errors import OptionError
from transformer_viz.figures.grades import TINTS
from transformer_viz.figures.theme import DARK, LIGHT, Style


def panels(figure):
    """(tiles, grey, words) of each kind, by its title."""
    titles = [note.text.split(":")[0] for note in figure.layout.annotations[1:]]
    return {title: figure.data[3 * i : 3 * i + 3] for i, title in enumerate(titles)}


@pytest.mark.parametrize("tint", TINTS)
def test_each_tile_has_its_heads_grade_name_and_value(trace, tint):
    grades = alignment(trace)
    figure = figures.grades(grades, tint)
    found = panels(figure)
    assert list(found) == ["encoder self-attention", "decoder self-attention", "cross-attention"]
    for kind, (tiles, grey, words) in zip(grades.kinds, found.values(), strict=True):
        heads = grades.of(kind)
        assert np.asarray(tiles.z).shape == (heads[-1].layer + 1, 5)
        y, x = axis_of(figure, tiles, "y"), axis_of(figure, tiles, "x")
        assert y.range[0] > y.range[1], "layer 1 on top"
        assert x.range[0] < x.range[1]
        assert len(set(y.ticktext)) == heads[-1].layer + 1
        assert y.ticktext[0] == "layer 1"
        assert len(set(x.ticktext)) == 5
        for head, text in zip(heads, words.text, strict=True):
            value = getattr(head, tint)
            drawn = float(tiles.z[head.layer][head.head])
            assert np.isnan(drawn) == (value is None) == (not np.isnan(grey.z[head.layer][head.head]))
            name, *number = text.split("<br>")
            assert name == head.name
            assert len(number) == (value is not None)
            if value is not None:
                assert drawn == pytest.approx(value, abs=1e-6)
                assert number[0] == f"{value:.3f}"
            hover = tiles.text[head.layer][head.head]
            assert f"layer {head.layer + 1} head {head.head + 1}: {head.name}" in hover
            assert f"entropy (nats) <b>{head.entropy:.3f}</b> (uniform {head.uniform.entropy:.3f})" in hover
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    figure.to_json()


def test_a_run_will_do_and_without_a_right_key_it_says_so(trace, make_trace):
    assert figures.grades(trace).to_json() == figures.grades(alignment(trace)).to_json()
    figure = figures.grades(make_trace(alignment=(None,) * 7), "mass")
    assert [note.text.split(": ")[1] for note in figure.layout.annotations[1:]] == ["no right token"] * 3


def test_impossible_wishes(trace, make_trace):
    with pytest.raises(OptionError, match=", ".join(TINTS)):
        figures.grades(trace, "distance")
    with pytest.raises(OptionError, match="no attention"):
        figures.grades(make_trace(attentions={}))


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_words_can_be_read_on_every_colour(make_trace, name, theme):
    """WCAG's contrast of each word against its tile, computed anew, over the whole scale."""

    def luminance(rgb):
        channels = [c / 255 for c in rgb]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    n = 61
    weights = np.zeros((1, n, 7, 11), dtype=np.float32)
    for head in range(n):
        weights[0, head, :, 0] = head / (n - 1)
        weights[0, head, :, 1] = 1 - head / (n - 1)
    run = make_trace(cross=weights, alignment=(0,) * 7)
    tiles, _, words = panels(figures.grades(run, "mass", style=Style(name)))["cross-attention"]
    stops = [tuple(float(c) for c in stop[4:-1].split(",")) for stop in theme.scale]
    for head, ink in zip(range(n), words.textfont.color, strict=True):
        place = float(tiles.z[0][head]) * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        colour = [a + (place - low) * (b - a) for a, b in zip(stops[low], stops[low + 1], strict=True)]
        light, dark = sorted((luminance(colour), luminance([int(ink[i : i + 2], 16) for i in (1, 3, 5)])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
