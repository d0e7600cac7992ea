"""Search: a beam search as a tree whose branches own their attention, beside greedy decoding."""

import math
from collections.abc import Callable
from typing import Any, get_args

import streamlit as st

from transformer_viz.analysis.comparison import compare
from transformer_viz.decoding.beam import Stop
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import times_words
from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.cache import limits, model_list, runs
from transformer_viz.views.compare.sides import WIDEST
from transformer_viz.views.components import bar, navigation, stepper, style
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore import tables
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.search import hypotheses
from transformer_viz.views.state import aligner, display_options, focus, link, words

TITLE, ICON, ORDER = "Search", ":material/account_tree:", 2

EXAMPLE, EXAMPLE_CHECKPOINT = "thisqaipa", "reverse-small"
"""Greedy writes `apiaqashit`, beam search the right answer. Shorter than what this checkpoint was trained on."""
_WORDS = (
    "**Greedy decoding** takes the most probable token at each step, and cannot take it back. **Beam search** keeps several "
    "beginnings alive, and may find a text that is more probable as a whole."
)
_OF_A_PROMPT, _AUTO_LENGTH = 20, 0
_LENGTHS = (_AUTO_LENGTH, 5, 10, 20, 50, 100, 200)
"""The most tokens that a search writes; the first is what suits the model."""
_ALPHA = (-10.0, 10.0, 0.6)
_STOPS: tuple[Stop, ...] = get_args(Stop)
_STOP_WORDS: dict[Stop, str] = {"bound": "nothing better is possible", "first": "enough are finished", "never": "at the limit"}


def show() -> None:
    """The page."""
    _open_on_the_example()
    chosen = bar.show("search", with_models=True, with_colours=True, opening=_opening())
    model = chosen.model
    if model is None:
        return
    if not model.model.kind.writes:
        _say_that_nothing_is_written(model)
        return
    if display_options.is_hidden("The branches of a search"):
        return
    st.markdown(_WORDS)
    _controls(model)
    found = bar.made(chosen, model, lambda: _searched(chosen, model))
    if found is not None:
        _show_search(chosen, model, *found)


def _say_that_nothing_is_written(model: LoadedModel) -> None:
    st.info(
        f"{literal(model.name)} is an encoder alone: it reads a text and writes nothing, so there is nothing to search. "
        "Its attention and its masks are on these pages:",
        icon=":material/info:",
    )
    navigation.links(("Explore", "Masks"))


def _searched(chosen: bar.Bar, model: LoadedModel) -> tuple[Trace, Trace]:
    """What greedy decoding writes, and the search."""
    with st.spinner("Searching …"):
        greedy = runs.run(model, chosen.device, chosen.text, tuple(_length(model).items()))
        return greedy, runs.run(model, chosen.device, chosen.text, tuple(_how(model).items()))


def _how(model: LoadedModel) -> dict[str, Any]:
    """The search as keywords of `decode`."""
    state = st.session_state
    beam = {"strategy": "beam", "beam_size": state.beam, "length_penalty": state.alpha, "stop": state.stop}
    return {**beam, **({"refill": True} if state.refill else {}), **_length(model)}


def _length(model: LoadedModel) -> dict[str, int]:
    """The most tokens that are written as a keyword of `decode`, where that is not for the model to say."""
    most = st.session_state.search_length or _suits(model)
    return {} if most is None else {"max_length": most}


def _suits(model: LoadedModel) -> int | None:
    """A decoder alone seldom ends by itself, and of a long tree nothing can be read; others have their own limit."""
    return min(_OF_A_PROMPT, model.default_max_length) if model.model.kind.has_prompt else None


def _show_search(chosen: bar.Bar, model: LoadedModel, greedy: Trace, trace: Trace) -> None:
    search = trace.search
    assert search is not None
    node = hypotheses.start(search, (model_list.identity(model), trace.source, *_how(model).values()))
    by_tokens = call(Trace.at_node, trace, node)
    shown = words.shown(by_tokens)
    focus.start(shown, model)
    aligner.start(by_tokens, model)
    st.markdown(_comparison(greedy, trace, search))
    tree = hypotheses.show(trace, node, greedy=greedy)
    limits.caption(trace)
    hypotheses.say(by_tokens, search, node)
    stepper.show_with_code(shown, chosen, tree)
    tables.show(Shown(shown, style.theme(), model, chosen.device, by_tokens, trace), "search_tab")


