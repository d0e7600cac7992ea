"""Draws Masks before a lesson's question is answered: its masks under a curtain, or a run whose later rows are covered."""

from dataclasses import replace

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.figures.theme import Style
from transformer_viz.language import say
from transformer_viz.terms import kind_words
from transformer_viz.text_display import display_text, display_token
from transformer_viz.trace.hidden_answer import between
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, lesson_card, pictures, screen, style
from transformer_viz.views.components.lesson_card import Covered
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import display_options, focus


def show(setup: Setup, covered: Covered, written: Trace) -> None:
    """Draws what may be seen, and nothing of what the page says of a run.

    Args:
        setup: the page's.
        covered: what may not.
        written: what the model writes by itself, with all changes.
    """
    if covered.cover.is_of_masks:
        _show_masks(setup, covered)
    else:
        seen, step = covered.cover.of(written), covered.cover.step or 0
        begun = between(written).join(map(display_token, seen.output_tokens[:step]))
        st.markdown(
            say("{source} becomes **{begun}** … {words}", source=of_run(seen.source), begun=of_run(begun), words=covered.words)
        )
        at = focus.Focus("lesson", covered.asked.spot.kind, covered.asked.spot.layer, covered.asked.spot.head, step)
        for kind, call in pictures.mosaic_calls(seen, display_options.current(), at).items():
            if kind == at.kind:
                chart.show(
                    call(),
                    lesson_card.MASKS_KEY,
                    say("All heads of the {kind}. {words}", kind=kind_words(kind), words=covered.words),
                )


def _show_masks(setup: Setup, covered: Covered) -> None:
    trace = setup.forced()[setup.sentence]
    parts = tuple(replace(part, is_covered=True) for part in mask_parts(trace))
    if screen.is_narrow():
        parts = tuple(part for part in parts if part.kind == covered.asked.spot.kind)
    page: Style = style.figure_style()
    title = f"{setup.sentence + 1}: {display_text(trace.source)}"
    figure = figures.mask_grid([parts], [title], columns=3, style=replace(page, large=True))
    chart.show(figure, lesson_card.MASKS_KEY, say("The masks of this sentence. {words}", words=covered.words))
