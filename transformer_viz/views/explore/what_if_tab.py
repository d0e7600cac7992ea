"""The tab What if: the run again with another token at a step, another beginning, banned tokens, or a whole target."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.comparison.compare import compare
from transformer_viz.errors import TraceTooLarge, TransformerVizError
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import probability_words, rounded_words
from transformer_viz.sentences.compare_words import change_words
from transformer_viz.terms import kind_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.steps import Step
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options, focus, link, words
from transformer_viz.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TITLE, ORDER, NEEDS_MODEL = later("What if"), 1, True
TELLS = later("Other runs")

HOWS = (later("another token"), later("a beginning of your own"), later("banned tokens"), later("a target of your own"))
TOKEN, BEGINNING, BAN, TARGET = HOWS
_LONGEST_SOUGHT, _LONGEST_CHANGE = 64, 512
MOST_FOUND = 50
Token = str | int
"""By its label where labels are unique, else by its id."""


def show(shown: Shown) -> None:
    """Draws the controls, and both runs side by side."""
    trace, model, state = shown.tokens, shown.model, st.session_state
    assert model is not None
    # Another run forgets a forced beginning, which was its own; an id means something else to another model.
    run = trace.source if model.tokenizer.has_unique_labels else (trace.source, model.name)
    if state.setdefault("what_if_of", run) != run:
        state.what_if_of, state.what_if_prefix = run, ""
    vocabulary = Vocabulary(model)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = link.segmented_control(say("What if it had …"), HOWS, key="what_if_how")
        link.hidden("what_if_prefix", partial(_is_possible, vocabulary), say("tokens of this model, as JSON"))
        if how == TOKEN:
            _token_controls(trace, model, vocabulary)
        elif how == BEGINNING:
            words = say("what the output begins with")
            link.text_input(say("begins with"), key="what_if_begin", most=_LONGEST_CHANGE, width=300, placeholder=words)
        elif how == BAN:
            tokens = vocabulary.tokens
            if vocabulary.is_searched:
                likely = vocabulary.written(trace)
                found = vocabulary.found(sought) if (sought := _sought(vocabulary)) else likely
                tokens = list(dict.fromkeys([*link.chosen("what_if_ban", vocabulary.tokens, vocabulary.label), *found]))
            link.multiselect(say("never write"), tokens, key="what_if_ban", width=360, words=vocabulary.label)
        else:
            words = say("any target text")
            link.text_input(say("to read"), key="what_if_target", most=_LONGEST_CHANGE, width=360, placeholder=words)
        nothing = {f"what_if_{name}": "" for name in ("prefix", "token", "begin", "target")}
        undo: Any = {"on_click": state.update, "kwargs": {**nothing, "what_if_ban": []}}
        st.button(say("Undo"), icon=":material/undo:", key="what-if-undo", **undo)
    try:
        other = _run(trace, model)
    except TraceTooLarge:
        st.warning(say("The changed run would need more memory than the page allows. Shorten it."), icon=":material/memory:")
        return
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    if other is None:
        code.show(trace, key="code_of_tab")
        return
    comparison = compare(trace, other)
    texts = [f"**{of_run(run.text)}**{display_options.answer_of(run)}" for run in (trace, other)]
    where = (
        say("They are the same.")
        if comparison.parted is None
        else say("They diverge at step {parted}.", parted=comparison.parted + 1)
    )
    totals = [sum(step.log_probability for step in run.steps[run.n_given :]) for run in (trace, other)]
    st.markdown(
        say(
            "As it was, and as the pictures above show it: {texts}, log p = {totals}. Changed: {texts2}, log "
            "p = {totals2}. {where}",
            texts=texts[0],
            totals=rounded_words(totals[0], 4),
            texts2=texts[1],
            totals2=rounded_words(totals[1], 4),
            where=where,
        )
    )
    if comparison.largest is not None:
        words = say("Largest change of a weight where both have a cell: {largest}.", largest=change_words(comparison.largest))
        focus.say_largest(comparison, words, "what-if-largest")
    place = map_address(state.kind, state.layer, state.head)
    words, key = (
        say("{kind} of the focus head in both runs, and the signed difference", kind=kind_words(state.kind)),
        "what-if-chart",
    )
    figure = chart.draw(figures.before_and_after, trace, other, place, key=key, words=words, file="what-if")
    st.download_button(
        say("The other run as a file"), to_bytes(other), "what-if.npz", "application/octet-stream", icon=":material/download:"
    )
    parted = Call(compare, trace, other)
    code.show(Call("print({}.text, {}.text, {}.parted)", trace, other, parted), figure, key="code_of_tab")


def is_for(model: "LoadedModel") -> bool:
    """Tells whether this tab is for a model: one that writes."""
    return model.network.kind.writes


def _is_possible(vocabulary: "Vocabulary", word: str) -> bool:
    """Tells whether a link may have this forced beginning: tokens of this model, as JSON."""
    tokens = _tokens(word)
    return tokens is not None and all(token in vocabulary.tokens for token in tokens)


def _tokens(word: str) -> list[Token] | None:
    """`["a", "b"]`, or ids; None for what is no list of them."""
    try:
        tokens = json.loads(word or "[]")
    except ValueError:
        return None
    return tokens if isinstance(tokens, list) and all(type(token) in (str, int) for token in tokens) else None


def _token_controls(trace: Trace, model: "LoadedModel", vocabulary: "Vocabulary") -> None:
    """Draws a step of the changed run, and what it writes there instead of what it would have written."""
    state, changed = st.session_state, trace
    # The next token is changed in the changed run, once there is one.
    with suppress(TransformerVizError):
        changed = _run(trace, model, waits=False) or trace
    n, least = len(changed.steps), changed.n_given + 1
    if state.get("what_if_step", 0) > n:
        state.what_if_step = n
    if "what_if_step" not in state and "what_if_step" not in link.address():
        state.what_if_step = max(least, min(words.token_step(changed) + 1, n))
    at = link.number_input(say("at step"), least, n, least, key="what_if_step", width=120) - 1
    step = changed.steps[at]
    # Where both have written the same so far, the run as it was says what is replaced; further on what was most probable.
    is_known = at < len(trace.steps) and trace.output_tokens[:at] == changed.output_tokens[:at]
    is_forced = at - changed.n_given < len(_tokens(state.what_if_prefix) or ())
    probabilities, now = vocabulary.candidates(step), vocabulary.own(step)
    before = vocabulary.own(trace.steps[at]) if is_known else next(iter(probabilities), now) if is_forced else now
    options = ["", *vocabulary.others(step, before, _sought(vocabulary))]
    state.what_if_token = "" if now == before else now
    if state.what_if_token not in options:
        options.append(state.what_if_token)
    written = vocabulary.label(before)

    def label(token: Token) -> str:
        if token == "":
            return say("{written}, as it was", written=written)
        chance = f" ({probability_words(probabilities[token])})" if token in probabilities else ""
        return f"{vocabulary.label(token)}{chance}"

    st.selectbox(
        say("instead of {written}", written=literal(written)),
        options,
        key="what_if_token",
        width=230,
        format_func=label,
        on_change=_force,
        args=(trace, changed, vocabulary),
        help=say("Type to search. The model's candidates come first."),
    )


def _sought(vocabulary: "Vocabulary") -> str:
    """Draws a box that searches a large vocabulary. Returns what was typed; "" where the other box has all tokens."""
    if not vocabulary.is_searched:
        return ""
    words = say("all {count:,} tokens", count=len(vocabulary.tokens))
    return st.text_input(say("find in the vocabulary"), key="what_if_find", width=190, placeholder=words)[:_LONGEST_SOUGHT]


def _force(trace: Trace, changed: Trace, vocabulary: "Vocabulary") -> None:
    """Keeps what the changed run wrote before the step, and forces the chosen token behind it."""
    state = st.session_state
    n_before = state.what_if_step - 1 - trace.n_given
    kept, token = vocabulary.written(changed)[:n_before], state.what_if_token
    is_as_it_was = token == "" and kept == vocabulary.written(trace)[:n_before]
    state.what_if_prefix = "" if is_as_it_was else json.dumps(kept if token == "" else [*kept, token])


def _run(trace: Trace, model: "LoadedModel", *, waits: bool = True) -> Trace | None:
    """The other run, or None where nothing is asked for.

    Raises:
        BusyError: `waits` is False, and it is not there yet and takes a while.
    """
    # Here, because a file has the other tabs where there is no model.
    from transformer_viz.views.cache import runs

    state = st.session_state
    how, change = state.what_if_how, dict[str, Any]()
    if how == TOKEN:
        change = {"prefix": tuple(_tokens(state.what_if_prefix) or ())}
    elif how == BEGINNING and (typed := state.what_if_begin):
        change = {"prefix": tuple(model.task.read_target(typed) if model.task else model.tokenizer.encode_target(typed))}
    elif how == BAN:
        change = {"ban": tuple(state.what_if_ban)}
    elif how == TARGET:
        change = {"target": state.what_if_target}
    if not any(change.values()):
        return None
    return runs.what_if(model, trace, waits=waits, **change)


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that a model can write, to choose from."""

    model: "LoadedModel"

    @property
    def is_searched(self) -> bool:
        """Tells whether there are too many tokens for a box, so that one searches them and gets a few."""
        return self.model.task is None

    @property
    def tokens(self) -> Sequence[Token]:
        """The tokens of the model."""
        if self.model.task is not None:
            return self.model.task.target_vocabulary.symbols
        return range(self.model.network.sizes.vocabulary)

    def label(self, token: Token) -> str:
        """The label that a person reads; where several ids may have one label, with the id."""
        if isinstance(token, str):
            return display_token(token)
        return say(
            "{target_labels} (id {token})",
            target_labels=display_token(self.model.tokenizer.target_labels([token])[0]),
            token=token,
        )

    def written(self, trace: Trace) -> list[Token]:
        """The tokens that a run has written after what was given."""
        tokens = trace.output_tokens if trace.output_ids is None else trace.output_ids
        return [*tokens[trace.n_given :]]

    def own(self, step: Step) -> Token:
        """The token that a step wrote."""
        return step.token if step.token_id is None else step.token_id

    def candidates(self, step: Step) -> dict[Token, float]:
        """The tokens that a step could have written, most probable first, with their probabilities."""
        tokens: Iterable[Token] = step.candidate_ids or (token for token, _ in step.candidates)
        return {token: p for token, (_, p) in zip(tokens, step.candidates, strict=True)}

    def others(self, step: Step, before: Token, typed: str = "") -> list[Token]:
        """The tokens that may be written instead of `before`: the candidates first, then all others; or what `typed` finds."""
        never = {before, *SPECIAL_TOKENS, *(self.model.network.end_ids if self.is_searched else ())}
        if typed:
            return [token for token in self.found(typed) if token not in never]
        candidates = self.candidates(step)
        rest = () if self.is_searched else (token for token in self.tokens if token not in candidates)
        return [token for token in (*candidates, *rest) if token not in never]

    def found(self, typed: str) -> list[int]:
        """At most `MOST_FOUND` tokens whose labels have what was typed, where a space may be typed as it is drawn: first those
        that are it, then those that begin with it."""
        sought, found = typed.replace("␣", " ").casefold(), []
        for number, label in enumerate(map(str.casefold, self.model.tokenizer.target_labels(range(len(self.tokens))))):
            if sought in label:
                bare = label.removeprefix(" ")
                is_it, begins = sought in (label, bare), label.startswith(sought) or bare.startswith(sought)
                found.append((0 if is_it else 1 if begins else 2, len(label), number))
        return [number for *_, number in sorted(found)[:MOST_FOUND]]