def _open_on_the_example() -> None:
    """A first visit without a link or a text of one's own opens where greedy and beam really differ."""
    state = st.session_state
    if "search_opened" in state:
        return
    state.search_opened = True
    is_own = state.get("text", bar.DEFAULT_TEXT) != bar.DEFAULT_TEXT or link.is_touched()
    is_usual = state.get("checkpoint", bar.DEFAULT_CHECKPOINT) == bar.DEFAULT_CHECKPOINT
    if not is_own and is_usual and (opening := _opening()) is not None:
        state.text, state.checkpoint, state.text_checkpoint = opening.text, opening.checkpoint, opening.checkpoint


def _opening() -> bar.Opening | None:
    """What a first visit opens with, where its checkpoint is there."""
    names = {entry.name for entry in model_list.entries() if entry.error is None}
    return bar.Opening(EXAMPLE_CHECKPOINT, EXAMPLE) if EXAMPLE_CHECKPOINT in names else None


def _controls(model: LoadedModel) -> None:
    suits = _suits(model) or model.default_max_length
    link.number("alpha", *_ALPHA)
    link.option("stop", _STOPS, words=_STOP_WORDS.__getitem__)
    link.option("search_length", _LENGTHS, words=_length_words(suits))
    link.is_on("refill")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        link.number_input("Beam size", 1, WIDEST, 5, key="beam", width=150, help=glossary.sentence("Beam size"))
        with st.popover(_how_words(suits), key="search-how"):
            _stopping(suits)


def _stopping(suits: int) -> None:
    """What else a search may be asked: behind a button that says what is chosen, since boxes are what takes a page that opens
    longest."""
    link.number_input("Length penalty α", *_ALPHA, step=0.1, key="alpha", help=glossary.sentence("Length penalty α"))
    words = glossary.sentence("Stop when")
    link.selectbox("Stop when", _STOPS, key="stop", words=_STOP_WORDS.__getitem__, help=words)
    link.selectbox("At most", _LENGTHS, key="search_length", words=_length_words(suits))
    link.toggle("As transformers does it", key="refill", help=glossary.sentence("As transformers does it"))


def _length_words(suits: int) -> Callable[[int], str]:
    return lambda n: f"{n} tokens" if n != _AUTO_LENGTH else f"{suits} tokens (auto)"


def _how_words(suits: int) -> str:
    """`α 0.6, until nothing better is possible, 32 tokens`."""
    state = st.session_state
    when = {"bound": "until nothing better is possible", "first": "until enough are finished", "never": "to the limit"}
    words = f"α {state.alpha:g}, {when[state.stop]}, {state.search_length or suits} tokens"
    return f"{words}, as transformers does it" if state.refill else words


def _comparison(greedy: Trace, trace: Trace, search: Search) -> str:
    """Greedy beside beam, in words."""
    best = search.nodes[search.best[0]]
    by_greedy = math.fsum(step.log_probability for step in greedy.steps[greedy.n_given :])
    parted = compare(greedy, trace).parted
    texts = [f"**{of_run(run.text)}**{display_options.answer_of(run)}" for run in (greedy, trace)]
    if parted is None:
        return f"Greedy decoding and beam {search.settings['beam_size']} both write {texts[0]}, log p = {best.total:.4g}."
    gain = best.total - by_greedy
    more = times_words(gain) if gain > 0 else "less probable, but better by its score"
    size = search.settings["beam_size"]
    return (
        f"Greedy decoding writes {texts[0]}, log p = {by_greedy:.4g}. Beam {size} finds {texts[1]}, "
        f"log p = {best.total:.4g}: {more}. They diverge at step {parted + 1}."
    )
