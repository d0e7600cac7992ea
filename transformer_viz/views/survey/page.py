"""Over many texts: what every head does over a corpus, its roles, its distribution, and the texts that show it."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from transformer_viz import app_folders, server_settings
from transformer_viz.addresses import HeadPlace
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import best, columns
from transformer_viz.surveys.comparison import SurveyComparison, compare_surveys
from transformer_viz.surveys.result import Survey, load_survey
from transformer_viz.terms import head_label
from transformer_viz.views.components import code, style, tabs, word_list
from transformer_viz.views.components.markdown import literal, sentence
from transformer_viz.views.components.recorded_calls import Call, call, record
from transformer_viz.views.state import display_options, focus, link
from transformer_viz.views.survey import found, maps, texts
from transformer_viz.views.survey.found import FOLDER, Source
from transformer_viz.views.survey.shown import Shown

TITLE, ICON, ORDER = "Over many texts", ":material/query_stats:", 6

NONE = ""
"""What *Compare with* holds where nothing is compared."""
_DEFAULT = "reverse"
_COMMAND = "python -m transformer_viz survey --checkpoint reverse --held-out 2000 -o surveys/mine"


def show() -> None:
    """The page."""
    texts.go()
    known = found.surveys()
    if not known:
        _empty()
        return
    # Which survey, and which one beside it. From another page's model one comes to its own.
    state = st.session_state
    if "survey" not in state and "survey" not in link.address() and state.get("checkpoint") in known:
        state.survey = state.checkpoint
    link.option("survey", list(known), _default(known))
    link.option("survey_beside", [NONE, *known], NONE, _beside_words)
    looks: dict[str, Any] = {"width": 260, "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        link.selectbox("Survey", list(known), key="survey", default=_default(known), **looks)
        link.selectbox("Compare with", [NONE, *known], key="survey_beside", words=_beside_words, **looks)
        with st.popover("Open another", icon=":material/folder_open:"):
            found.box()
        display_options.popover("survey")
    found.say()
    if display_options.is_hidden("The heads and outputs of a survey"):
        return
    name = st.session_state.survey
    try:
        survey = _read(known, name)
    except SurveyError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    numbers = columns(survey)
    if not numbers:
        st.info(sentence(sentences.survey_words(survey)), icon=":material/info:")
        return
    number = numbers[link.option("survey_number", list(numbers), words=_number_words(survey))]
    head = _focus(survey, number.name)
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
    comparison = _compared(shown) if beside is not None else None
    if said:
        st.warning(sentence(said), icon=":material/warning:")
    _sentence(shown, comparison)
    _controls(shown, [*numbers])
    drawn = maps.show(shown, comparison)
    _tabs(shown)
    if not shown.is_large:
        code.show(*drawn or [survey])


def _default(known: dict[str, Source]) -> str:
    return _DEFAULT if _DEFAULT in known else next(iter(known))


def _beside_words(name: str) -> str:
    return name or "compare with …"


def _empty() -> None:
    """What a survey is, and how to come to one."""
    st.markdown("#### No survey is here yet")
    st.markdown(
        "A survey says what every head of a model does over thousands of texts, and which texts show it best. Make one:"
    )
    st.code(_COMMAND, language="bash", wrap_lines=True)
    word_list.popover("survey")
    listed = f"Surveys in the folder `{FOLDER}/`, where the app was started, are listed here. Or open one:"
    st.markdown("Or open one:" if app_folders.surveys() is None else listed)
    found.box()
    found.say()


def _focus(survey: Survey, name: str) -> HeadPlace:
    """The head in focus: the session's, the link's, or the one with the highest number."""
    state, default = st.session_state, best(survey, name) or survey.places[0]
    kinds_there = tuple(kind for kind, of in survey.kinds.items() if of.layers)
    focus.start_kind(kinds_there, default.kind, default.kind)
    kind = state.kind
    of = survey.kinds[kind]
    place = (default.layer, default.head) if kind == default.kind else (of.layers[0], 0)
    if state.get("layer", of.layers[0]) not in of.layers or state.get("head", 0) not in range(of.n_heads):
        state.layer, state.head = place
    focus.start_layer_and_head(of.layers, [*range(of.n_heads)], place)
    return survey.place(kind, state.layer, state.head)


def _beside(known: dict[str, Source], survey: Survey) -> tuple[Survey | None, str]:
    """The survey to compare with, or why it cannot be."""
    name = st.session_state.survey_beside
    if name == NONE:
        return None, ""
    try:
        other = _read(known, name)
        compare_surveys(survey, other, next(iter(columns(survey))))
    except (SurveyError, OptionError) as error:
        return None, str(error)
    return other, ""


def _compared(shown: Shown) -> SurveyComparison:
    assert shown.beside is not None
    return call(compare_surveys, shown.survey, shown.beside, shown.number.name)


def _sentence(shown: Shown, comparison: SurveyComparison | None) -> None:
    """What there is to see, and the way to the head that it is about."""
    if comparison is None:
        said, there = sentences.headline(shown.survey, shown.number.name), best(shown.survey, shown.number.name)
    else:
        said = sentences.changed(comparison, shown.name, st.session_state.survey_beside)
        there = None if comparison.largest is None else comparison.largest.place
    with st.container(horizontal=True, vertical_alignment="center", key="survey-sentence"):
        st.markdown(shown.heading(said), width="stretch")
        if there is not None and there != shown.head:
            place = (there.kind, there.layer, there.head)
            focus.go_to_head_button(f"Go to {head_label(there.layer, there.head)}", "survey-go", place)


def _controls(shown: Shown, numbers: list[str]) -> None:
    """By which number, and which head: the keyboard's way to what a click on a map does."""
    of = shown.survey.kinds[shown.head.kind]
    looks: dict[str, Any] = {"words": _number_words(shown.survey), "width": 340, "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="survey-controls"):
        link.selectbox("Heads by", numbers, key="survey_number", **looks)
        focus.kind_box(tuple(kind for kind, each in shown.survey.kinds.items() if each.layers))
        focus.layer_and_head_boxes(of.layers, [*range(of.n_heads)])


def _number_words(survey: Survey) -> Callable[[str], str]:
    titles = {name: f"heads by {each.title}" for name, each in columns(survey).items()}
    return titles.__getitem__


@st.fragment
def _tabs(shown: Shown) -> None:
    """A fragment, so that another tab redraws no map above."""
    if texts.is_going():
        st.rerun()
    tabs.show(tabs.found("transformer_viz.views.survey"), "survey_tab", shown)


def _read(known: dict[str, Source], name: str) -> Survey:
    return record(known[name].read(), Call(load_survey, _as_typed(known[name], name)))


def _as_typed(source: Source, name: str) -> str:
    """A survey's folder as people type it, from where the app was started or from the checkout; of what was opened the file."""
    if source.path is None:
        return name.removesuffix(" (opened)")
    folder, surveys = source.path.parent, app_folders.surveys()
    for root in (*([] if surveys is None else [surveys.absolute().parent]), app_folders.ROOT):
        if folder.is_relative_to(root):
            return folder.relative_to(root).as_posix()
    # Where others look on, a place of this machine is not told.
    return name if server_settings.is_shared() else str(folder)
