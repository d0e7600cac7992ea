"""The Masks page through AppTest: every tab, every change, everything that people can get wrong."""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests import inside
from tests.figures.sent import numbers
from tests.until import until
from tests.views import viewer
from tests.views.drawn import box, finished, pictures, press, said
from tests.views.widgets import link_of
from transformer_viz import compare, decode, decode_forced, load_checkpoint
from transformer_viz.analysis.mask_parts import most_forbidden
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.effect import EffectInProgress, measure_effect
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import Reason
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.masks.page import TABS as MODULES
from transformer_viz.views.masks.setup import NO_MISTAKE

TABS = tuple(MODULES)


def titles(at: AppTest) -> list[str]:
    return [note["text"] for chart in pictures(at) for note in chart["layout"].get("annotations", [])]


def test_a_sentence_stands_large_with_its_masks_beside_its_weights(start, model):
    at = start("masks", sources="hello\nab", sentence="2", masks_of="this sentence, large", kind="decoder", head="2")
    read = decode_forced(model, ["hello", "ab"])[1]
    np.testing.assert_allclose(viewer.head(at), read.decoder.weights[0, 1], atol=1e-6)
    np.testing.assert_array_equal(viewer.reasons(at), read.decoder.head_reasons(0, 1))
    assert viewer.viewer(at)["parts"]["masks"].keys() == {"encoder", "decoder", "cross"}
    assert "decoder: causal" in str(titles(at)), "and all of them, one by one"
    # It begins at the last step that is no padding.
    assert viewer.viewer(at)["start"]["step"] == read.output_tokens.index("<end>") < len(read.rows) - 1
    viewer.press(at, kind="decoder", layer=0, head=2, step=1, pin=[1, 2])
    said_now = {key: link_of(at)[key] for key in ("kind", "head", "step", "pin")}
    assert said_now == {"kind": "decoder self-attention", "head": "head 3", "step": "2", "pin": "2,3"}
    assert not viewer.has_viewer(start("masks", sources="hello\nab")), "the batch needs none"


def test_the_head_that_looks_most_at_what_it_must_not_see_is_in_focus_and_any_other_may_be(start, visit):
    at = start("masks", sources="hello\nab", masks_tab="Mistakes", mistake="no-causal")
    model = load_checkpoint("reverse", device="cpu")
    targets = ["olleh", "ba"]
    right, wrong = (decode_forced(model, ["hello", "ab"], targets, mistake=name)[0] for name in (None, "no-causal"))
    found = most_forbidden(right, wrong)
    assert found is not None
    kind, layer, head, _ = found
    now = viewer.viewer(at)["start"]
    assert (now["kind"], now["layer"], now["head"]) == (kind, layer, head)
    expected = wrong.attentions[kind].weights[layer, head] - right.attentions[kind].weights[layer, head]
    np.testing.assert_allclose(viewer.difference(at), expected, atol=1e-6)
    viewer.press(at, kind="cross", layer=1, head=1)
    other = start("masks", **link_of(at))
    assert viewer.viewer(other)["start"] == viewer.viewer(at)["start"], "a link opens the same"
    # Another mistake has another one.
    at.button(key="make-causal-off-by-one").click().run()
    assert viewer.viewer(at)["start"]["kind"] == "decoder"


@pytest.mark.parametrize(
    ("tab", "mistake"),
    [*((tab, "none") for tab in TABS), *((tab, mistake) for mistake in MISTAKES for tab in TABS[:2] + TABS[-1:])],
)
def test_every_tab_opens_whatever_is_wrong_with_the_masks(start, tab, mistake):
    at = start("masks", sources="ab\nc", masks_tab=tab, mistake=mistake)
    assert not at.error and not at.warning


def test_an_edit_is_run_shown_linked_and_taken_back(start):
    at = start("masks", sources="hello\nab", masks_tab=TABS[2])
    assert "Nothing is changed yet" in said(at)
    box(at, "edits").set_value("cross:1-2, cross.2.1:zero").run()
    assert link_of(at)["edits"] == "cross:1-2, cross.2.1:zero"
    assert "With 2 edits it becomes" in said(at)
    masked = np.argwhere(viewer.reasons(at) == Reason.EDITED).tolist()
    assert viewer.viewer(at)["start"]["kind"] == "cross" and masked == [[0, 1]]
    at.button(key="lab-reset-all").click().run()
    assert box(at, "edits").value == ""
    assert "edits" not in link_of(at)
    assert "Nothing is changed yet" in said(at)


