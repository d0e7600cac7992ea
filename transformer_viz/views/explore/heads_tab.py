"""The tab Heads: every head of the run graded and named, and the parts On trial and the aligning head."""

from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import figures, language
from transformer_viz.analysis.grading import Grades, alignment
from transformer_viz.analysis.head_names import COVERAGE, MARGIN, PLACES, THRESHOLD, WIDTHS
from transformer_viz.analysis.head_order import offered
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import head_mass
from transformer_viz.analysis.word_pooling import by_words, is_by_words
from transformer_viz.errors import TransformerVizError
from transformer_viz.figures.grades import TINTS
from transformer_viz.language import known, later, say, sentences
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.sentences.grade_sentences import grades_sentence
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import kind_words
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal, sentence
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore import aligning
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options, link

TITLE, ORDER, IN_LARGE = later("Heads"), 2, True
TELLS = later("What the heads do")
GRADES, ON_TRIAL = later("Graded"), later("On trial")

_BASELINES = {"": later("{measure}"), "uniform_": later("{measure}, uniform"), "untrained_": later("{measure}, untrained")}


def show(shown: Shown) -> None:
    """Draws one part of the tab; a projector shows a trial alone."""
    is_large = display_options.current().is_large
    # A file and another decoding than greedy are graded alone.
    parts = [GRADES, ON_TRIAL] if shown.is_decoded else [GRADES]
    part = link.option("heads_part", parts)
    if not is_large and len(parts) > 1:
        link.segmented_control(say("Heads"), parts, key="heads_part", label_visibility="collapsed")
    if part == ON_TRIAL:
        # Here, because a file has the other parts where there is no torch.
        from transformer_viz.views.explore import on_trial

        on_trial.show(shown)
    elif not is_large:
        _show_grades(shown)


def _show_grades(shown: Shown) -> None:
    """Draws the head that aligns, the tiles, what they say, the table, and the code."""
    trace, has_model = shown.trace, shown.checkpoint is not None
    aligning.show(shown)
    checkpoint, grades = shown.checkpoint, None
    if checkpoint is not None:
        # Beside those of the untrained model where it can be run. Here, because a trace from a file is graded where there is no
        # model.
        from transformer_viz.views.cache import runs

        try:
            untrained = runs.untrained(checkpoint, shown.tokens)
            grades = call(alignment, trace, call(by_words, untrained) if is_by_words(trace) else untrained)
        except TransformerVizError as error:
            st.warning(say("Without the untrained model: {error}", error=literal(str(error))), icon=":material/warning:")
    grades = call(alignment, trace) if grades is None else grades
    # No line break between a number and its sign.
    st.markdown(sentence(plain(grades_sentence(grades))))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # By the right key where there is one; of a run without it no head has a tint by it.
        first = "score" if head_mass(trace) is None else "mass"
        possible = {name for kind in trace.kinds for name in offered(trace, kind)}
        tints = {name: words for name, words in TINTS.items() if name not in MEASURES or name in possible}
        tint = link.selectbox(say("Tinted by"), tints, key="tint", default=first, width=270)
        with st.popover(say("What the names mean"), icon=":material/help:"):
            places = "\n".join(f"- **{say(name)}**: {literal(say(words))}" for name, (words, _) in PLACES.items())
            widths = "\n".join(f"- **{say(name)}**: {literal(say(words))}" for name, words in WIDTHS.items())
            named = say("A head is named after the keys that have most of its weight. Each row looks at …")
            counts = say(
                "A rule counts from a mean weight of {least:g}, at least {margin:g} above uniform attention, on at least "
                "{share} of the rows; the highest names the head. Where none counts:",
                least=THRESHOLD,
                margin=MARGIN,
                share=percent_words(COVERAGE),
            )
            st.markdown(f"{named}\n{places}")
            st.markdown(f"{counts}\n{widths}")
    words = say("All heads, tinted by {tints}; the table below has the same numbers", tints=say(TINTS[tint]))
    figure = chart.draw(figures.grades, grades, tint, key="heads-chart", words=words, file="heads")
    _table(grades, has_model=has_model)
    frame = call(Grades.to_frame, grades)
    st.download_button(say("CSV of all grades"), frame.to_csv(index=False).encode(), "grades.csv", "text/csv", key="heads-csv")
    code.show(figure, frame, key="code_of_tab")


def _table(grades: Grades, *, has_model: bool) -> None:
    """Draws one row a head, best first, layers and heads from 1; below it what its columns leave out."""
    frame, number = grades.to_frame(), st.column_config.NumberColumn
    shown: dict[str, Any] = {
        say("attention"): frame.kind.map(kind_words) if language.current() != language.ENGLISH else frame.kind,
        say("layer"): frame.layer + 1,
        say("head"): frame["head"] + 1,
        say("name"): frame.name.map(known),
        say("fit"): frame.score,
    }
    fit = say("The number by which the head was named: mean weight on the keys of the pattern")
    config: dict[str, Any] = {
        say("fit"): number(format="%.4f", help=fit),
        say("rule"): st.column_config.TextColumn(width="large"),
    }
    # Of a run without right keys some are not known of any head.
    for name, measure in ((name, measure) for name, measure in MEASURES.items() if frame[name].notna().any()):
        for prefix, more in _BASELINES.items():
            is_known = prefix == "uniform_" and measure.of_uniform is not None
            if not is_known and (has_model or prefix != "untrained_"):
                column = say(more, measure=say(measure.column))
                shown[column] = frame[prefix + name].astype(float)
                config[column] = number(format="%.4f", help=None if prefix else say(measure.help))
    st.dataframe(
        pd.DataFrame({**shown, say("rule"): frame.rule.map(known)}), hide_index=True, column_config=config, placeholder="–"
    )
    words = [say("“uniform”: attention that looks at every allowed key alike.")]
    if has_model:
        words.append(say("“untrained”: the same sizes with fresh random parameters (seed 0), over the same tokens."))
    if left_out := max((grade.n_left_out for grade in grades), default=0):
        words.append(
            say("Left out are up to {n} rows a head: padding, rows with no allowed key, or without numbers.", n=left_out)
        )
    st.caption(sentences(words))
