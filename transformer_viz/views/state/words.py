"""The switch between tokens and words, in which all maps, strips and sentences of a run are shown."""

import weakref

import streamlit as st

from transformer_viz.analysis.word_pooling import by_words, has_pieces, is_by_words, step_of_tokens, step_of_words
from transformer_viz.sentences.compare_words import aligns_differently_by_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import focus, link

_pooled: weakref.WeakKeyDictionary[Trace, Trace] = weakref.WeakKeyDictionary()
"""By words, as long as somebody holds the run by tokens."""


def shown(trace: Trace, run: str | None = None) -> Trace:
    """The run as it is shown: by words where they are chosen and are not the tokens. A step stays at its word.

    Args:
        trace: the run by tokens.
        run: as `focus.start` has it.
    """
    state = st.session_state
    link.option("unit", focus.UNITS)
    is_now, at = is_on(trace), state.get("run", "")
    if not is_now and not focus.is_of_words(at):
        return trace
    pooled = pooled_of(trace)
    tokens, words = focus.run_of(trace, run), focus.run_of(pooled, run)
    if is_now and at == tokens:
        focus.set_step(step_of_words(trace, focus.step()))
        state.run = words
    elif not is_now and at == words:
        focus.set_step(step_of_tokens(trace, focus.step()))
        state.run = tokens
    return pooled if is_now else trace


def together(*runs: Trace) -> list[Trace]:
    """Runs that are compared: all by words where that is chosen and changes something, or one is by words in its file."""
    if link.option("unit", focus.UNITS) != "words" or not is_offered(*runs):
        return list(runs)
    return [run if is_by_words(run) else pooled_of(run) for run in runs]


def is_offered(*runs: Trace) -> bool:
    """Tells whether words are something else than the tokens of these runs, or two runs align otherwise by them."""
    return any(has_pieces(run) for run in runs) or (len(runs) == 2 and aligns_differently_by_words(*runs))


def token_step(trace: Trace) -> int:
    """The player's step as one of the run by tokens."""
    step = focus.step()
    return step_of_tokens(trace, step) if is_on(trace) else step


def is_on(trace: Trace) -> bool:
    """Tells whether this run is shown by words."""
    return st.session_state.unit == "words" and has_pieces(trace)


def pooled_of(trace: Trace) -> Trace:
    """The run by words, made once."""
    if trace not in _pooled:
        _pooled[trace] = by_words(trace)
    return record(_pooled[trace], Call(by_words, trace))
