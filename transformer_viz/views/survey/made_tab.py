"""The tab How it was made: what was surveyed, what could not be read, files, and the command for one's own."""

import shlex

import pandas as pd
import streamlit as st

from transformer_viz import export, language
from transformer_viz.figures.theme import Style
from transformer_viz.language import later, say
from transformer_viz.surveys import sentences
from transformer_viz.text_display import display_text
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import made_file, style
from transformer_viz.views.components.markdown import sentence
from transformer_viz.views.survey.found import FOLDER
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = later("How it was made"), 4


def show(shown: Shown) -> None:
    """Draws a sentence, the texts that failed, files, and the command."""
    survey, state = shown.survey, st.session_state
    st.markdown(sentence(sentences.survey_words(survey)))
    if failed := survey.texts.failed:
        n, n_failed = len(failed), survey.texts.n_failed
        st.markdown(
            say("Texts that could not be read, the first {n} of {all:,}:", n=n, all=n_failed)
            if n < n_failed
            else say("Texts that could not be read, {n} in all:", n=n)
        )
        rows = [(each.line, display_text(each.text), each.why) for each in failed]
        st.dataframe(pd.DataFrame(rows, columns=[say("line"), say("text"), say("why")]), hide_index=True)
    # A table of all numbers, and the report, which is made when it is asked for.
    with st.container(horizontal=True, vertical_alignment="center"):
        csv = survey.to_frame().to_csv(index=False).encode()
        st.download_button(say("CSV of all numbers"), csv, "survey.csv", "text/csv", key="survey-csv", on_click="ignore")
        asked, help_ = ("survey_report", *shown.identity), say("One page, without any network")
        if st.button(say("Make the report"), key="survey-report", icon=":material/description:", help=help_):
            state.survey_report = asked
        if state.get("survey_report") == asked:
            looks, of = Style(style.theme()), ("survey report", language.current(), *shown.identity, style.theme())
            name, make = "report.html", lambda: export.survey_html(survey, style=looks).encode()
            made_file.download(name, "text/html", "survey-report-file", of, make)
    st.markdown(say("One of your own, over the texts of a file, one a line:"))
    name = survey.model.name
    option = "--model" if name in model_list.models() else "--checkpoint"
    # The name is the file's, which anybody may have written.
    command = f"python -m transformer_viz survey {option} {shlex.quote(name)} --texts my-texts.txt -o {FOLDER}/mine"
    st.code(command, language="bash", wrap_lines=True)
    st.caption(
        say(
            "Surveys in the folder `{folder}/`, where the app was started, are listed by themselves; open any other above.",
            folder=FOLDER,
        )
    )
