"""“The model” on Explore and the drawing on Train: what the browser is sent, and that it stays as it was left."""

import json
from xml.etree.ElementTree import Element, tostring

from streamlit.testing.v1 import AppTest

from tests.views.drawn import markups, text_of
from tests.views.viewer import press
from transformer_viz.model.architecture import architecture_of
from transformer_viz.model.config import ModelConfig


def drawings(at: AppTest) -> list[Element]:
    return markups(at, "drawing")


def blocks(drawing: Element) -> list[Element]:
    """All that are drawn, in order."""
    return [element for element in drawing.iter() if "block" in element.get("class", "").split()]


def titles_of(drawing: Element, look: str = "block") -> list[str]:
    """Of the blocks that look so."""
    return [text_of(block[0]) for block in blocks(drawing) if look in block.get("class", "").split()]


def lit(drawing: Element) -> list[tuple[str | None, str | None]]:
    return [(block.get("data-at"), block[0][0].tail) for block in blocks(drawing) if len(block[0])]


def test_the_attention_in_focus_is_lit(start):
    at = start(text="abc", where="true", kind="decoder", layer="2", head="3")
    [drawing] = drawings(at)
    assert lit(drawing) == [("decoder.1.attention", "layer 2, head 3")]
    press(at, layer=0, head="mean")
    [drawing] = drawings(at)
    assert lit(drawing) == [("decoder.0.attention", "layer 1, mean of heads")]


def test_what_is_drawn_is_the_models_own_architecture(start, folder):
    config = ModelConfig.from_json(json.loads((folder / "reverse" / "config.json").read_text())["model"])
    [drawing] = drawings(start(text="abc", where="true"))
    assert [block[1][1].tail for block in blocks(drawing)] == [block.sentence for block in architecture_of(config)]


def test_it_is_there_while_the_answer_is_hidden_and_for_a_projector(start):
    for more in ({"hide_answer": "true"}, {"projector": "true"}):
        [drawing] = drawings(start(text="hello", where="true", **more))
        assert "olleh" not in tostring(drawing, "unicode")
        assert ("large" in drawing.get("class", "")) is ("projector" in more)


def test_on_train_it_changes_with_the_switches(start):
    at = start("train", where="true", train_variant="post-norm")
    [before] = drawings(at)
    at.toggle(key="train_final_norm").set_value(True).run()
    at.number_input(key="train_n_decoder_layers").set_value(1).run()
    [after] = drawings(at)
    names = [titles_of(drawing) for drawing in (before, after)]
    assert names[0].count("Final norm") == 0
    assert names[1].count("Final norm") == 2
    assert [names[n].count("Cross-attention") for n in (0, 1)] == [2, 1]
