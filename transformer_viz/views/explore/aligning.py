"""The aligning head in the tab Heads: a box that chooses it, and a button that finds it."""

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from transformer_viz.analysis.alignment_head import AlignmentHead
from transformer_viz.analysis.word_links import directions
from transformer_viz.attribution.result.alignment_heads import ROW_WORDS, ROWS, AlignmentHeads
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import later, listed, say, sentences
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import head_label
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.components import table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import aligner, link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

_WAYS = {"task": later("the task's own alignment"), "effect": later("its effect on this output")}


def show(shown: Shown) -> None:
    """Draws the box of the aligning head; for a run of a model also the button that finds it, and what that found."""
    trace, model, state = shown.trace, shown.model if shown.is_decoded else None, st.session_state
    if len(aligner.options(trace)) == 1:
        return
    request = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        aligner.box(help=glossary.sentence("Aligning head"), width=230)
        if model is not None:
            has_task = model.task is not None and any(key is not None for key in shown.tokens.alignment)
            ways = (*(("task",) if has_task else directions()), "effect")
            # The task; or the pairs of the languages that the model's name says.
            named = (way for way in directions() if way in model.name or way.replace("-", "") in model.name)
            words = {way: _WAYS.get(way, f"{way}: pairs aligned by hand") for way in ways}
            first = "task" if has_task else next(named, "effect")
            by = link.selectbox(
                say("Found by"),
                words,
                key="aligned_by",
                default=first,
                width=310,
                said=lambda way: say(_WAYS[way]) if way in _WAYS else say("{way}: pairs aligned by hand", way=way),
            )
            asked = (model.name, str(model.device), by, shown.tokens.source if by == "effect" else "")
            ask: Any = {"on_click": state.update, "kwargs": {"aligned_asked": asked, "aligned_taken": None}}
            st.button(say("Which head aligns?"), icon=":material/conversion_path:", key="aligner-find", **ask)
            if state.get("aligned_asked") == asked:
                request = (model, by, asked)
    if request is not None:
        _show_found(shown.tokens, *request)


def _show_found(trace: Trace, model: "LoadedModel", by: str, request: tuple[str, ...]) -> None:
    """Draws which heads align best. The best one is chosen once: somebody may choose another one then."""
    # Here, because a file is looked at where there is no torch.
    from transformer_viz.views.cache import runs

    state = st.session_state
    try:
        result = runs.alignment_heads(model, by, trace.source)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    if state.aligned_taken != request:
        # Its box stands on the page already.
        state.aligned_taken, state.aligner_wanted = request, AlignmentHead(result.best().layer, result.best().head)
        st.rerun()
    st.markdown(literal(summary(result)))
    columns = {
        "head": [str(head) for head in result.heads],
        "error rate, writing": [head.errors["writes"] for head in result.heads],
        "error rate, reading": [head.errors["reads"] for head in result.heads],
        "links right": [head.precision for head in result.heads],
        "links found": [head.recall for head in result.heads],
        "agreement": [head.agreement for head in result.heads],
        "change of log p": [None if head.effect is None else head.effect.value for head in result.heads],
    }
    known = dict(pd.DataFrame(columns).dropna(axis="columns", how="all"))
    table.show(known, say("The heads that align, the best first"), places=3)
    st.code(f"alignment_heads={result.alignment_heads}", language="python")


def summary(found: AlignmentHeads) -> str:
    """Says which heads align best, and how well."""
    n, counted = len(found.heads), (count_words(found.n_words, found.unit), count_words(found.n_texts, "text"))
    over = say("{words} of {texts}", words=counted[0], texts=counted[1])
    if not found.averages:
        how = say("The right alignment is not known; agreement says how often another head links the same words")
        return say(
            "Without {best} this output loses most, of {n} heads. {how}, over {over}.",
            best=found.best(),
            n=n,
            how=how,
            over=over,
        )
    rows = (
        say(
            "{row} in the row that {row_words} ({errors:.3f})",
            row=found.best(row),
            row_words=say(ROW_WORDS[row]),
            errors=found.best(row).errors[row],
        )
        for row in ROWS
    )
    words = [
        say(
            "Of {n} heads these align best over {over}, by their alignment error rate: {heads}.",
            n=n,
            over=over,
            heads=listed(rows),
        )
    ]
    average = found.averages[0]
    if len(average.heads) > 1:
        words.append(
            say(
                "In the row that {does}, the mean of {heads} has {error:.3f}.",
                does=say(ROW_WORDS[average.row]),
                heads=listed(head_label(*head) for head in average.heads),
                error=average.error,
            )
        )
    return sentences(words)