def test_a_press_that_comes_before_the_answer_brings_back_nothing_that_was_reset(start):
    at = start("masks", sources="hello\nab", masks_tab=TABS[2])
    box(at, "edits").set_value("cross:1-2").run()
    box(at, "mistake").set_value("causal-off-by-one").run()
    assert link_of(at)["mistake"] == "Causal mask off by one" and link_of(at)["edits"] == "cross:1-2"
    next_press = inside.late(at)
    at.button(key="lab-reset-all").click().run()
    next_press()
    assert (box(at, "mistake").value, box(at, "edits").value) == (NO_MISTAKE, "")
    assert not {"mistake", "edits"} & link_of(at).keys()
    # What is chosen then is chosen.
    box(at, "mistake").set_value("causal-off-by-one").run()
    assert link_of(at)["mistake"] == "Causal mask off by one"


def test_what_is_shown_is_what_the_api_gives(start, model):
    at = start("masks", sources="hello\nab", masks_tab=TABS[2], edits="cross.1:1-2")
    after = decode(model, ["hello", "ab"], pad_to=7, edits=["cross.1:1-2"])[0]
    before = decode(model, ["hello", "ab"], pad_to=7)[0]
    viewer.press(at, kind="cross", layer=1, head=2)
    np.testing.assert_allclose(viewer.head(at), after.cross.weights[1, 2], atol=1e-6)
    np.testing.assert_allclose(viewer.difference(at), after.cross.weights[1, 2] - before.cross.weights[1, 2], atol=1e-6)


def test_heads_and_masks_are_switched_by_buttons_and_a_second_press_takes_it_back(start):
    at = start("masks", sources="hello", masks_tab=TABS[2], kind="cross", layer="1", head="2")
    for label, edit in (("Mask off", "cross:off"), ("L1 H2 uniform", "cross.1.2:*=uniform")):
        assert box(press(at, label), "edits").value == edit
        assert box(press(at, label), "edits").value == ""


def test_a_head_that_is_switched_off_is_said_and_the_focus_goes_where_most_changes(start, model):
    at = start("masks", sources="hello", masks_tab=TABS[2], kind="cross", layer="1", head="2")
    assert box(press(at, "L1 H2 off"), "edits").value == "cross.1.2:zero"
    largest = compare(decode(model, "hello"), decode(model, "hello", edits=["cross.1.2:zero"])).largest
    assert largest is not None
    assert [at.session_state[key] for key in ("kind", "layer", "head")] == [largest.kind, largest.layer, largest.head]
    assert (largest.kind, largest.layer, largest.head) != ("cross", 0, 1)
    assert "L1 H2 of the cross-attention" in said(at) and "its output is 0; its weights are computed as before" in said(at)
    at.button(key="on-cross.1.2:zero").click().run()
    assert box(at, "edits").value == ""


def test_edits_that_make_no_sense_are_said_and_kept(start):
    at = start("masks", sources="hello", masks_tab=TABS[2])
    box(at, "edits").set_value("cross:3-<b>").run()
    assert "is not understood" in said(at)
    assert box(at, "edits").value == "cross:3-<b>"
    box(at, "edits").set_value("cross:1-90").run()
    assert "there is no key 90 here; possible is 1 to 7" in said(at)
    assert at.text_area(key="sources").value == "hello"
    at.button(key="lab-reset-error").click().run()
    assert not at.error


def test_edits_too_long_for_a_link_are_offered_as_a_file(start):
    edits = ",".join(f"encoder.1.{head}:{q}-{k}" for head in (1, 2, 3) for q in range(1, 8) for k in range(1, 8))
    at = start("masks", sources="hello", masks_tab=TABS[2])
    box(at, "edits").set_value(edits).run()
    assert "Too long for it: edits" in said(at) and "edits" not in link_of(at)
    assert at.get("download_button")


