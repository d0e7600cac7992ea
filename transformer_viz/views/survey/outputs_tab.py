"""The tab Outputs: how right they are by length, how probable the model finds what it writes, and the worst of them."""

import streamlit as st

from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.surveys import survey_calibration, survey_lengths
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.surveys import sentences
from transformer_viz.text_display import display_text
from transformer_viz.views.components import chart, screen
from transformer_viz.views.survey import texts
from transformer_viz.views.survey.shown import Shown

TITLE, ORDER = later("Outputs"), 2


def show(shown: Shown) -> None:
    """Draws two charts side by side, each below its sentence, and the list."""
    outputs = shown.survey.outputs
    if outputs is None:
        st.info(say("This model writes nothing, so there is no output to judge."), icon=":material/info:")
        return
    left, right = screen.columns(2, "survey-outputs")
    with left:
        sentence = sentences.right(outputs)
        st.markdown(shown.heading(sentence))
        if any(point.n_known for point in outputs.by_length):
            chart.draw(
                plain(survey_lengths),
                outputs,
                key="survey-lengths",
                words=say("By length of the source. {said}", said=sentence),
            )
    with right:
        sentence = sentences.calibrated(outputs)
        st.markdown(shown.heading(sentence))
        if any(outputs.confidence.counts):
            words = say("Right tokens by their probability, and how many there are. {said}", said=sentence)
            chart.draw(plain(survey_calibration), outputs.confidence, key="survey-calibration", words=words)
    lines = []
    for worst in outputs.worst:
        output = display_text(worst.output) or say("nothing")
        wrote = say("wrote {text}", text=output)
        if worst.expected is not None:
            wrote = say("wrote {text}, expected {right}", text=output, right=display_text(worst.expected) or say("nothing"))
        lines.append(texts.Line(probability_words(worst.confidence, 1), worst.text, wrote, has_trial=True))
    by = say("the first wrong token") if outputs.n_known else say("a token on average")
    texts.show(
        {say("{outputs}, by the probability of {by}", outputs=sentences.worst_title(outputs), by=by): lines},
        shown,
        "survey-worst",
    )
