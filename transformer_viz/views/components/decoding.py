"""The controls of decoding: greedy, beam search, sampling, or reading a given target."""

from typing import Any

import streamlit as st

from transformer_viz.language import later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.views import glossary
from transformer_viz.views.state import levels, link

STRATEGIES = (later("greedy"), later("beam"), later("sample"), later("forced"))
WIDEST, HOTTEST, LARGEST_SEED = 64, 100.0, 2**31 - 1
NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    "beam": (1, WIDEST, 5),
    "temperature": (0.0, HOTTEST, 1.0),
    "seed": (0, LARGEST_SEED, 0),
}
"""Least, most, default."""
_ALPHA = (-10.0, 10.0, 0.6)
_OF_A_PROMPT, _LENGTHS = 20, (5, 10, 20, 50, 100, 200)
"""The most tokens that a search writes; 0 is what suits the model."""
_LONGEST_TARGET = 512
_help = glossary.sentence


def start(model: LoadedModel) -> None:
    """The values, before their boxes are drawn; those of another strategy than the chosen one keep what they hold."""
    link.option("decoding", STRATEGIES, said=say)
    for name, limits in NUMBERS.items():
        link.number(name, *limits)
    link.number("alpha", *_ALPHA)
    auto, others = later("{n} tokens (auto)"), later("{n} tokens")
    templates = {0: (auto, _longest(model)), **{n: (others, n) for n in _LENGTHS}}
    words = {length: template.format(n=n) for length, (template, n) in templates.items()}
    link.option("search_length", words, said=lambda length: say(templates[length][0], n=templates[length][1]))
    link.text("forced_target", most=_LONGEST_TARGET)


def popover(model: LoadedModel) -> None:
    """A button that says what is chosen, and behind it the boxes; nothing for a model that writes nothing."""
    if not model.network.kind.writes:
        return
    state, chosen = st.session_state, strategy(model)
    how = say(chosen)
    if chosen == "beam":
        how = say("beam {width}", width=state.beam)
    elif chosen == "sample":
        how = say("sample, seed {seed}", seed=state.seed)
    words = say("Decoding: {how}", how=how)
    if not levels.is_all() and chosen == STRATEGIES[0]:
        return
    with st.popover(words, key="decoding-popover"):
        chosen = link.segmented_control(say("Decoding"), key="decoding", help=_help("Decoding"))
        if chosen == "beam":
            link.number_input(say("Beam size"), *NUMBERS["beam"], key="beam", help=_help("Beam size"))
            link.number_input(say("Length penalty α"), *_ALPHA, step=0.1, key="alpha", help=_help("Length penalty α"))
            link.selectbox(say("At most"), key="search_length")
        elif chosen == "sample":
            link.number_input(
                say("Temperature"), *NUMBERS["temperature"], step=0.1, key="temperature", help=_help("Temperature")
            )
            link.number_input(say("Seed"), *NUMBERS["seed"], key="seed", help=_help("Seed"))
        elif chosen == "forced":
            words = say("the right answer, or what it writes greedily")
            looks: dict[str, Any] = {"most": _LONGEST_TARGET, "placeholder": words, "help": _help("Teacher forcing")}
            link.text_input(say("The decoder reads"), key="forced_target", **looks)


def strategy(model: LoadedModel) -> str:
    """The one that is chosen; greedy for a model that writes nothing."""
    return st.session_state.decoding if model.network.kind.writes else "greedy"


def keywords(model: LoadedModel) -> dict[str, Any]:
    """The choices as keywords of `decode`, but for a target where none was typed."""
    state, chosen = st.session_state, strategy(model)
    if chosen == "beam":
        return {"strategy": "beam", "beam_size": state.beam, "length_penalty": state.alpha, **length(model)}
    if chosen == "sample":
        return {"strategy": "sample", "temperature": state.temperature, "seed": state.seed}
    return {"target": state.forced_target} if chosen == "forced" and state.forced_target else {}


def length(model: LoadedModel) -> dict[str, int]:
    """The most tokens that a search and the greedy run beside it write, where that is not for the model to say."""
    most = st.session_state.search_length or (_longest(model) if model.network.kind.has_prompt else None)
    return {} if most is None else {"max_length": most}


def _longest(model: LoadedModel) -> int:
    """A decoder alone seldom ends by itself, and of a long tree nothing can be read; others have their own limit."""
    return min(_OF_A_PROMPT, model.default_max_length) if model.network.kind.has_prompt else model.default_max_length
