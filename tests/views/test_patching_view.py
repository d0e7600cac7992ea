"""Patching on Compare: nothing before it is asked for, then the effects that Python finds, the run of a place, and refusals."""

import json
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests import inside
from tests.figures.sent import numbers
from tests.needs import needs
from tests.tiny_models import BERT, GPT2
from tests.views.drawn import Drawn, charts, is_chart, markups, programs, read, said, text_of, token_words
from tests.views.rooms import files
from tests.views.widgets import link_of
from transformer_viz.addresses import AttentionAddress
from transformer_viz.attribution import patch as patches
from transformer_viz.numbers_in_words import probability_words

BOTH = {"text": "zzzzz", "checkpoint": "reverse", "b_text": "aaaaa", "b_checkpoint": "reverse"}
ASKED = {**BOTH, "patching": "true"}


@pytest.fixture
def pair(model: tv.Checkpoint) -> tuple[tv.Trace, tv.Trace]:
    return tv.decode(model, "zzzzz"), tv.decode(model, "aaaaa")


def maps(at: AppTest) -> dict[str, Drawn]:
    return {drawn.key.removeprefix("patch-chart-"): drawn for drawn in charts(at) if drawn.key.startswith("patch-chart")}


def drawn_effects(at: AppTest) -> dict[str, np.ndarray]:
    return {kind: numbers(drawn.figure["data"][0]["z"]) for kind, drawn in maps(at).items()}


def outcome(at: AppTest) -> Element:
    """What is shown of the run with one place of A."""
    return markups(at, "shown")[-1]


def same(at: AppTest, found: Any) -> None:
    assert set(drawn_effects(at)) == set(found.effects)
    for kind, drawn in drawn_effects(at).items():
        np.testing.assert_allclose(drawn, found.effects[kind].reshape(drawn.shape), atol=1e-6)


def test_nothing_is_computed_before_somebody_asks(start, folder, monkeypatch):
    for name in ("patch", "patched_run", "extent"):
        monkeypatch.setattr(patches, name, lambda *_, **__: pytest.fail("computed"))
    at = start("compare", **BOTH)
    assert not maps(at)
    assert at.toggle(key="patching").label == "Patch A into B"
    assert not {"patching", "patch_by", "patch_place"} & set(link_of(at))


def test_the_button_shows_what_python_finds(start, model, pair, run_code):
    at = start("compare", **BOTH, code="true")
    at.toggle(key="patching").set_value(True).run()
    assert not at.error
    found = tv.patch(model, *pair)
    same(at, found)
    assert link_of(at)["patching"] == "true"
    best = found.largest(1)[0]
    changed = tv.patched_run(model, *pair, best.place, best.query)
    rows = [[text_of(cell).strip() for cell in row.findall("td")] for row in outcome(at).findall(".//tr")[1:]]
    assert [side.text for side in outcome(at).findall(".//*[@class='side']")] == ["A", "B", "B′"]
    assert [*filter(None, token_words(outcome(at), "patched", 2))] == list(changed.tokens)
    assert rows[:2] == [[probability_words(p, 2) for p in of] for of in zip(*changed.of_both, strict=True)]
    leads = [float(cell.replace("−", "-")) for cell in rows[2]]
    assert leads == pytest.approx([np.log(ours) - np.log(other) for ours, other in changed.of_both], abs=0.006)
    assert str(extent_of(model, pair)) in said(at) and f"{best.value:+.2f}".replace("-", "−") in said(at)
    again = run_code(programs(at)[0])
    assert again["patched_run"] == changed
    kinds = {kind: drawn.figure for kind, drawn in maps(at).items()}
    effects = again["figures"][0]["data"][0]["z"]
    np.testing.assert_allclose(numbers(effects), numbers(kinds[best.place.kind]["data"][0]["z"]), atol=1e-6)
    same(start("compare", **link_of(at)), found)


def extent_of(model: tv.Checkpoint, pair: tuple[tv.Trace, tv.Trace]) -> str:
    of = patches.extent(model, *pair)
    return f"{of.n_places:,} places, each a pass over {of.n_tokens} tokens"


