"""Survey: every head over many texts, its roles, its distribution, and the texts that show it."""

from typing import Any

import streamlit as st

from transformer_viz import places, serving
from transformer_viz.analysis.survey import words
from transformer_viz.analysis.survey.compare import SurveyComparison, compare_surveys
from transformer_viz.analysis.survey.readings import best, kinds, readings
from transformer_viz.analysis.survey.result import Survey, SurveyedHead
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.terms import KIND_TITLES, head_label
from transformer_viz.views.components import code, style, tabs, word_list
from transformer_viz.views.components.markdown import literal, sentence
from transformer_viz.views.snippets import survey as programs
from transformer_viz.views.state import display_options, focus, link
from transformer_viz.views.survey import found, maps, texts
from transformer_viz.views.survey.found import FOLDER, Source
from transformer_viz.views.survey.shown import Shown

TITLE, ICON, ORDER = "Survey", ":material/query_stats:", 6

NONE = ""
"""What *Compare with* holds where nothing is compared."""
_DEFAULT = "reverse"
_TABS = "survey_tables"
_COMMAND = "python -m transformer_viz survey --checkpoint reverse --held-out 2000 -o surveys/mine"


def show() -> None:
    """The page."""
    link.open_page("survey")
    texts.go()
    known = found.surveys()
    if not known:
        _empty()
        return
    _start(known)
    _bar(known)
    found.say()
    if display_options.is_hidden("The heads and outputs of a survey"):
        link.write(link.values())
        return
    name = st.session_state.survey
    try:
        survey = known[name].read()
    except SurveyError as error:
        link.write(link.values())
        st.error(literal(str(error)), icon=":material/error:")
        return
    _show(name, known, survey)


def _start(known: dict[str, Source]) -> None:
    """Which survey, and which one beside it. From another page's model one comes to its own."""
    state = st.session_state
    default = _DEFAULT if _DEFAULT in known else next(iter(known))
    if "survey" not in state and not link.is_waiting("survey") and state.get("checkpoint") in known:
        state.survey = state.checkpoint
    link.start("survey", list(known), default)
    link.start("survey_beside", [NONE, *known], NONE)


