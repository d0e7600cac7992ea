"""The question *Does it point at the cause?*: every map of the run compared with occlusion, by word and by position."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.verdict import FLOOR_WORDS, LEAST, MAP_WORDS, Verdicts, left_out_words
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import COMBINED, Head
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options


def show(trace: Trace, model: LoadedModel) -> None:
    """Draws a toggle and, while it is on, what was found of the head in focus, and the table of all maps."""
    state = st.session_state
    if not asked.has_causes():
        return
    st.markdown(
        "A token is removed; its cause is how much less probable the written token becomes. *By word* it is replaced by "
        "the unknown token, *by position* it is hidden. A map points at the cause if its largest weight is at the token "
        "that matters most."
    )
    modes = asked.modes(model)
    if "word" not in modes:
        st.caption(literal(f"{model.name} has no unknown token, so tokens can be removed by position only."))
    if not asked.is_asked(asked.VERDICT, trace, model, "Judge this run"):
        return
    found = {mode: runs.verdict(model, trace, state.kind, mode) for mode in modes}
    st.markdown(f"**{literal(asked.sentence(trace, model))}**")
    if display_options.current().is_large or not any(each.n_judged for each in found.values()):
        return
    _table(found, trace)
    first = next(iter(found.values()))
    judged = "; ".join(f"by {mode}, {each.n_judged} are judged and {left_out_words(each)}" for mode, each in found.items())
    missing = "".join(f" {METHODS[name].title}: {why}" for name, why in first.missing.items())
    words = (
        f"Judged are steps in which a token matters by {LEAST} nats or more, among tokens that are content: "
        f"{judged}. {MAP_WORDS}. ρ is Spearman's rank correlation; {FLOOR_WORDS}. "
        f"A single run has no interval: its steps depend on each other.{missing}"
    )
    st.caption(literal(words))
    name, said = asked.name_of(state.layer, state.head), "print({0}.at({1}), {0}.n_judged, {0}.n_left_out)"
    code.show(*(Call(said, each, name) for each in found.values()), call(Verdicts.to_frame, first), key="code_of_tab")


def _table(found: Mapping[str, Verdicts], trace: Trace) -> None:
    """Draws one row a map; choosing one makes its head the focus, if the boxes above have it."""
    state = st.session_state
    frames = {mode: each.to_frame() for mode, each in found.items()}
    names = list(next(iter(frames.values()))["map"])
    attention = trace.attentions[next(iter(found.values())).kind]
    heads: list[Head] = [*range(attention.n_heads), *COMBINED]
    places = {asked.name_of(layer, head): (layer, head) for layer in attention.layers for head in heads}
    # A measure's name may stand before the map's: `value_weighted L2 H3`.
    parts = [(method, rest) if method in METHODS else ("", name) for name in names for method, _, rest in [name.partition(" ")]]
    titles = [f"{METHODS[method].title} {rest}".strip() if method else rest for method, rest in parts]
    columns: dict[str, list[Any]] = {"map": titles}
    for mode, frame in frames.items():
        columns[f"at the cause, {mode}"] = list(frame["top"])
        columns[f"ρ, {mode}"] = list(frame["rho"])

    def go(row: int) -> None:
        if (place := places.get(parts[row][1])) is not None:
            state.layer, state.head = place
            state.verdict_went = True

    here = asked.name_of(state.layer, state.head)
    row = names.index(here) if here in names else None
    shares = [f"at the cause, {mode}" for mode in frames]
    table.choose(columns, "Every map beside the cause", "verdict_table", row, go, percents=shares)
    if state.pop("verdict_went", False):
        st.rerun()