def test_a_link_opens_layers_and_one_place(start, model, pair):
    link = {**ASKED, "patch_by": "layer", "patch_place": "encoder.1:3"}
    at = start("compare", **link)
    same(at, tv.patch(model, *pair, by="layer"))
    changed = tv.patched_run(model, *pair, AttentionAddress("encoder", 0), 2)
    assert [*filter(None, token_words(outcome(at), "patched", 2))] == list(changed.tokens)
    assert {name: link_of(at)[name] for name in ("patching", "patch_by", "patch_place")} == {
        "patching": "true", "patch_by": "layers of A", "patch_place": "encoder.1:3",
    }  # fmt: skip
    [frame] = maps(at)["encoder"].figure["layout"]["shapes"]
    assert (frame["x0"], frame["y0"]) == (1.5, -0.5)
    # The box has every place, and another one is another run.
    at.selectbox(key="patch_place").set_value("cross.2:1").run()
    changed = tv.patched_run(model, *pair, AttentionAddress("cross", 1), 0)
    assert [*filter(None, token_words(outcome(at), "patched", 2))] == list(changed.tokens)
    # Heads have other places.
    at.segmented_control(key="patch_by").set_value("head").run()
    same(at, tv.patch(model, *pair))
    assert "patch_place" not in link_of(at)


def click(at: AppTest, kind: str, n: int, query: int | None, key: int | None) -> None:
    """The browser tells the `n`th click on the map of a kind, on this cell or, with None, on a label beside it."""
    sent = [element.proto for element in at.get("bidi_component") if is_chart(element.proto)]
    of_kind = next(proto for proto in sent if read(proto).key == f"patch-chart-{kind}")
    inside.tell(at, of_kind.id, json.dumps({"presses": [{"n": n, "what": {"query": query, "key": key}}]}))


def test_a_click_on_a_cell_chooses_its_place(start, model, pair):
    at = start("compare", **ASKED)
    click(at, "cross", 1, 5, 0)
    # Rows are the heads of one layer after another.
    place = AttentionAddress("cross", *divmod(5, model.network.sizes.heads["cross"]))
    assert at.selectbox(key="patch_place").value == f"{place}:1"
    changed = tv.patched_run(model, *pair, place, 0)
    assert [*filter(None, token_words(outcome(at), "patched", 2))] == list(changed.tokens)
    for n, (query, key) in enumerate([(0, None), (None, 0), (500, 0), (0, 500)], 2):
        click(at, "cross", n, query, key)
        assert at.selectbox(key="patch_place").value == f"{place}:1"


@pytest.mark.parametrize("place", ["encoder.9:1", "cross.1:1", "cross.1.1:9"])
def test_a_place_that_is_not_there_is_said(start, folder, place):
    at = start("compare", **ASKED, patch_place=place)
    assert f"patch_place={place}" in said(at) and maps(at)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"b_text": "abc"}, "A read 7 source tokens and B 5: patching needs the same number"),
        ({"b_text": "zzzzz"}, "both runs write the same tokens"),
        ({"b_edits": "decoder:off"}, "in run B an edit or a mistake lets rows see later tokens"),
    ],
)
def test_why_it_cannot_be_done_is_said(start, folder, link, words):
    at = start("compare", **{**ASKED, **link})
    assert f"**Patching A into B** is not possible here: {words}" in said(at)
    assert not maps(at)


def test_two_models_and_a_file_cannot_be_patched(start, everything):
    at = start("compare", **{**ASKED, "b_checkpoint": "reverse-small"})
    assert "A is of reverse and B of reverse-small: patching puts what a model computed into the same model" in said(at)
    at = start("compare", files("run"), **ASKED, b_file="run")
    assert "patching reads both runs again, and a file has no model" in said(at)


@needs("transformers")
@pytest.mark.usefixtures("models")
def test_models_that_are_not_ours(start, models, monkeypatch):
    text, edit = "The capital of France is", "decoder.1.2:zero"
    texts = {"text": text, "b_text": text, "b_edits": edit, "patching": "true"}
    at = start("compare", **{**texts, "b_edits": ""}, checkpoint=BERT, b_checkpoint=BERT)
    assert "an encoder alone writes nothing" in said(at)
    model = tv.load_model(str(models / GPT2), "cpu")
    runs = tv.decode(model, text), tv.decode(model, text, edits=[edit])
    whole = patches.extent(model, *runs)
    # A layer at a time is as much as is read at once.
    monkeypatch.setattr(patches, "MOST_WORK", whole.n_places * whole.n_tokens * model.n_parameters / whole.n_layers)
    at = start("compare", **texts, checkpoint=GPT2, b_checkpoint=GPT2, patch_layers="2")
    assert not at.error
    box = at.selectbox(key="patch_layers")
    assert box.options == [f"layer {number + 1}" for number in model.network.sizes.layers["decoder"]]
    same(at, tv.patch(model, *runs, where="decoder.2"))
    assert link_of(at)["patch_layers"] == "layer 2"