def _bar(known: dict[str, Source]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        st.selectbox("Survey", list(known), key="survey", width=260, label_visibility="collapsed")
        st.selectbox(
            "Compare with",
            [NONE, *known],
            key="survey_beside",
            width=260,
            format_func=lambda name: name or "compare with …",
            label_visibility="collapsed",
        )
        with st.popover("Open another", icon=":material/folder_open:"):
            found.box()
        display_options.popover()


def _empty() -> None:
    """What a survey is, and how to come to one."""
    st.markdown("#### No survey is here yet")
    st.markdown(
        "A survey says what every head of a model does over thousands of texts, and which texts show it best. Make one:"
    )
    st.code(_COMMAND, language="bash", wrap_lines=True)
    word_list.popover("survey")
    listed = f"What lies in a folder `{FOLDER}/` where the app was started is listed here. Or open one:"
    st.markdown("Or open one:" if places.surveys() is None else listed)
    found.box()
    found.say()


def _show(name: str, known: dict[str, Source], survey: Survey) -> None:
    numbers = readings(survey)
    if not numbers:
        link.write(link.values())
        st.info(sentence(words.made_of(survey)), icon=":material/info:")
        return
    number = numbers[link.start("survey_number", list(numbers))]
    head = _focus(survey, number.name)
    link.start(_TABS, list(_found_tabs()))
    beside, said = _beside(known, survey)
    shown = Shown(
        name=name,
        identity=known[name].identity,
        survey=survey,
        number=number,
        head=head,
        beside=beside,
        theme=style.theme(),
        is_large=display_options.current().is_large,
    )
    link.say((name, number.name, head.kind, head.layer, head.head))
    link.write(link.values())
    comparison = _compared(shown) if beside is not None else None
    if said:
        st.warning(sentence(said), icon=":material/warning:")
    _sentence(shown, comparison)
    _controls(shown, [*numbers])
    maps.show(shown, comparison)
    _tabs(shown)
    if not shown.is_large:
        _code(shown, known)


def _focus(survey: Survey, name: str) -> SurveyedHead:
    """The head in focus: the session's, the link's, or the one with the highest number."""
    state, default = st.session_state, best(survey, name) or survey.heads[0]
    there = [kind for kind, of in survey.kinds.items() if of.layers]
    kind = link.start("kind", there, default.kind, fallback=default.kind)
    of = survey.kinds[kind]
    place = (default.layer, default.head) if kind == default.kind else (of.layers[0], 0)
    if state.get("layer", of.layers[0]) not in of.layers or state.get("head", 0) not in range(of.n_heads):
        state.layer, state.head = place
    link.start("layer", of.layers, place[0])
    link.start("head", range(of.n_heads), place[1])
    return survey.at(kind, state.layer, state.head)


def _beside(known: dict[str, Source], survey: Survey) -> tuple[Survey | None, str]:
    """The survey to compare with, or why it cannot be."""
    name = st.session_state.survey_beside
    if name == NONE:
        return None, ""
    try:
        other = known[name].read()
        compare_surveys(survey, other, next(iter(readings(survey))))
    except (SurveyError, OptionError) as error:
        return None, str(error)
    return other, ""


def _compared(shown: Shown) -> SurveyComparison:
    assert shown.beside is not None
    return compare_surveys(shown.survey, shown.beside, shown.number.name)


def _sentence(shown: Shown, comparison: SurveyComparison | None) -> None:
    """What there is to see, and the way to the head that it is about."""
    if comparison is None:
        said, there = words.headline(shown.survey, shown.number.name), best(shown.survey, shown.number.name)
    else:
        said, there = words.changed(comparison, shown.name, st.session_state.survey_beside), comparison.largest
    with st.container(horizontal=True, vertical_alignment="center", key="survey-sentence"):
        st.markdown(shown.heading(said), width="stretch")
        place = None if there is None else (there.kind, there.layer, there.head)
        if place is not None and place != (shown.head.kind, shown.head.layer, shown.head.head):
            focus.go_to_head_button(f"Go to {head_label(place[1], place[2])}", "survey-go", place)


def _controls(shown: Shown, numbers: list[str]) -> None:
    """By which number, and which head: the keyboard's way to what a click on a map does."""
    titles = {name: f"heads by {each.title}" for name, each in readings(shown.survey).items()}
    there = [kind for kind, each in shown.survey.kinds.items() if each.layers]
    of = shown.survey.kinds[shown.head.kind]
    quiet: dict[str, Any] = {"label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="survey-controls"):
        st.selectbox("Heads by", numbers, key="survey_number", format_func=titles.__getitem__, width=340, **quiet)
        st.segmented_control("Attention", there, key="kind", format_func=KIND_TITLES.__getitem__, required=True, **quiet)
        st.selectbox("Layer", of.layers, key="layer", format_func=lambda n: f"layer {n + 1}", width=110, **quiet)
        st.selectbox("Head", range(of.n_heads), key="head", format_func=lambda n: f"head {n + 1}", width=110, **quiet)


def _found_tabs() -> dict[str, object]:
    return dict(tabs.found("transformer_viz.views.survey"))


@st.fragment
def _tabs(shown: Shown) -> None:
    """A fragment, so that another tab redraws no map above."""
    if texts.is_going():
        st.rerun()
    tabs.show(tabs.found("transformer_viz.views.survey"), _TABS, shown)
    link.update(link.values((_TABS,)))


def _code(shown: Shown, known: dict[str, Source]) -> None:
    beside = None if shown.beside is None else _as_typed(known[st.session_state.survey_beside], st.session_state.survey_beside)
    there = kinds(shown.survey, shown.number.name)
    focused = (shown.head.kind, shown.head.layer, shown.head.head)
    path = _as_typed(known[shown.name], shown.name)
    code.show(programs.program(path, shown.number.name, there, focused, code.looks(), beside))


def _as_typed(source: Source, name: str) -> str:
    """A survey's folder as people type it, from where the app was started or from the checkout; of what was opened the file."""
    if source.path is None:
        return name.removesuffix(" (opened)")
    folder, surveys = source.path.parent, places.surveys()
    for root in (*([] if surveys is None else [surveys.absolute().parent]), places.ROOT):
        if folder.is_relative_to(root):
            return folder.relative_to(root).as_posix()
    # Where others look on, a place of this machine is not told.
    return name if serving.is_shared() else str(folder)
