"""The page Over many texts: its numbers are the summary's, links open the same, and of anybody's file it says what is wrong."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import Element

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.surveys.made import survey
from tests.views import viewer
from tests.views.drawn import charts, drop, markups, pictures, said, table_of, text_of
from tests.views.widgets import link_of
from transformer_viz import app_folders
from transformer_viz.addresses import HeadAddress
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import compare_surveys, values
from transformer_viz.surveys.result import Survey, TextValue
from transformer_viz.views.survey import found, texts

MADE = survey()


@pytest.fixture
def surveys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own."""
    monkeypatch.setenv(app_folders.SURVEYS_VARIABLE, str(tmp_path / "surveys"))
    return tmp_path / "surveys"


def put(folder: Path, name: str, text: str | bytes) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "summary.json").write_bytes(text.encode() if isinstance(text, str) else text)


def lists(at: AppTest) -> list[list[Element]]:
    """The lines of each list of texts."""
    return [section.findall(".//li") for drawn in markups(at, "texts") for section in drawn.findall("section")]


def test_it_opens_on_the_best_head_with_the_numbers_of_the_summary(start):
    at, mass = start("survey"), values(MADE, "cross", "mass")
    assert sentences.headline(MADE, "mass") in said(at)
    layer, head = np.unravel_index(mass.argmax(), mass.shape)
    state = at.session_state
    assert (state.kind, state.layer, state.head) == ("cross", layer, head)
    assert not link_of(at)
    (histogram,) = charts(at)
    (heads,) = viewer.tables(at).values()
    hovers = np.ravel(heads["data"][0]["text"])
    numbers = [float(hover.split("<b>")[2].split("<")[0]) for hover in hovers]
    assert numbers == [round(number, 3) for number in mass.ravel().tolist()]
    place = HeadAddress("cross", int(layer), int(head))
    row, known = MADE.at(place, "mass"), MADE.texts_of(place)
    assert row is not None and known is not None
    assert any(f"mean {row.mean:.3f}," in str(trace.get("name")) for trace in histogram.figure["data"])
    listed = [[text_of(line.find("*[@class='text']")) for line in lines] for lines in lists(at)]
    assert listed == [[each.text.replace(" ", "␣") for each in one] for one in (known.highest, known.typical, known.unusual)]


def test_a_pressed_head_is_in_focus_in_the_link_and_in_the_tabs(start):
    at = start("survey")
    assert viewer.viewer(at)["start"] == {"kind": "cross", "layer": at.session_state.layer, "head": at.session_state.head}
    viewer.press(at, kind="encoder", layer=1, head=2)
    assert link_of(at) == {"kind": "encoder self-attention", "layer": "layer 2", "head": "head 3"}
    assert sentences.role_words(MADE, MADE.find(HeadAddress("encoder", 1, 2))) in said(at)
    # A button of the page moves it too, and says that it is another request.
    before = viewer.viewer(at)["request"]
    at.button(key="survey-go").click().run()
    assert viewer.viewer(at)["start"]["kind"] == "cross" and viewer.viewer(at)["request"] > before
    # Nonsense is brought into range.
    viewer.press(at, kind="other", layer=9, head="x")
    assert not at.error and viewer.viewer(at)["start"]["kind"] == "cross"


def test_every_text_is_a_link_to_explore_with_its_head(start, folder):
    at = start("survey", kind="encoder", layer="2", head="3")
    lines = [line for lines in lists(at) for line in lines]
    assert len(lines) == 9
    for line in lines:
        (link,) = line.findall("a")
        query = {name: value for name, (value,) in parse_qs(urlsplit(link.attrib["href"]).query).items()}
        place = {"kind": "encoder self-attention", "layer": "layer 2", "head": "head 3"}
        assert query == {"text": text_of(link).replace("␣", " "), "checkpoint": "reverse", **place}
    opened = start(**query)  # the last one; the tiny model has fewer layers than the survey
    assert opened.session_state.text == query["text"] and opened.session_state.kind == "encoder"


