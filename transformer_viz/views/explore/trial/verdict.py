"""The question *Does it point at the cause?*: every map of the run compared with occlusion, by word and by position."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.verdict import FLOOR_WORDS, LEAST, MAP_WORDS, Verdicts, left_out_words
from transformer_viz.terms import COMBINED, Head, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, table
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options


def show(shown: Shown) -> None:
    """A button; then what was found of the head in focus, and the table of all maps."""
    state, model, trace = st.session_state, shown.model, shown.tokens
    assert model is not None
    if not asked.has_causes():
        return
    st.markdown(
        "A token is removed; its cause is how much less probable the written token becomes. *By word* it is replaced by "
        "the unknown token, *by position* it is hidden. A map points at the cause if its largest weight is at the token "
        "that matters most."
    )
    if why := asked.no_word(model):
        st.caption(literal(why))
    if not asked.is_asked(asked.VERDICT, shown, "Judge this run"):
        return
    found = {mode: runs.verdict(model, trace, state.kind, mode) for mode in asked.modes(model)}
    st.markdown(f"**{literal(asked.sentence(shown))}**")
    if display_options.current().is_large or not any(each.n_judged for each in found.values()):
        return
    _table(found, trace)
    st.caption(literal(_caption(found)))
    name, said = asked.name_of(state.layer, state.head), "print({0}.at({1}), {0}.n_judged, {0}.n_left_out)"
    table = call(Verdicts.to_frame, next(iter(found.values())))
    code.show(*(Call(said, each, name) for each in found.values()), table, key="code_of_tab")


def _caption(found: Mapping[str, Verdicts]) -> str:
    judged = "; ".join(f"by {mode}, {each.n_judged} are judged and {left_out_words(each)}" for mode, each in found.items())
    missing = "".join(f" {METHODS[name].title}: {why}" for name, why in next(iter(found.values())).missing.items())
    return (
        f"Judged are steps in which a token matters by {LEAST} nats or more, among tokens that are content: "
        f"{judged}. {MAP_WORDS}. ρ is Spearman's rank correlation; {FLOOR_WORDS}. "
        f"A single run has no interval: its steps depend on each other.{missing}"
    )


def _table(found: Mapping[str, Verdicts], trace: Trace) -> None:
    """One row a map, in any order that somebody asks for; a row that is chosen becomes the focus, if its map is above."""
    state = st.session_state
    places = _places(trace, next(iter(found.values())).kind)
    frames = {mode: each.to_frame() for mode, each in found.items()}
    names = list(next(iter(frames.values()))["map"])
    rows = [places.get(_parts(name)[1]) for name in names]
    columns: dict[str, list[Any]] = {"map": list(map(_title, names))}
    for mode, frame in frames.items():
        columns[f"at the cause, {mode}"] = list(frame["top"])
        columns[f"ρ, {mode}"] = list(frame["rho"])

    def go(row: int) -> None:
        if (place := rows[row]) is not None:
            state.layer, state.head = place
            state.verdict_went = True

    here = asked.name_of(state.layer, state.head)
    row = names.index(here) if here in names else None
    shares = [f"at the cause, {mode}" for mode in frames]
    table.choose(columns, "Every map beside the cause", "verdict_table", row, go, percents=shares)
    if state.pop("verdict_went", False):
        st.rerun()


def _parts(name: str) -> tuple[str, str]:
    """A measure's name, or none, and which map of it: `value_weighted L2 H3`, `L2 mean`, `rollout`."""
    first, _, rest = name.partition(" ")
    return (first, rest) if first in METHODS else ("", name)


def _title(name: str) -> str:
    method, rest = _parts(name)
    return f"{METHODS[method].title} {rest}".strip() if method else name


def _places(trace: Trace, kind: Kind) -> dict[str, tuple[int, Head]]:
    """Layer and head of each map that the boxes above can choose."""
    heads: list[Head] = [*range(trace.attentions[kind].n_heads), *COMBINED]
    return {asked.name_of(layer, head): (layer, head) for layer in trace.attentions[kind].layers for head in heads}
