"""Runs of which some layers, or half precision, were kept: pictures and sentences name layers by their true numbers."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.sentences import step_sentence
from transformer_viz.addresses import HeadAddress, map_address
from transformer_viz.errors import OptionError
from transformer_viz.export.content import content, focus_of, view
from transformer_viz.figures.theme import LIGHT
from transformer_viz.sentences.run_sentences import plain

KINDS = ("decoder", "cross")
LAYERS = (0, 2)


@pytest.fixture(scope="module")
def whole(tiny):
    return tv.decode(tiny, "hello")


@pytest.fixture(scope="module")
def part(tiny):
    return tv.decode(tiny, "hello", kinds=KINDS, layers=LAYERS)


@pytest.fixture(scope="module")
def half(tiny):
    return tv.decode(tiny, "hello", precision="float16")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [3, "mean"])
def test_a_layer_is_the_same_in_part_and_whole(part, whole, kind, head):
    for layer in LAYERS:
        np.testing.assert_array_equal(part.attentions[kind].head(layer, head), whole.attentions[kind].head(layer, head))
        for drawn in (tv.figures.attention, tv.figures.player):
            place = map_address(kind, layer, head)
            assert drawn(part, place).to_json() == drawn(whole, place).to_json()
        one, other = (plain(step_sentence(trace, kind, layer, head, 2)) for trace in (part, whole))
        assert one == other
        assert f"layer {layer + 1}" in one
    with pytest.raises(OptionError, match="layers 1, 3"):
        tv.figures.attention(part, map_address(kind, 1, head))


def outlines_of_focus(figure: Any) -> list[Any]:
    return [drawn for drawn in figure.data if drawn.type == "scatter" and drawn.line.color == LIGHT.accent]


def test_the_mosaic_has_true_numbers(part):
    figure: Any = tv.figures.mosaic(part, "cross", (2, 3))
    assert sorted({name.removesuffix(" ★") for name in figure.data[-1].text}) == sorted(
        f"L{layer + 1} H{head + 1}" for layer in LAYERS for head in range(5)
    )
    assert {layer for layer, _ in figure.layout.meta["tiles"]} == {0, 2}
    # The focus is outlined in the second row of tiles.
    (outline,) = outlines_of_focus(figure)
    assert outline.y[0] == figure.layout.meta["pitch_y"] - 0.5
    assert not outlines_of_focus(tv.figures.mosaic(part, "cross", (1, 3))), "layer 2 is not there to be outlined"


def test_grades_have_true_numbers(tiny, part, whole):
    mine, all_of_them = tv.analysis.alignment(part), tv.analysis.alignment(whole)
    for grade in mine:
        assert grade == all_of_them.at(HeadAddress(grade.kind, grade.layer, grade.head))
    assert {grade.layer for grade in mine} == set(LAYERS)
    figure: Any = tv.figures.grades(mine)
    assert list(figure.layout.yaxis.ticktext) == ["layer 1", "layer 3"]
    with pytest.raises(OptionError, match="layers 1, 3, and heads 1 to 5"):
        mine.at("cross.2.1")
    assert tv.diff(part, part).equal
    others = tv.decode(tiny, "hello", kinds=KINDS, layers=(1, 2))
    assert any("layers of cross" in str(found) for found in tv.diff(part, others).differences)


def test_the_exported_page_has_true_numbers(part, whole):
    data = content(part, theme="auto", large=False, with_answer=True)
    assert focus_of(part, view(part, "cross.3.2", 0))["layer"] == 1, "the page counts layers by their place"
    kind = data["kinds"]["cross"]
    assert kind["numbers"] == [0, 2]
    assert [names[0] for names in kind["names"]] == ["layer 1 head 1", "layer 3 head 1"]
    all_of_it = content(whole, theme="auto", large=False, with_answer=True)["kinds"]["cross"]
    assert len(kind["weights"]) == 2
    assert len(kind["sentences"]) == 2
    assert all_of_it["numbers"] == [0, 1, 2]


def test_half_precision_is_drawn_from_its_own_numbers(half, whole):
    """Every picture and number within its rounding, in float32 where a browser or a table reads it."""
    for kind in ("encoder", "decoder", "cross"):
        for head in (1, "mean", "max"):
            mine = half.attentions[kind].head(1, head)
            assert mine.dtype == np.float32
            np.testing.assert_allclose(mine, whole.attentions[kind].head(1, head), atol=2**-12, rtol=0)
        data = content(half, theme="auto", large=False, with_answer=True)["kinds"][kind]
        assert data["weights"].dtype == np.float32
        a, b = (tv.figures.mosaic(trace, kind).data[0].z for trace in (half, whole))
        np.testing.assert_allclose(a, b, atol=2**-12, rtol=0)
    for one, other in zip(tv.analysis.alignment(half), tv.analysis.alignment(whole), strict=True):
        assert (one.kind, one.layer, one.head, one.name) == (other.kind, other.layer, other.head, other.name)
        assert one.entropy == pytest.approx(other.entropy, abs=0.02)
    assert tv.diff(half, whole, tolerance=2**-12, ignore=["settings"]).equal