@pytest.mark.parametrize("tab", ["This head", "Agreement", "Outputs", "On trial", "How it was made"])
def test_a_tab_draws_and_says_what_the_survey_has(start, tab):
    at = start("survey", survey_tab=tab)
    assert MADE.outputs is not None and MADE.verdict is not None
    if tab == "Agreement":
        assert len(pictures(at)) == 3
    if tab == "Outputs":
        assert sentences.right(MADE.outputs) in said(at) and sentences.calibrated(MADE.outputs) in said(at)
        (lines,) = lists(at)
        assert [link.attrib["class"] for link in lines[0].findall("a")] == ["text", "other"]
    if tab == "On trial":
        table = table_of(at, "map")
        assert list(table["map"]) == [each.name for each in MADE.verdict.maps]
        assert list(table["at the cause, word"]) == pytest.approx([each.top.value for each in MADE.verdict.maps])
        assert {*table["by chance"]} == {0.2}
    if tab == "How it was made":
        assert sentences.survey_words(MADE) in said(at)
        assert at.dataframe[0].value.iloc[0].to_list() == [17, "a⇥b", "it has a tab"]
        assert "--checkpoint reverse" in at.code[0].value


def test_parts_that_a_survey_lacks_are_said(start, surveys):
    put(surveys, "less", replace(MADE, agreement={}, outputs=None, verdict=None).to_json())
    for tab, sentence in (("Agreement", "were not compared"), ("Outputs", "writes nothing"), ("On trial", "has no verdicts")):
        assert sentence in said(start("survey", survey="surveys/less", survey_tab=tab))
    empty = replace(MADE, kinds={}, heads=(), examples=(), agreement={}, outputs=None, verdict=None)
    put(surveys, "empty", empty.to_json())
    assert sentences.survey_words(empty) in said(start("survey", survey="surveys/empty"))


def test_others_see_no_survey_of_the_folder_that_the_app_was_started_in(start, surveys, monkeypatch):
    """Unless that folder was named."""
    put(surveys, "merger-2027", survey(1).to_json())
    assert "surveys/merger-2027" in start("survey").selectbox(key="survey").options
    monkeypatch.setenv(app_folders.SHARED_VARIABLE, "1")
    assert "surveys/merger-2027" in start("survey").selectbox(key="survey").options
    monkeypatch.delenv(app_folders.SURVEYS_VARIABLE)
    monkeypatch.chdir(surveys.parent)
    at = start("survey", survey="surveys/merger-2027")
    assert at.selectbox(key="survey").options == ["reverse"]
    assert "Not possible here, and left out of the link: survey=surveys/merger-2027" in said(at)


def test_two_surveys_are_compared_and_models_of_other_sizes_are_not(start, surveys):
    put(surveys, "other", survey(1).to_json())
    put(surveys, "wide", survey(n_heads=4).to_json())
    at = start("survey", survey_beside="surveys/other", survey_number="role mirror")
    change = compare_surveys(MADE, survey(1), "role mirror")
    assert sentences.changed(change, "reverse", "surveys/other") in said(at) and change.largest is not None
    (histogram,) = charts(at)
    for kind, drawn in zip(MADE.kinds, viewer.tables(at).values(), strict=True):
        clear = [each for each in change.of(kind) if each.is_significant]
        said_of = drawn["layout"]["meta"]["said"]
        assert sum("it may be chance" not in each for each in said_of) == len(clear)
        assert drawn["layout"]["coloraxis"]["cmax"] == abs(change.largest.difference)
    assert any(trace.get("name") == "texts of the other survey" for trace in histogram.figure["data"])
    at = start("survey", survey_beside="surveys/wide")
    assert "differ in their numbers of layers or heads" in said(at)


