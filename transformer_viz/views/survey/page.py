"""Over many texts: what every head does over a corpus, its roles, its distribution, and the texts that show it."""

import hashlib
from typing import Any

import streamlit as st

from transformer_viz import app_folders
from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.surveys import survey_difference, survey_heads
from transformer_viz.language import later, listed, say, say_count
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import SurveyComparison, best, columns, compare_surveys, kinds
from transformer_viz.surveys.result import Survey, load_survey
from transformer_viz.terms import Kind, head_label, kind_words
from transformer_viz.views.components import code, style, tabs, viewer
from transformer_viz.views.components.markdown import literal, sentence
from transformer_viz.views.components.recorded_calls import Call, call, record
from transformer_viz.views.state import display_options, focus, link
from transformer_viz.views.survey import found, texts
from transformer_viz.views.survey.found import FOLDER, Source
from transformer_viz.views.survey.shown import Shown

TITLE, ICON, ORDER = later("Over many texts"), ":material/query_stats:", 6
HAS_VIEWER = True
"""True for a page with a viewer, which writes its part of the address itself."""

NONE = ""
"""The value of *Compare with* where nothing is compared."""
_DEFAULT = "reverse"
_COMMAND = "python -m transformer_viz survey --checkpoint reverse --held-out 2000 -o surveys/mine"


