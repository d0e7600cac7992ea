"""The tab How it was made: what was surveyed, what could not be read, files, and the command for one's own."""

import shlex

import pandas as pd
import streamlit as st

from transformer_viz import export
from transformer_viz.figures.theme import Style
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.result import Survey
from transformer_viz.text_display import display_text
from transformer_viz.views.cache import model_list
from transformer_viz.views.cache.store import store
from transformer_viz.views.components.markdown import sentence
from transformer_viz.views.survey.found import FOLDER
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = "How it was made", 4


def show(shown: Shown) -> None:
    """A sentence, the texts that failed, files, the command."""
    survey = shown.survey
    st.markdown(sentence(sentences.survey_words(survey)))
    if survey.texts.failed:
        st.markdown(f"Texts that could not be read, {_which(survey)}:")
        rows = [(each.line, display_text(each.text), each.why) for each in survey.texts.failed]
        st.dataframe(pd.DataFrame(rows, columns=["line", "text", "why"]), hide_index=True)
    # A table of all numbers, and the report, which is made when it is asked for.
    with st.container(horizontal=True, vertical_alignment="center"):
        csv = shown.survey.to_frame().to_csv(index=False).encode()
        st.download_button("CSV of all numbers", csv, "survey.csv", "text/csv", key="survey-csv", on_click="ignore")
        asked = ("survey_report", *shown.identity)
        if st.button(
            "Make the report", key="survey-report", icon=":material/description:", help="One page, without any network"
        ):
            st.session_state.survey_report = asked
        if st.session_state.get("survey_report") == asked:
            with st.spinner("Making the file …"):
                key = ("survey report", *shown.identity, shown.theme)
                data = store.get_or_make(key, lambda: export.survey_html(shown.survey, style=Style(shown.theme)).encode())
            words_on = f"Download report.html ({bytes_words(len(data))})"
            st.download_button(words_on, data, "report.html", "text/html", key="survey-report-file", on_click="ignore")
    st.markdown("One of your own, over the texts of a file, one a line:")
    st.code(command(survey), language="bash", wrap_lines=True)
    st.caption(f"Surveys in the folder `{FOLDER}/`, where the app was started, are listed by themselves; open any other above.")


def command(survey: Survey) -> str:
    """What makes a survey of the same model."""
    name = survey.model.name
    option = "--model" if name in model_list.models() else "--checkpoint"
    # The name is the file's, which anybody may have written.
    return f"python -m transformer_viz survey {option} {shlex.quote(name)} --texts my-texts.txt -o {FOLDER}/mine"


def _which(survey: Survey) -> str:
    n, read = len(survey.texts.failed), survey.texts
    return f"the first {n} of {read.n_failed:,}" if n < read.n_failed else f"{n} in all"
