"""The Masks page through AppTest: every tab, every change, everything that people can get wrong."""

import base64
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.until import until
from tests.views.drawn import charts, pictures
from transformer_viz import compare, decode, load_checkpoint
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.effect import EffectInProgress, effect
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.server_settings import Limits
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.cache.job_queue import Job, JobQueue
from transformer_viz.views.masks.page import TABS as MODULES

Start = Callable[..., AppTest]
TABS = tuple(MODULES)


def titles(at: AppTest) -> list[str]:
    return [note["text"] for chart in pictures(at) for note in chart["layout"].get("annotations", [])]


def said(at: AppTest) -> str:
    kinds = [*at.error, *at.info, *at.warning, *at.success, *at.markdown]
    return " ".join(str(element.value) for element in kinds).replace("\\", "")


def open_tab(at: AppTest, tab: str) -> AppTest:
    at.session_state["masks_tab"] = tab
    return at.run()


def test_the_page_opens_with_a_padded_batch(start: Start) -> None:
    at = start("masks")
    assert not at.exception
    assert at.text_area(key="sources").value == "reversethis\nMississippi 2026!\naaaaaaaa"
    drawn = titles(at)
    assert [title[:9] for title in drawn if title.startswith("<b>")] == ["<b>1: rev", "<b>2: Mis", "<b>3: aaa"]
    assert sum(title.startswith("decoder: causal<br>") for title in drawn) == 3
    assert "encoder: padding<br>114 of 361 cells" in drawn
    assert "Sentence 1 of 3: **reversethis** becomes" in said(at)


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_every_tab_opens_whatever_is_wrong_with_the_masks(start: Start, tab: str, mistake: str | None) -> None:
    at = start("masks", sources="ab\nc", masks_tab=tab, **({"mistake": mistake} if mistake else {}))
    assert not at.exception
    assert not at.error
    assert not at.warning


def test_one_sentence_large(start: Start) -> None:
    at = start("masks", sources="ab\nhello", sentence="2", masks_of="sentence")
    assert len([title for title in titles(at) if title.startswith("<b>")]) == 1
    assert "<b>2: hello</b>" in titles(at)
    assert at.query_params["masks_of"] == "this sentence, large"


def test_an_edit_is_run_shown_linked_and_taken_back(start: Start) -> None:
    at = start("masks", sources="hello\nab", masks_tab=TABS[2])
    assert "Nothing is changed yet" in said(at)
    at.text_input(key="edits").set_value("cross:1-2, cross.2.1:zero").run()
    assert not at.exception
    assert at.query_params["edits"] == "cross:1-2, cross.2.1:zero"
    assert "With 2 edits it becomes" in said(at)
    assert "cross-attention: 1 of" in str([chart["layout"].get("title") for chart in pictures(at)])
    at.button(key="lab-reset-all").click().run()
    assert at.text_input(key="edits").value == ""
    assert "edits" not in at.query_params
    assert "Nothing is changed yet" in said(at)


def test_what_is_shown_is_what_the_api_gives(start: Start, folder) -> None:
    at = start("masks", sources="hello\nab", masks_tab=TABS[2], edits="cross.1:1-2")
    checkpoint = load_checkpoint(str(folder / "reverse"), "cpu")
    after = decode(checkpoint, ["hello", "ab"], pad_to=7, edits=["cross.1:1-2"])[0]
    chart = next(chart.figure for chart in charts(at) if chart.key == "lab-after")
    z = chart["data"][0]["z"]
    drawn = np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])
    expected = np.where(np.broadcast_to(after.cross.mask, after.cross.weights.shape)[1, 2], np.nan, after.cross.weights[1, 2])
    np.testing.assert_allclose(drawn, expected, atol=1e-6)


def test_heads_and_masks_are_switched_by_buttons_and_a_second_press_takes_it_back(start: Start) -> None:
    at = start("masks", sources="hello", masks_tab=TABS[2], kind="cross", layer="1", head="2")
    for label, edit in (("Mask off", "cross:off"), ("L1 H2 uniform", "cross.1.2:*=uniform")):
        button = next(button for button in at.button if button.label == label)
        button.click().run()
        assert at.text_input(key="edits").value == edit
        next(button for button in at.button if button.label == label).click().run()
        assert at.text_input(key="edits").value == ""


def test_a_head_that_is_switched_off_is_said_and_the_focus_goes_where_most_changes(start: Start, folder: Path) -> None:
    at = start("masks", sources="hello", masks_tab=TABS[2], kind="cross", layer="1", head="2")
    next(button for button in at.button if button.label == "L1 H2 off").click().run()
    assert at.text_input(key="edits").value == "cross.1.2:zero"
    checkpoint = load_checkpoint(str(folder / "reverse"), "cpu")
    largest = compare(decode(checkpoint, "hello"), decode(checkpoint, "hello", edits=["cross.1.2:zero"])).largest
    assert largest is not None
    state = at.session_state
    assert (state["kind"], state["layer"], state["head"]) == (largest.kind, largest.layer, largest.head)
    assert (largest.kind, largest.layer, largest.head) != ("cross", 0, 1)
    assert any("L1 H2 of the cross-attention" in line.value and "replaced by 0" in line.value for line in at.markdown)
    at.button(key="on-cross.1.2:zero").click().run()
    assert at.text_input(key="edits").value == ""