class Steps:
    """How many strings are decoded after each step of an effect, each of which waits until it is let go on."""

    def __init__(self) -> None:
        self.allowed, self.taken = threading.Semaphore(0), list[int]()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    st.cache_resource.clear()
    steps, step = Steps(), EffectInProgress.step

    def slow(running: EffectInProgress, model: LoadedModel) -> None:
        assert steps.allowed.acquire(timeout=60)
        step(running, model)
        steps.taken.append(running.decoded)

    monkeypatch.setattr(EffectInProgress, "step", slow)
    yield steps
    steps.allowed.release(10_000)
    until(lambda: not long_jobs.queue().jobs)
    st.cache_resource.clear()


def progress(at: AppTest) -> list[str]:
    return [bar.proto.text for bar in at.get("progress")]


def asked(start: Callable[..., AppTest], steps: Steps, n: int) -> AppTest:
    """A page that has asked for an effect, of which so many steps are taken: it is drawn, and the next one waits."""
    at = start("masks", sources="hello", masks_tab=TABS[2], edits="cross.2.1:zero")
    at.toggle(key="effect").set_value(True).run()
    steps.allowed.release(n)
    until(lambda: len(steps.taken) == n and at.session_state["long_job"].progress.share == n / 20)
    return at.run()


def test_a_click_elsewhere_loses_no_string_that_is_decoded(start, model, steps):
    at = asked(start, steps, 5)
    (bar,) = progress(at)
    assert re.fullmatch(r"Decoding\\: 125 of 500 strings · about \d+ s left", bar)
    run = at.session_state["long_job"]
    viewer.press(at, head=1)
    assert at.session_state["long_job"] is run
    steps.allowed.release(15)
    finished(at)
    assert steps.taken == list(range(25, 501, 25)), "each batch once"
    steps.allowed.release(20)
    found = measure_effect(model, edits=["cross.2.1:zero"])
    assert found.changed > 0
    assert f"Over 500 fresh strings of all lengths, in padded batches: exact match **{found.exact_before:.3f}" in said(at)
    assert f"{percent_words(found.changed, 1)} of the outputs changed" in said(at)
    assert not progress(at)


@pytest.mark.parametrize("by", ["toggle", "button"])
def test_stop_keeps_what_is_done_and_says_of_how_many(start, steps, by):
    at = asked(start, steps, 5)
    run = at.session_state["long_job"]
    if by == "toggle":
        at.toggle(key="effect").set_value(False).run()
        assert progress(at) == ["125 of 500 strings · stopped"]
    else:
        at.button(key="long-job-stop").click().run()
        assert not progress(at)
    assert run.is_cancelled
    assert "Over the first 100 of 500 fresh strings" in said(at)
    # One step was under way.
    steps.allowed.release(1)
    until(lambda: not long_jobs.queue().jobs)
    assert steps.taken[-1] == 150
    (at.toggle(key="effect").set_value(True) if by == "toggle" else at.button(key="long-job-again").click()).run()
    steps.allowed.release(20)
    finished(at)
    assert steps.taken == list(range(25, 501, 25)), "it goes on where it was"


def test_a_mistake_is_made_and_taken_back_in_the_gallery(start):
    at = start("masks", sources="hello\nab", masks_tab="Mistakes")
    assert said(at).count("**Here:**") == len(MISTAKES)
    at.button(key="make-wrong-sign").click().run()
    assert box(at, "mistake").value == "wrong-sign"
    assert link_of(at)["mistake"] == MISTAKES["wrong-sign"].title
    at.button(key="make-wrong-sign").click().run()
    assert box(at, "mistake").value == "none"
    at = start("masks", sources="hello", masks_tab="Mistakes")
    assert said(at).count("Nothing is padded here") == sum(mistake.needs_padding for mistake in MISTAKES.values())


def last_map(figure: dict[str, Any]) -> np.ndarray:
    """The weights after the softmax: the first of the traces on the last axes."""
    return numbers(next(trace["z"] for trace in figure["data"] if trace["type"] == "heatmap" and trace.get("xaxis") == "x3"))


