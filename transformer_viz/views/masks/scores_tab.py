"""One head's way from scores to weights, and one row of it in numbers."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.softmax import FILL_WORDS, FILLS, PRECISIONS, Fill, Precision, Softmax, empty_row, head_softmax
from transformer_viz.figures.figure_data import PlainFigure, plain
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.readers.modules.wrapping import ModuleModel
from transformer_viz.terms import REASON_WORDS, Kind, kind_words, row_labels
from transformer_viz.text_display import display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, style, viewer
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.masks.picture import PAGE
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import display_options, focus, link

TITLE, ORDER = later("Scores to weights"), 1


@dataclass(frozen=True)
class View:
    """The view of one head's scores that a link can say; numbers count from 0."""

    kind: Kind
    layer: int
    head: int
    row: int

    @classmethod
    def read(cls, setup: Setup, trace: Trace) -> "View":
        """From the session, the link or by default, each brought into the range of this run."""
        focus.start_one_head(trace)
        state = st.session_state
        names = _row_words(trace, state.kind)
        # At first the row that looks at anything: padding before a prompt does not.
        sound = setup.sound().forced()[setup.sentence].attentions[state.kind]
        first = int((sound.reasons == 0).any(-1).reshape(-1, len(sound.queries)).any(0).argmax())
        row = link.option(
            "row", dict(enumerate(names)), first, fallback=len(names) - 1, said=lambda at: _said_row(trace, state.kind)[at]
        )
        return cls(state.kind, state.layer, state.head, row)


def show(setup: Setup) -> None:
    """Draws the controls, three maps, the row, and what became of it if all of it were masked."""
    trace = setup.forced()[setup.sentence]
    view = View.read(setup, trace)
    kind, layer, head, row = view.kind, view.layer, view.head, view.row
    attention = trace.attentions[kind]
    with st.container(horizontal=True, vertical_alignment="center"):
        quiet: Any = {"label_visibility": "collapsed"}
        fill = link.segmented_control(say("Fill"), FILLS, key="fill", **quiet)
        precision = link.segmented_control(say("Precision"), PRECISIONS, key="precision", **quiet)
        st.markdown(say("{fill_words}, in {precision}", fill_words=say(FILL_WORDS[fill]), precision=precision))
    if attention.scores is None:
        st.info(say("This model does not give the scores of its {kind}.", kind=kind_words(kind)), icon=":material/info:")
        return
    if not setup.is_changed and not _is_softmax(trace, kind, layer, head):
        st.warning(say("The weights of this run are not the softmax of these scores alone: this model does more."))
    _maps(trace, view, fill, precision)
    computed = call(head_softmax, trace, map_address(kind, layer, head), fill, precision)
    numbers, fates = st.columns([3, 2])
    with numbers:
        _row(attention, layer, head, row, computed)
    with fates:
        _fates(setup, attention.head_scores(layer, head)[row])
    maps = Call(figures.softmax_maps, trace, map_address(kind, layer, head), computed, row, style=style.figure_style())
    code.show(maps, Call("print({}.weights[{}])", computed, row))


def _fates(setup: Setup, scores: np.ndarray) -> None:
    """Says what became of a row of scores (key,) that is masked wholly, by each fill and in each precision."""
    if np.isnan(scores).any():
        st.caption(say("What is masked in this row has no score that is known: this model's own code hides it otherwise."))
        return
    st.caption(say("What this row would become if all of it were masked:"))
    found = [(fill, precision, empty_row(scores, fill, precision)) for fill in FILLS for precision in PRECISIONS]
    st.dataframe(pd.DataFrame(found, columns=[say("masked scores become"), say("precision"), say("the row")]), hide_index=True)
    own = say("This app: −∞, and masked weights 0 afterwards, in every precision.")
    if isinstance(setup.model, ModuleModel):
        own = say("This model: what its own code does, which is not known here.")
    elif setup.model.task is None:
        own = say(
            "This model: −3.4·10³⁸ is added to what is masked, so such a row would look at everything alike; here it is zeros."
        )
    st.caption(say("{own} In float16 −10⁹ is −∞.", own=own))


def _row_words(trace: Trace, kind: Kind) -> list[str]:
    names = row_labels(trace.attentions[kind].queries, None if kind == "encoder" else trace.output_tokens)
    return [f"row {name}" for name in names]


def _said_row(trace: Trace, kind: Kind) -> list[str]:
    return [say("row {name}", name=name.removeprefix("row ")) for name in _row_words(trace, kind)]


def _maps(trace: Trace, view: View, fill: Fill, precision: Precision) -> None:
    """The three maps of the head in focus; of a kind whose scores are not known there are none."""
    looks, words = style.figure_style(), say("Scores before the mask, after it, and weights after the softmax.")
    kinds, digest = {}, hashlib.sha256(repr((fill, precision)).encode())
    for kind, attention in trace.attentions.items():
        of_heads = {"numbers": list(attention.layers), "heads": attention.n_heads, "rows": _said_row(trace, kind)}
        kinds[kind] = {
            "title": kind_words(kind),
            "words": say("{words} The table below has one row in numbers.", words=words),
            **of_heads,
        }
        for numbers in (attention.scores, attention.reasons):
            digest.update(b"" if numbers is None else numbers.tobytes())

    def figure(kind: Kind, layer: int, head: int) -> PlainFigure:
        at = map_address(kind, layer, head)
        return plain(figures.softmax_maps)(trace, at, head_softmax(trace, at, fill, precision), 0, style=looks)

    n_bytes = sum(attention.weights.nbytes for attention in trace.attentions.values())
    run, chosen = f"scores-{digest.hexdigest()[:12]}", display_options.current()
    viewer.show_one_head(kinds, figure, vars(view), run, chosen, page=PAGE, n_bytes=n_bytes)


def _is_softmax(trace: Trace, kind: Kind, layer: int, head: int) -> bool:
    """Tells whether the scores give what the run has, where a row may look at anything."""
    rows = ~trace.attentions[kind].head_mask(layer, head).all(-1)
    found, weights = head_softmax(trace, map_address(kind, layer, head)).weights, trace.attentions[kind].head(layer, head)
    return bool(np.allclose(found[rows], weights[rows], atol=1e-3))


def _row(attention: Attention, layer: int, head: int, row: int, computed: Softmax) -> None:
    """Draws one row in numbers."""
    reasons, total = attention.head_reasons(layer, head)[row], float(computed.weights[row].sum())
    sum_words = say("are not numbers") if np.isnan(total) else say("add up to {total:.4f}", total=total)
    st.caption(say("Row {row} in numbers; the weights {sum_words}.", row=row + 1, sum_words=sum_words))
    frame = pd.DataFrame(
        {
            say("key"): range(1, len(reasons) + 1),
            say("token"): [display_token(token) for token in attention.keys],
            say("score"): [rounded_words(value, 4) for value in attention.head_scores(layer, head)[row]],
            say("mask"): [say(REASON_WORDS[int(code)]) for code in reasons],
            say("after the mask"): [rounded_words(value, 4) for value in computed.filled[row]],
            say("weight"): computed.weights[row],
        }
    )
    bars = st.column_config.ProgressColumn(say("weight"), min_value=0.0, max_value=1.0, format="%.4f")
    st.dataframe(frame, hide_index=True, column_config={say("weight"): bars})
