"""What the questions of On trial ask for, and what was found about the head in focus, in words."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.verdict import verdict_words
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import interval_words, percent_words
from transformer_viz.terms import INSTEAD, Head, head_label, layer_label
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.bar import MOST_TYPED
from transformer_viz.views.explore.by_length import SAMPLES
from transformer_viz.views.explore.trial import runs
from transformer_viz.views.explore.trial.runs import Texts
from transformer_viz.views.state import link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

VERDICT, KNOCK_OUT, CURVES, COUNTER_PROOF = "verdict", "knock_out", "curves", "counter_proof"
"""The keys of the toggles that ask the questions."""
FIRST_SAMPLES, _MOST_LINES = 50, 200


def made_of(trace: Trace, model: "LoadedModel") -> dict[str, Hashable]:
    """For each question, everything that its answer depends on: the toggle is off again when one of these changes."""
    state = st.session_state
    how, every = link.option("trial_how", INSTEAD), link.is_on("trial_every")
    name = (model.name, model.options, str(model.device))
    run = (*name, trace.source, trace.output_tokens, state.kind)
    place = (state.kind, state.layer, state.head)
    texts = (link.text("trial_texts", most=MOST_TYPED), trace.source if model.task is None else _samples())
    return {
        VERDICT: run,
        CURVES: (*run, *place),
        COUNTER_PROOF: (*run, *place),
        KNOCK_OUT: (*name, texts, how, None if every else place),
    }


def _samples() -> int:
    return link.option("trial_samples", SAMPLES, FIRST_SAMPLES)


def is_asked(name: str, trace: Trace, model: "LoadedModel", words: str) -> bool:
    """Draws the toggle of a question. Returns whether it is on."""
    return link.asking_toggle(words, key=name, of=made_of(trace, model)[name])


def has_causes() -> bool:
    """Whether the kind in focus has queries that each stand for one written token; where it has none, says so."""
    if st.session_state.kind in KINDS_WITH_CAUSES:
        return True
    words = (
        "No single step depends on one row of the encoder, which reads the whole source first. Choose another kind of "
        "attention above, or ask whether a head is needed."
    )
    st.info(words, icon=":material/info:")
    return False


def one_head() -> HeadPlace | None:
    """The head in focus; where the mean or the maximum of heads is, says that one must be chosen and returns None."""
    state = st.session_state
    if isinstance(state.head, int):
        return HeadPlace(state.kind, state.layer, state.head)
    st.info("Mean and maximum are not heads and cannot be removed. Choose a head above.", icon=":material/info:")
    return None


def name_of(layer: int, head: Head) -> str:
    """As `tv.verdict` calls the map: `L2 H3`, `L2 mean`."""
    return head_label(layer, head) if isinstance(head, int) else f"{layer_label(layer)} {head}"


def modes(model: "LoadedModel") -> tuple[str, ...]:
    """How this model's tokens can be taken away: by word only where there is an unknown token."""
    return ("word", "position") if model.tokenizer.unknown_id is not None else ("position",)


def texts_of(model: "LoadedModel") -> Texts:
    """The texts over which heads are ablated, from the boxes.

    Raises:
        OptionError: too many lines.
    """
    lines = tuple(line for line in st.session_state.trial_texts.splitlines() if line.strip())
    if len(lines) > _MOST_LINES:
        raise OptionError(f"{len(lines)} lines are too many; at most {_MOST_LINES} texts are possible here. Leave some out.")
    return Texts(lines, 0 if lines or model.task is None else _samples())


def sentence(trace: Trace, model: "LoadedModel") -> str:
    """What is known of the head in focus by now: where it points, and, apart from that, whether it is needed."""
    state, of = st.session_state, made_of(trace, model)
    name, points, need = name_of(state.layer, state.head), "", ""
    if link.asked(VERDICT, of[VERDICT]):
        verdicts = {mode: runs.verdict_found(model, trace, state.kind, mode) for mode in modes(model)}
        known = ((mode, found) for mode, found in verdicts.items() if found is not None)
        points = "; ".join(f"by {mode}, {verdict_words(found.at(name), found)}" for mode, found in known)
    if isinstance(state.head, int) and link.asked(KNOCK_OUT, of[KNOCK_OUT]):
        place = (state.kind, state.layer, state.head)
        head = None if state.trial_every else HeadPlace(*place)
        found = runs.knock_out_found(model, trace, texts_of(model), state.trial_how, head)
        if found is not None:
            effect, right = found.at(*place), round(found.exact_before.value * found.n_texts)
            if found.n_texts == 1:
                need = f"without this head the answer {'stays' if effect.exact.value else 'does not stay'}"
            elif not right:
                need = f"none of {found.n_texts} answers is right with all heads, so none can stay without this one"
            else:
                stay = f"{percent_words(effect.stays.value)} of {right} right answers stay{with_interval(effect.stays)}"
                need = f"without this head {stay}"
    if points and need:
        return f"{name}, {points}; {need}."
    if points:
        return f"{name}, {points}. Whether it is needed is a separate question."
    return f"{name}: {need}. Whether it points at the cause is a separate question." if need else ""


def with_interval(mean: Mean) -> str:
    """` (95 % interval 93 % to 100 %)`; nothing where there is none."""
    return "" if mean.ends is None else f" (95 % interval {interval_words(mean.ends, percent_words)})"