@pytest.mark.parametrize("data", [b"{", MADE.to_json()[:2000], MADE.to_json().replace('"n":1000', '"n":1e400')])
def test_a_damaged_file_gets_a_sentence(start, surveys, data):
    put(surveys, "bad", data)
    at = start("survey", survey="surveys/bad")
    assert len(at.error) == 1 and "is not a survey that this program can read" in said(at)
    at.selectbox(key="survey").select("reverse").run()
    assert not at.error and len(charts(at)) == 1 and viewer.tables(at)


def test_markup_in_a_survey_is_text(start, surveys):
    bad = "<img src=x onerror=alert(1)> **b** :red[x] $y$ [a](http://b)"
    examples = tuple(replace(of, highest=(TextValue(line=1, text=bad, value=0.5),)) for of in MADE.examples)
    statistics = tuple(replace(each, title=bad) for each in MADE.statistics)
    model = replace(MADE.model, name=bad, variant=bad)
    put(surveys, "markup", replace(MADE, examples=examples, statistics=statistics, model=model).to_json())
    # Of the best head the page says its number above, of another one in its tab.
    for tab, layer in (("This head", "1"), ("This head", "2"), ("How it was made", "1")):
        at = start("survey", survey="surveys/markup", survey_tab=tab, kind="cross", layer=layer, head="1")
        raw = "".join(str(element.value) for element in (*at.markdown, *at.caption, *at.info))
        assert bad not in raw and (tab != "This head" or bad in said(at))
    at = start("survey", survey="surveys/markup")
    # No model of that name is here: nothing can be opened.
    assert "is not among the models of this machine" in said(at) and not lists(at)[0][0].findall("a")


def test_what_is_dropped_is_shown_or_refused_and_stays_in_its_session(start, folder):
    at = start("survey")
    other: Survey = survey(7, model=replace(MADE.model, name="mine"))
    drop(at, ("x/<b>.json", other.to_json().encode()))
    assert "(opened)" in at.session_state.survey
    assert sentences.headline(other, "mass") in said(at)
    drop(at, ("bad.json", b"{}"))
    assert "bad.json is not a survey" in said(at)
    assert "(opened)" in at.session_state.survey
    assert not any("opened" in name for name in start("survey").selectbox(key="survey").options)


def test_more_than_a_session_holds_lets_go_of_the_oldest(start, folder, monkeypatch):
    at = start("survey")
    for number in range(found.MOST_OPENED + 1):
        drop(at, (f"{number}.json", MADE.to_json().encode()))
    assert [*at.session_state.surveys_opened] == [f"{number}.json (opened)" for number in range(1, found.MOST_OPENED + 1)]
    monkeypatch.setattr(found, "MOST_OF_ALL", 10)
    drop(at, ("9.json", MADE.to_json().encode()))
    assert "holds as many opened surveys as it can" in at.error[0].value


def test_a_file_larger_than_a_page_reads_is_refused(start, surveys, monkeypatch):
    put(surveys, "large", MADE.to_json() + " " * 2**20)
    monkeypatch.setattr(found, "LARGEST", 2**20)
    st.cache_resource.clear()
    at = start("survey", survey="surveys/large")
    assert "the page reads" in at.error[0].value


def test_without_a_survey_the_page_says_how_to_make_one(start, own_folder, surveys):
    (own_folder / "reverse" / "survey" / "summary.json").unlink()
    at = start("survey")
    assert "No survey is here yet" in said(at)
    assert at.code[0].value.startswith("python -m transformer_viz survey ")


def test_while_the_answer_is_hidden_nothing_is_told(start):
    at = start("survey", hide_answer="true")
    assert not charts(at) and "would give the answer away" in said(at)


def test_a_text_stays_one_value_of_its_link():
    link = texts.address("a b&c=<", "m/x", MADE.places[0])
    assert link == "./?text=a+b%26c%3D%3C&checkpoint=m%2Fx&kind=encoder+self-attention&layer=layer+1&head=head+1"
