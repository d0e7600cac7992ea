"""The tab This head: its roles, its distribution over all texts, and the texts that show it."""

import streamlit as st

from transformer_viz.export.survey_page import LISTS
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.surveys import survey_distribution
from transformer_viz.language import known, later, say
from transformer_viz.language import sentences as join_sentences
from transformer_viz.numbers_in_words import count_words, interval_words, number_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import best
from transformer_viz.views.components import chart
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.survey import texts
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = later("This head"), 0


def show(shown: Shown) -> None:
    """Draws a sentence, the histogram, and three lists of texts."""
    head, survey, number, examples = shown.head, shown.survey, shown.number, shown.survey.texts_of(shown.head)
    row, name = survey.at(head, number.name), sentences.head_words(head)
    facts = [say("{head} is {role}.", head=f"{name[0].upper()}{name[1:]}", role=sentences.role_words(survey, head))]
    # Of the best head the page's own sentence has said it.
    if row is not None and number.role is None and head != best(survey, number.name):
        title = sentences.statistic_title(number)
        fields = {"number": f"{title[0].upper()}{title[1:]}", "mean": number_words(row.mean)}
        fields["interval"] = interval_words(row.interval)
        facts.append(
            say("{number}: {mean} on average (95 %: {interval}).", **fields)
            if row.uniform is None
            else say(
                "{number}: {mean} on average (95 %: {interval}); uniform attention {uniform}.",
                uniform=number_words(row.uniform),
                **fields,
            )
        )
    st.markdown(shown.heading(join_sentences(facts)))
    # The chosen number, or where it is no statistic of this head the one that its texts are listed by.
    names = [name for name in (number.name, examples and examples.by) if name in {of.name for of in survey.statistics}]
    row = next((row for name in names if (row := survey.at(head, str(name))) is not None), None)
    if row is not None:
        of, other = survey.statistic(row.statistic), None
        # The statistic of the other survey, where its bins are the same.
        if shown.beside is not None and of in shown.beside.statistics:
            other = shown.beside.at(head, row.statistic)
        words = say(
            "{texts} by {number} of {head}: mean {mean}",
            texts=count_words(row.n, "text"),
            number=sentences.statistic_title(of),
            head=sentences.head_words(head),
            mean=number_words(row.mean),
        )
        chart.draw(plain(survey_distribution), survey, str(head), of.name, other=other, key="survey-distribution", words=words)
    if examples is None:
        st.caption(say("This number is not known for this head in any text, so no text stands out."))
        return
    st.markdown(
        say(
            "Texts by **{title}**. A click opens one in Explore, at this head.",
            title=literal(sentences.statistic_title(survey.statistic(examples.by))),
        )
    )
    if not texts.is_there(survey.model.name):
        st.caption(
            say(
                "{name} is not among the models of this machine, so its texts cannot be opened.",
                name=literal(survey.model.name),
            )
        )
    lists = {
        known(title).capitalize(): [texts.Line(number_words(each.value), each.text) for each in getattr(examples, name)]
        for name, title in LISTS.items()
    }
    texts.show(lists, shown, "survey-texts")