def test_scores_a_row_and_its_sum(start):
    query = {"sources": "hello\nab", "sentence": "2", "kind": "encoder", "row": "3", "fill": "-1e9", "precision": "float16"}
    at = start("masks", masks_tab=TABS[1], **query)
    assert "the weights add up to" in said(at)
    frame = at.dataframe[0].value
    assert list(frame["token"]) == ["<start>", "a", "b", "<end>", "<pad>", "<pad>", "<pad>"]
    assert list(frame["after the mask"][4:]) == ["−∞"] * 3
    assert float(frame["weight"].sum()) == pytest.approx(1, abs=2e-3)
    fates = at.dataframe[1].value
    assert list(fates["the row"])[:2] == ["NaN", "NaN"]
    # Another head and row is the browser's, and the table follows.
    viewer.press(at, kind="cross", layer=0, head=1, row=1)
    assert list(at.dataframe[0].value["token"])[:2] == ["<start>", "a"]
    assert {"head": "head 2", "layer": "layer 1"}.items() <= link_of(at).items()
    assert link_of(at)["row"].startswith("row 2·")
    weights = last_map(viewer.one_head(at))
    np.testing.assert_allclose(at.dataframe[0].value["weight"][:4], weights[1][:4], atol=1e-6)


@pytest.mark.parametrize(
    ("sources", "targets", "named"),
    [
        ("\n\n", "", "There is no source text"),
        ("hello\n\nab", "", "Line 2 of the sources is empty"),
        ("a\n" * 200, "", "200 source texts are given; this page shows at most 8"),
        ("hello\nab", "olleh\nba\nc", "2 sources and 3 targets are given"),
        ("hello\n" + "x" * 40, "", "Line 2 of the sources: The text has 40 characters; this model reads at most 32"),
        ("hello\n🙂", "", "Line 2 of the sources: Character 1 is"),
        ("hello", "\u202eab", "Line 1 of the targets: Character 1 is"),
    ],
)
def test_what_cannot_be_a_batch_is_said_and_nothing_is_lost(start, sources, targets, named):
    at = start("masks")
    at.text_area(key="targets").set_value(targets)
    at.text_area(key="sources").set_value(sources).run()
    assert named in said(at)
    assert (at.text_area(key="sources").value, at.text_area(key="targets").value) == (sources, targets)
    assert not press(at, "Use examples").error


def test_lines_of_very_different_length_and_an_empty_target_line(start):
    at = start("masks", sources="a\n" + "x" * 32, targets="\nxyz")
    assert not at.error
    assert "encoder: padding<br>1054 of 1156 cells" in titles(at)


def test_its_first_sentence_and_its_model_are_those_of_the_other_pages(start, visit):
    at = visit(start(text="planet"), "masks")
    first, *others = at.text_area(key="sources").value.split("\n")
    assert first == "planet" and others and "planet" not in others
    assert "Sentence 1 of 3: **planet**" in said(at)
    assert link_of(at)["sources"] == at.text_area(key="sources").value, "a link opens the same for whoever has it"
    at = visit(at, None)
    viewer.enter(at, "moon")
    at = visit(at, "masks")
    assert at.text_area(key="sources").value.split("\n") == ["moon", *others]
    # What is typed here stays.
    at.text_area(key="sources").set_value("mine").run()
    at = visit(at, None)
    viewer.enter(at, "sun")
    assert visit(at, "masks").text_area(key="sources").value == "mine"


def test_a_link_and_a_text_that_the_model_cannot_read_come_before_the_text_of_the_other_pages(start):
    assert start("masks", text="planet", sources="ab").text_area(key="sources").value == "ab"
    examples = start("masks").text_area(key="sources").value
    assert start("masks", text="1234").text_area(key="sources").value == examples


def test_a_row_has_the_words_of_what_is_shown(start, folder):
    """The rows of each kind have their own words, in the box and in the link."""
    at = start("masks", sources="hello\nab", masks_tab="Scores to weights", kind="cross-attention")
    viewer.press(at, row=1)
    before = link_of(at)["row"]
    viewer.press(at, kind="encoder")
    rows = {kind: about["rows"] for kind, about in viewer.content(at)["kinds"].items()}
    assert (before, link_of(at)["row"]) == (rows["cross"][1], rows["encoder"][1]) and before != link_of(at)["row"]
