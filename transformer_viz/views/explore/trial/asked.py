"""The questions of On trial, and in words what was found about the head in focus, each question's finding by itself."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.knock_out import HeadEffect, KnockOut
from transformer_viz.attribution.result.verdict import verdict_words
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import interval_words, percent_words
from transformer_viz.terms import INSTEAD, Head, head_label, layer_label
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.bar import MOST_TYPED
from transformer_viz.views.explore.by_length import SAMPLES
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import runs
from transformer_viz.views.explore.trial.runs import Texts
from transformer_viz.views.state import link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

VERDICT, KNOCK_OUT, CURVES, COUNTER_PROOF = "verdict", "knock_out", "curves", "counter_proof"
"""The keys of the toggles that ask the questions."""
_MOST_LINES, _FIRST_SAMPLES = 200, 50


def made_of(trace: Trace, model: "LoadedModel") -> dict[str, Hashable]:
    """What the answer to each question is made of."""
    state = st.session_state
    how, every = link.option("trial_how", INSTEAD), link.is_on("trial_every")
    name = (model.name, model.options, str(model.device))
    run = (*name, trace.source, trace.output_tokens, state.kind)
    place = (state.kind, state.layer, state.head)
    texts = (link.text("trial_texts", most=MOST_TYPED), trace.source if model.task is None else samples())
    return {
        VERDICT: run,
        CURVES: (*run, *place),
        COUNTER_PROOF: (*run, *place),
        KNOCK_OUT: (*name, texts, how, None if every else place),
    }


def samples() -> int:
    """How many fresh texts."""
    return link.option("trial_samples", SAMPLES, _FIRST_SAMPLES)


def samples_box() -> None:
    """Chooses how many."""
    link.selectbox("Fresh texts", SAMPLES, key="trial_samples", default=_FIRST_SAMPLES, width=130)


def is_asked(name: str, shown: Shown, words: str) -> bool:
    """Whether the answer is asked for, by a toggle."""
    assert shown.model is not None
    of = made_of(shown.tokens, shown.model)[name]
    return link.asking_toggle(words, key=name, of=of)


def has_causes() -> bool:
    """Whether steps are effects of the keys in focus; says why not."""
    if st.session_state.kind in KINDS_WITH_CAUSES:
        return True
    words = (
        "No single step depends on one row of the encoder, which reads the whole source first. Choose another kind of "
        "attention above, or ask whether a head is needed."
    )
    st.info(words, icon=":material/info:")
    return False


def one_head() -> HeadPlace | None:
    """The head in focus; says that it must be one."""
    state = st.session_state
    if isinstance(state.head, int):
        return HeadPlace(state.kind, state.layer, state.head)
    st.info("Mean and maximum are not heads and cannot be removed. Choose a head above.", icon=":material/info:")
    return None


def name_of(layer: int, head: Head) -> str:
    """As `tv.verdict` calls the map: `L2 H3`, `L2 mean`."""
    return head_label(layer, head) if isinstance(head, int) else f"{layer_label(layer)} {head}"


def modes(model: "LoadedModel") -> tuple[str, ...]:
    """How this model's tokens can be taken away."""
    return ("word", "position") if model.tokenizer.unknown_id is not None else ("position",)


def no_word(model: "LoadedModel") -> str:
    """Why there is no verdict by word; nothing where there is one."""
    if "word" in modes(model):
        return ""
    return f"{model.name} has no unknown token, so tokens can be removed by position only."


def texts_of(model: "LoadedModel") -> Texts:
    """over which texts heads are ablated.

    Raises:
        OptionError: too many lines.
    """
    state = st.session_state
    lines = tuple(line for line in state.trial_texts.splitlines() if line.strip())
    if len(lines) > _MOST_LINES:
        raise OptionError(f"{len(lines)} lines are too many; at most {_MOST_LINES} texts are possible here. Leave some out.")
    return Texts(lines, 0 if lines or model.task is None else samples())


def sentence(shown: Shown) -> str:
    """What is known of the head in focus by now: where it points, and, apart from that, whether it is needed."""
    state, model = st.session_state, shown.model
    assert model is not None
    points, need = _pointing(shown), _need(shown)
    name = name_of(state.layer, state.head)
    if points and need:
        return f"{name}, {points}; {need}."
    if points:
        return f"{name}, {points}. Whether it is needed is a separate question."
    return f"{name}: {need}. Whether it points at the cause is a separate question." if need else ""


def stays_words(effect: HeadEffect, found: KnockOut) -> str:
    """The second half: how many answers stay without the head."""
    if found.n_texts == 1:
        return f"without this head the answer {'stays' if effect.exact.value else 'does not stay'}"
    right = round(found.exact_before.value * found.n_texts)
    if not right:
        return f"none of {found.n_texts} answers is right with all heads, so none can stay without this one"
    return f"without this head {percent_words(effect.stays.value)} of {right} right answers stay{with_interval(effect.stays)}"


def with_interval(mean: Mean) -> str:
    """` (95 % interval 93 % to 100 %)`; nothing where there is none."""
    return "" if mean.ends is None else f" (95 % interval {percents(mean.ends)})"


def percents(ends: tuple[float, float]) -> str:
    """`93 % to 100 %`."""
    return interval_words(ends, percent_words)


def _pointing(shown: Shown) -> str:
    """The first half, by word and by position."""
    state, model, trace = st.session_state, shown.model, shown.tokens
    assert model is not None
    if not link.asked(VERDICT, made_of(trace, model)[VERDICT]):
        return ""
    found = {mode: runs.verdict_found(model, trace, state.kind, mode) for mode in modes(model)}
    name = name_of(state.layer, state.head)
    return "; ".join(f"by {mode}, {verdict_words(each.at(name), each)}" for mode, each in found.items() if each is not None)


def _need(shown: Shown) -> str:
    state, model, trace = st.session_state, shown.model, shown.tokens
    assert model is not None
    of = made_of(trace, model)[KNOCK_OUT]
    if not isinstance(state.head, int) or not link.asked(KNOCK_OUT, of):
        return ""
    place = HeadPlace(state.kind, state.layer, state.head)
    head = None if state.trial_every else place
    found = runs.knock_out_found(model, trace, texts_of(model), state.trial_how, head)
    return "" if found is None else stays_words(found.at(place.kind, place.layer, place.head), found)