def test_edits_that_make_no_sense_are_said_and_kept(start: Start) -> None:
    at = start("masks", sources="hello", masks_tab=TABS[2])
    at.text_input(key="edits").set_value("cross:3-<b>").run()
    assert "is not understood" in said(at)
    assert at.text_input(key="edits").value == "cross:3-<b>"
    at.text_input(key="edits").set_value("cross:1-90").run()
    assert "there is no key 90 here; possible is 1 to 7" in said(at)
    assert at.text_area(key="sources").value == "hello"
    at.button(key="lab-reset-error").click().run()
    assert not at.error


def test_edits_too_long_for_a_link_are_offered_as_a_file(start: Start) -> None:
    edits = ",".join(f"encoder.1.{head}:{q}-{k}" for head in (1, 2, 3) for q in range(1, 8) for k in range(1, 8))
    at = start("masks", sources="hello", masks_tab=TABS[2])
    at.text_input(key="edits").set_value(edits).run()
    assert not at.exception
    assert any("Too long for it: edits" in caption.value for caption in at.caption)
    assert "edits" not in at.query_params
    assert at.get("download_button")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many strings are decoded after each step. After the fifth the run of the page ends, as a click ends it."""
    st.cache_resource.clear()
    taken: list[int] = []
    step, result = EffectInProgress.step, Job.result

    def counted(running: EffectInProgress, model: LoadedModel) -> None:
        step(running, model)
        taken.append(running.decoded)

    def stopped(job: Job) -> None:
        result(job)
        if len(taken) == 5:
            st.stop()

    monkeypatch.setattr(EffectInProgress, "step", counted)
    monkeypatch.setattr(Job, "result", stopped)
    yield taken
    st.cache_resource.clear()


def progress(at: AppTest) -> list[str]:
    return [bar.proto.text for bar in at.get("progress")]


def test_a_click_elsewhere_loses_nothing_of_the_strings_that_are_decoded(start: Start, folder: Path, steps: list[int]) -> None:
    at = start("masks", sources="hello", masks_tab=TABS[2], edits="cross.2.1:zero")
    at.toggle(key="effect").set_value(True).run()
    (bar,) = progress(at)
    assert re.fullmatch(r"100 of 500 strings · about \d+ s left", bar)
    at.selectbox(key="head").set_value(1).run()
    assert steps == list(range(25, 501, 25)), "each batch once"
    found = effect(load_checkpoint(str(folder / "reverse"), "cpu"), edits=["cross.2.1:zero"])
    assert found.changed > 0
    assert f"Over 500 fresh strings of all lengths, in padded batches: exact match **{found.exact_before:.3f}" in said(at)
    assert f"{percent_words(found.changed, 1)} of the outputs changed" in said(at)
    assert not progress(at)


def test_stop_keeps_what_is_done_and_says_of_how_many(start: Start, steps: list[int]) -> None:
    at = start("masks", sources="hello", masks_tab=TABS[2], edits="cross.2.1:zero")
    at.toggle(key="effect").set_value(True).run()
    at.toggle(key="effect").set_value(False).run()
    assert len(steps) == 5
    assert progress(at) == ["125 of 500 strings · stopped"]
    assert "Over the first 100 of 500 fresh strings" in said(at)
    at.toggle(key="effect").set_value(True).run()
    assert "Over 500 fresh strings" in said(at)
    assert steps == list(range(25, 501, 25))


def test_many_strings_stand_in_line_and_leave_it_with_their_page(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, go_on, looks = JobQueue(Limits(), now=lambda: 0.0), threading.Event(), []

    def wait(job: Job, seconds: float) -> bool:
        """Twice there is nothing; then the run of the page ends, as a click ends it."""
        looks.append(job)
        if len(looks) == 2:
            st.stop()
        return False

    monkeypatch.setattr(long_jobs, "queue", lambda: queue)
    monkeypatch.setattr(Job, "wait_for_news", wait)
    other = queue.submit("hers", lambda job: go_on.wait(60))
    try:
        until(lambda: other.state == "running")
        at = start("masks", sources="hello\nab", masks_tab="Mistakes", gallery="true")
        assert progress(at) == ["0 of 3,500 strings · 2nd in line; 1 run before yours"]
        assert said(at).count("**Here:**") == len(MISTAKES), "all else is drawn before"
        assert looks[0].is_cancelled and queue.submit("his", lambda job: None).n_before == 1
    finally:
        go_on.set()


def test_the_certificate_passes_and_fails(start: Start) -> None:
    at = start("masks", sources="hello", masks_tab="Certificate")
    at.toggle(key="certificate").set_value(True).run(timeout=120)
    assert "Sound: nothing that must not be seen changed anything" in said(at)
    at.selectbox(key="mistake").set_value("no-causal").run()
    assert "Sound" not in said(at)
    at.toggle(key="certificate").set_value(True).run(timeout=120)
    assert "Leaking" in said(at)
    assert "This looks like **No causal mask**" in said(at)


def test_a_mistake_is_made_and_taken_back_in_the_gallery(start: Start) -> None:
    at = start("masks", sources="hello\nab", masks_tab="Mistakes")
    assert said(at).count("**Here:**") == len(MISTAKES)
    at.button(key="make-wrong-sign").click().run()
    assert at.selectbox(key="mistake").value == "wrong-sign"
    assert at.query_params["mistake"] == MISTAKES["wrong-sign"].title
    at.button(key="make-wrong-sign").click().run()
    assert at.selectbox(key="mistake").value == "none"


def test_without_padding_the_gallery_says_so(start: Start) -> None:
    at = start("masks", sources="hello", masks_tab="Mistakes")
    assert said(at).count("Nothing is padded here") == sum(mistake.needs_padding for mistake in MISTAKES.values())


def test_scores_a_row_and_its_sum(start: Start) -> None:
    at = start(
        "masks", sources="hello\nab", sentence="2", masks_tab=TABS[1], kind="encoder", row="3", fill="-1e9", precision="float16"
    )
    assert not at.exception
    assert "the weights add up to" in " ".join(caption.value for caption in at.caption)
    frame = at.dataframe[0].value
    assert list(frame["token"]) == ["<start>", "a", "b", "<end>", "<pad>", "<pad>", "<pad>"]
    assert list(frame["after the mask"][4:]) == ["−∞"] * 3
    assert float(frame["weight"].sum()) == pytest.approx(1, abs=2e-3)
    fates = at.dataframe[1].value
    assert list(fates["the row"])[:2] == ["NaN", "NaN"]
    assert (at.query_params["fill"], at.query_params["precision"]) == ("-1e9", "float16") and at.session_state["row"] == 2


@pytest.mark.parametrize(
    ("sources", "targets", "named"),
    [
        ("", "", "There is no source text"),
        ("\n\n", "", "There is no source text"),
        ("hello\n\nab", "", "Line 2 of the sources is empty"),
        ("a\n" * 200, "", "200 source texts are given; this page shows at most 8"),
        ("hello\nab", "olleh", "2 sources and 1 targets are given"),
        ("hello\nab", "olleh\nba\nc", "2 sources and 3 targets are given"),
        ("hello\n" + "x" * 40, "", "Line 2 of the sources: The text has 40 characters; this model reads at most 32"),
        ("hello\n🙂", "", "Line 2 of the sources: Character 1 is"),
        ("hello", "\u202eab", "Line 1 of the targets: Character 1 is"),
    ],
)
def test_what_cannot_be_a_batch_is_said_and_nothing_is_lost(start: Start, sources: str, targets: str, named: str) -> None:
    at = start("masks")
    at.text_area(key="targets").set_value(targets)
    at.text_area(key="sources").set_value(sources).run()
    assert not at.exception
    assert named in said(at)
    assert at.text_area(key="sources").value == sources
    assert at.text_area(key="targets").value == targets
    button = next(button for button in at.button if button.label == "Use examples")
    button.click().run()
    assert not at.error


def test_lines_of_very_different_length_and_an_empty_target_line(start: Start) -> None:
    at = start("masks", sources="a\n" + "x" * 32, targets="\nxyz")
    assert not at.exception
    assert not at.error
    assert "encoder: padding<br>1054 of 1156 cells" in titles(at)


def test_markup_is_text_here_too(start: Start) -> None:
    nasty = "<b>$x$</b>\n**a** :red[b]\n`c` [d](e)"
    for tab in TABS:
        at = start("masks", sources=nasty, masks_tab=tab)
        assert not at.exception
        assert not at.error
        raw = " ".join(str(element.value) for element in at.markdown)
        assert "<b>$x$" not in raw
        assert ":red[b]" not in raw


def test_what_was_typed_survives_a_visit_to_the_other_page(start: Start, visit: Callable[..., AppTest]) -> None:
    at = start("masks", sources="hello\nab", mistake="no-causal", edits="cross:1-2")
    visit(at, None)
    assert at.text_input(key="text").value == "reversethis"
    visit(at, "masks")
    assert at.text_area(key="sources").value == "hello\nab"
    assert at.selectbox(key="mistake").value == "no-causal"
    assert "1 edit" in said(at)
