"""Ways from Explore to Compare: what stands there, and that it is the same run."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests import inside
from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.views.drawn import said
from transformer_viz import compare, decode
from transformer_viz.views.compare.sides import A, B

ALL = {"all_controls": "true"}


def offered(at: AppTest) -> list[str]:
    keys = [button.key or "" for button in at.button]
    return [key.removeprefix("compare-") for key in keys if key.startswith("compare-")]


def gone(at: AppTest, way: str) -> AppTest:
    at.button(key=f"compare-{way}").click().run()
    assert not at.error and not at.warning, way
    (asked,) = [part.proto for part in at.get("bidi_component") if part.proto.id.endswith("-history-go")]
    assert json.loads(asked.json) == {"to": "Compare"}
    return inside.visit(at, "compare")


def side(at: AppTest, keys: Any) -> dict[str, str]:
    names = {"text": keys.text, "checkpoint": keys.checkpoint, "edits": keys.of("edits")}
    return {name: at.session_state[key] for name, key in names.items()}


@pytest.mark.parametrize(("way", "edits"), [("uniform", "cross.1.3:*=uniform"), ("unmasked-decoder", "decoder:off")])
def test_each_way_leads_to_the_same_text_through_the_same_model(start, way, edits):
    at = gone(start(text="hello", kind="cross", layer="1", head="3", **ALL), way)
    same = {"text": "hello", "checkpoint": "reverse"}
    assert (side(at, A), side(at, B)) == ({**same, "edits": ""}, {**same, "edits": edits})
    state = at.session_state
    assert (state["kind"], state["layer"], state["head"]) == ("cross", 0, 2)


def test_another_text_is_one_that_differs_a_little(start, visit):
    at = gone(start(text="hello", **ALL), "text")
    assert side(at, A)["text"] == "hello" != side(at, B)["text"]
    assert side(at, B)["checkpoint"] == "reverse"
    at.text_input(key="b_text").set_value("mine").run()
    again = gone(visit(at, None), "text")
    assert side(again, B)["text"] not in ("mine", "hello"), "what was on B before is not what is asked for now"


def test_what_a_run_does_not_have_is_not_offered(start, folder):
    assert offered(start(kind="decoder", head="mean", **ALL)) == ["unmasked-decoder", "text"]
    assert offered(start(kind="cross", **ALL)) == ["off", "uniform", "unmasked-decoder", "text"]


@needs("transformers")
@pytest.mark.parametrize(("name", "text"), [(GPT2, "The house"), (MARIAN, "The house is small."), (BERT, "The house.")])
def test_a_model_that_is_not_ours_goes_there_too(models, start, name, text):
    at = start(checkpoint=name, text=text, **ALL)
    edits = ["off", "uniform", *(["unmasked-decoder"] if name != BERT else [])]
    assert offered(at) == [*edits, "text"]
    kind = at.session_state["kind"]
    at = gone(at, "off")
    same = {"text": text, "checkpoint": name}
    assert (side(at, A), side(at, B)) == ({**same, "edits": ""}, {**same, "edits": f"{kind}.1.1:zero"})


def test_a_sampled_run_is_compared_as_it_was_sampled_or_with_the_greedy_one(start):
    sampled = {"text": "hello", "decoding": "sample", "temperature": "1.5", "seed": "4", **ALL}
    for way, of_b in (("greedy", ("greedy", 1.0, 0)), ("off", ("sample", 1.5, 4))):
        state = gone(start(**sampled), way).session_state
        both = [tuple(state[keys.of(name)] for name in ("strategy", "temperature", "seed")) for keys in (A, B)]
        assert both == [("sample", 1.5, 4), of_b]
    assert "greedy" not in offered(start(text="hello", **ALL))
    # Compare's search has fewer settings, and its forced side reads the other one.
    assert not offered(start(text="hello", decoding="beam", **ALL)) + offered(start(text="hello", decoding="forced", **ALL))


def test_a_head_that_is_switched_off_is_said_and_the_head_that_changed_most_is_shown(start, model):
    """Its own weights do not change: its map and the difference of it look as if nothing had been done."""
    at = gone(start(text="hello", kind="cross", layer="1", head="2", **ALL), "off")
    largest = compare(decode(model, "hello"), decode(model, "hello", edits=["cross.1.2:zero"])).largest
    assert largest is not None
    place = (largest.kind, largest.layer, largest.head)
    same = {"text": "hello", "checkpoint": "reverse"}
    assert (side(at, A), side(at, B)) == ({**same, "edits": ""}, {**same, "edits": "cross.1.2:zero"})
    assert tuple(at.session_state[key] for key in ("kind", "layer", "head")) == place != ("cross", 0, 1)
    words = "B: L1 H2 of the cross-attention is switched off: its output is 0; its weights are computed as before."
    assert words in said(at) and "A: L1 H2" not in said(at)
    # Once: whoever chooses another head stays there.
    at.session_state["kind"], at.session_state["layer"], at.session_state["head"] = "cross", 0, 1
    at.run()
    assert tuple(at.session_state[key] for key in ("kind", "layer", "head")) == ("cross", 0, 1)