def show() -> None:
    """Draws the page."""
    texts.go()
    known, state = found.surveys(), st.session_state
    if not known:
        # What a survey is, and how to come to one.
        st.markdown(say("#### No survey is here yet"))
        words = say(
            "A survey says what every head of a model does over thousands of texts, and which texts show it best. Make one:"
        )
        st.markdown(words)
        st.code(_COMMAND, language="bash", wrap_lines=True)
        display_options.glossary_popover("survey")
        listed = say(
            "Surveys in the folder `{folder}/`, where the app was started, are listed here. Or open one:", folder=FOLDER
        )
        st.markdown(say("Or open one:") if app_folders.surveys() is None else listed)
        found.box()
        found.tell()
        return
    # Which survey, and which one beside it. From another page's model one comes to its own.
    if "survey" not in state and "survey" not in link.address() and state.get("checkpoint") in known:
        state.survey = state.checkpoint
    default = _DEFAULT if _DEFAULT in known else next(iter(known))
    name = link.option("survey", list(known), default, said=str)
    other_name = link.option(
        "survey_beside",
        {NONE: later("compare with …"), **{other: other for other in known}},
        NONE,
        said=lambda other: other or say("compare with …"),
    )
    looks: dict[str, Any] = {"width": 260, "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        link.selectbox(say("Survey"), key="survey", **looks)
        link.selectbox(say("Compare with"), key="survey_beside", **looks)
        with st.popover(say("Open another"), icon=":material/folder_open:"):
            found.box()
        display_options.popover("survey")
    found.tell()
    if display_options.is_hidden(later("The heads and outputs of a survey")):
        return
    try:
        survey = _read(known, name)
    except SurveyError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    numbers = columns(survey)
    if not numbers:
        st.info(sentence(sentences.survey_words(survey)), icon=":material/info:")
        return
    titles = {statistic: f"heads by {column.title}" for statistic, column in numbers.items()}
    number = numbers[
        link.option(
            "survey_number",
            titles,
            said=lambda statistic: say("heads by {title}", title=sentences.statistic_title(numbers[statistic])),
        )
    ]
    head = _focus(survey, number.name)
    beside, comparison = None, None
    if other_name != NONE:
        try:
            beside = _read(known, other_name)
            comparison = call(compare_surveys, survey, beside, number.name)
        except (SurveyError, OptionError) as error:
            beside = None
            st.warning(sentence(str(error)), icon=":material/warning:")
    shown = Shown(known[name].identity, survey, number, head, beside)
    # What there is to see, and the way to the head that it is about.
    if comparison is None:
        headline, there = sentences.headline(survey, number.name), best(survey, number.name)
    else:
        headline = sentences.changed(comparison, name, other_name)
        there = None if comparison.largest is None else comparison.largest.place
    with st.container(horizontal=True, vertical_alignment="center", key="survey-sentence"):
        st.markdown(shown.heading(headline), width="stretch")
        if there is not None:
            # Its place is kept where one is there already: the maps below would move under a pointer that presses one.
            place = (there.kind, there.layer, there.head)
            words = say("Go to {layer}", layer=head_label(there.layer, there.head))
            focus.go_to_head_button(words, "survey-go", place, is_there=there == head)
    with st.container(horizontal=True, vertical_alignment="center", key="survey-controls"):
        link.selectbox(say("Heads by"), key="survey_number", width=340, label_visibility="collapsed")
    drawn = _maps(shown, comparison)
    tabs.show(tabs.found("transformer_viz.views.survey"), "survey_tab", shown)
    if not shown.is_large:
        code.show(*drawn or [survey])


def _focus(survey: Survey, name: str) -> HeadAddress:
    """The head in focus: the session's, the link's, or the one with the highest number."""
    state, default = st.session_state, best(survey, name) or survey.places[0]
    kinds_there = tuple(kind for kind, of in survey.kinds.items() if of.layers)
    focus.take_back()
    focus.start_kind(kinds_there, default.kind, default.kind)
    kind, of = state.kind, survey.kinds[state.kind]
    place = (default.layer, default.head) if kind == default.kind else (of.layers[0], 0)
    focus.start_head(of.layers, [*range(of.n_heads)], place)
    return survey.find(HeadAddress(kind, state.layer, state.head))


def _maps(shown: Shown, comparison: SurveyComparison | None) -> list[Call]:
    """Draws the heads by a number, each kind that has it as a map, and returns what draws these."""
    survey, number = shown.survey, shown.number
    there = kinds(survey, number.name)
    if comparison is not None:
        there = tuple(kind for kind in survey.kinds if any(comparison.of(kind)))
    what = sentences.statistic_title(number)
    what = what if comparison is None else say("difference of {title}", title=what)
    tables: dict[Kind, dict[str, Any]] = {}
    calls = []
    for kind, of_kind in survey.kinds.items():
        if not of_kind.layers:
            continue
        tables[kind] = {"title": kind_words(kind), "numbers": list(of_kind.layers), "heads": of_kind.n_heads, "figure": None}
        tables[kind]["words"] = say(
            "Every head of the {kind} by {what}. A click makes it the focus.", kind=kind_words(kind), what=what
        )
        if kind in there:
            of: Any = (survey_heads, survey, kind, number.name) if comparison is None else (survey_difference, comparison, kind)
            # What is outlined is the browser's.
            figure = plain(of[0])(*of[1:], style=style.figure_style())
            tables[kind]["figure"] = {"data": figure.data, "layout": figure.layout}
            head = (shown.head.layer, shown.head.head) if shown.head.kind == kind else None
            calls.append(Call(plain(of[0]), *of[1:], head, style=style.figure_style()))
    told = hashlib.sha256(repr(shown.identity).encode()).hexdigest()[:12]
    viewer.show_heads(tables, shown.head, f"survey-{told}", display_options.current(), page="survey")
    if not there:
        return []
    missing = [kind_words(kind) for kind in survey.kinds if kind not in there]
    without = say_count(
        "{kinds} has no such number.", "{kinds} have no such number.", len(missing), kinds=listed(missing).capitalize()
    )
    words = say("Click a head to see what it does, and on which texts. Each map has its own scale, which its bar says.")
    if comparison is not None:
        words = say(
            "Blue: more in the second survey; orange: less; hatched: within the 95 % interval, so it may be "
            "chance. All maps have one scale."
        )
        if comparison.is_same_texts:
            wide = say("Both surveyed the same texts, so the intervals are too wide rather than too narrow.")
            words = say("{sentence} {next}", sentence=words, next=wide)
    st.caption(say("{sentence} {next}", sentence=words, next=without) if missing else words)
    return calls


def _read(known: dict[str, Source], name: str) -> Survey:
    """Reads a survey. Its call has the folder as people type it, from where the app was started or from the checkout; of what
    was opened, the file."""
    source = known[name]
    typed = name.removesuffix(" (opened)")
    if source.path is not None:
        folder, surveys = source.path.parent, app_folders.surveys()
        roots = (*([] if surveys is None else [surveys.absolute().parent]), app_folders.ROOT)
        below = [folder.relative_to(root).as_posix() for root in roots if folder.is_relative_to(root)]
        # Where others look on, a place of this machine is not told.
        typed = below[0] if below else name if app_folders.is_shared() else str(folder)
    return record(source.read(), Call(load_survey, typed))
