"""The focus: which kind, layer, head and step the page shows. It lives in the session under these names."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz import glossary
from transformer_viz.analysis.heads import COMBINED, Head, n_layers_heads
from transformer_viz.analysis.sentences import best_head_words
from transformer_viz.analysis.true_key import best_head
from transformer_viz.analysis.words import has_pieces, is_by_words
from transformer_viz.export.content import View, default_step
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import deep, link
from transformer_viz.views.state.controls import BY_KEY, UNITS

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

_OF_WORDS = " by words"


@dataclass(frozen=True)
class Focus:
    """What is looked at; all numbers from 0."""

    run: str
    """Tells one run from another, here and in the browser."""
    kind: Kind
    layer: int
    head: Head
    step: int

    @property
    def view(self) -> View:
        """The same for pages and programs, which know their run."""
        return View(self.kind, self.layer, self.head, self.step)


def start_place(trace: Trace, model: "LoadedModel | None", *, combined: bool = True) -> None:
    """Kind, layer and head from the session, the link or by default; what this run does not have is brought back into range.

    Args:
        trace: the run.
        model: that made it, or None for a file.
        combined: the mean and the maximum of a layer's heads are possible too.
    """
    first = "cross" if "cross" in trace.kinds else trace.kinds[0]
    kind = link.start("kind", trace.kinds, first, fallback=trace.kinds[-1])
    link.leave_out("kind", "cross")
    layer, head = default_head(trace, model, kind)
    layers = trace.layer_numbers(kind)
    _follow_best(trace, model, kind)
    start_head(trace, kind, (layer if layer in layers else layers[-1], head), combined=combined)


def _follow_best(trace: Trace, model: "LoadedModel | None", kind: Kind) -> None:
    """Another model's heads do other things: where somebody else's best head was in focus, the new one's takes its place."""
    state, name = st.session_state, None if model is None else model.name
    best, before = best_head(trace) if kind == "cross" else None, state.get("best_before")
    if before is not None and best is not None and before[0] != name and (state.get("layer"), state.get("head")) == before[1]:
        state.layer, state.head = best[:2]
    if best is not None:
        state.best_before = (name, best[:2])


def start_head(trace: Trace, kind: Kind, default: tuple[int, Head], *, combined: bool = True) -> None:
    """Layer and head of a kind; where a run does not have one of them, both are those of `default`."""
    state, layers, (_, n_heads) = st.session_state, trace.layer_numbers(kind), n_layers_heads(trace, kind)
    heads = [*range(n_heads), *(COMBINED if combined else ())]
    if not combined and state.get("head") in COMBINED:
        state.head = 0
    if state.get("layer", layers[0]) not in layers or state.get("head", 0) not in heads:
        state.layer, state.head = default
    link.start("layer", layers, default[0])
    link.start("head", heads, default[1])


def start(trace: Trace, model: "LoadedModel | None", run: str | None = None) -> None:
    """As `start_place`, and the step. `run` tells this run from others where its words alone do not, as those of a file."""
    start_place(trace, model)
    state = st.session_state
    run = run_of(trace, run)
    # With the answer hidden a step is how many are revealed: at first none, and all of them after the last.
    is_hidden = state.hide_answer and trace.writes
    least = trace.n_given if is_hidden else 0
    first = least if is_hidden else default_step(trace)
    if state.get("run", run) != run:
        state.step = first
    last = max(0, len(trace.rows) - 1)
    link.start("step", range(least, last + 1 + is_hidden), first, fallback=max(least, min(state.get("step", first), last)))
    state.run, state.last_step = run, last
    # A row of another run, or of another kind, is another row.
    if state.setdefault("pinned_in", (run, state.kind)) != (run, state.kind):
        state.pinned_in, state.pin = (run, state.kind), ()
    link.start("pin", _size(trace), ())
    deep.start(trace)


def run_of(trace: Trace, run: str | None = None) -> str:
    """What tells a run from others; a run by words is another one."""
    return f"{run or _fingerprint(trace)}{_OF_WORDS if is_by_words(trace) else ''}"


def is_of_words(run: str) -> bool:
    """Whether this tells a run by words."""
    return run.endswith(_OF_WORDS)


def current() -> Focus:
    """The focus as it stands."""
    state = st.session_state
    return Focus(state.run, state.kind, state.layer, state.head, min(state.step, state.last_step))


def revealed() -> int:
    """How many steps are revealed where the answer is hidden."""
    return st.session_state.step


def go_to_tile(tile: dict[str, Any] | None, trace: Trace) -> None:
    """Makes a clicked tile the focus, at the step that the player has reached."""
    if not tile or tile.get("kind") not in trace.kinds:
        return
    state = st.session_state
    _, n_heads = n_layers_heads(trace, tile["kind"])
    if tile.get("layer") in trace.layer_numbers(tile["kind"]) and tile.get("head") in range(n_heads):
        state.kind, state.layer, state.head = tile["kind"], tile["layer"], tile["head"]
        go_to_step(tile.get("step"), trace)


def go_to_attention(kind: Any, layer: Any, trace: Trace) -> None:
    """Makes a kind and a layer that the browser reports the focus; what is not of this run is passed over."""
    if kind in trace.kinds and layer in trace.layer_numbers(kind):
        st.session_state.kind, st.session_state.layer = kind, layer


def go_to_step(step: Any, trace: Trace) -> None:
    """Moves to a step that the browser reports; what is no step of this run is passed over."""
    if isinstance(step, int) and step in range(len(trace.rows)):
        st.session_state.step = step


def pin(place: Any, trace: Trace) -> None:
    """Pins a row and a column that the browser reports, or lets go; what is no cell of this map is passed over."""
    if isinstance(place, list) and BY_KEY["pin"].value.holds(tuple(place), _size(trace)):
        st.session_state.pin = tuple(place)


def _size(trace: Trace) -> tuple[int, int]:
    kind = st.session_state.kind
    return len(trace.queries(kind)), len(trace.keys(kind))


def default_head(trace: Trace, model: "LoadedModel | None", kind: Kind) -> tuple[int, Head]:
    """For cross-attention the head that the model's own evaluation found best; without a model, this run's best."""
    if kind != "cross":
        return (0, 0)
    if model is None:
        found = best_head(trace)
        return found[:2] if found else (0, 0)
    best = model.metrics.get("best_head")
    return (best["layer"], best["head"]) if best else (0, 0)


def controls(
    trace: Trace,
    *,
    combined: bool = True,
    with_best: bool = True,
    with_words: bool = False,
    beside: Callable[[], None] = lambda: None,
) -> None:
    """Boxes for kind, layer and head: the keyboard's way to what a click on a tile does.

    Args:
        trace: the run.
        combined: offer the mean and the maximum of a layer's heads too.
        with_best: name the best head beside the boxes.
        with_words: offer to pool the pieces of words, where there are any.
        beside: draws what else stands in the row.
    """
    if not combined and not isinstance(st.session_state.head, int):
        st.session_state.head = 0
    layers, (_, n_heads) = trace.layer_numbers(st.session_state.kind), n_layers_heads(trace, st.session_state.kind)
    quiet: dict[str, Any] = {"label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center", key="focus-controls"):
        st.segmented_control("Attention", trace.kinds, key="kind", format_func=KIND_TITLES.__getitem__, required=True, **quiet)
        st.selectbox("Layer", layers, key="layer", format_func=lambda n: f"layer {n + 1}", width=110, **quiet)
        st.selectbox(
            "Head", [*range(n_heads), *(COMBINED if combined else ())], key="head", format_func=_head_words, width=130, **quiet
        )
        if with_words and (is_by_words(trace) or has_pieces(trace)):
            unit_box()
        if with_best and (words := best_head_words(trace)) is not None and (best := best_head(trace)) is not None:
            go_to_head_button(words, "best-head", ("cross", *best[:2]))
        beside()


def unit_box() -> None:
    """Tokens or words."""
    about = glossary.sentence("Tokens or words")
    st.segmented_control("Tokens or words", UNITS, key="unit", required=True, help=about, label_visibility="collapsed")


def go_to_head_button(words: str, key: str, place: tuple[Kind, int, int]) -> None:
    """Goes to the head that its words name: kind, layer and head. It may stand in a fragment: the whole page follows."""
    if st.button(words, key, "Go to this head", _go_to_head, args=place, icon=":material/target:", type="tertiary"):
        st.rerun()


def _go_to_head(kind: Kind, layer: int, head: int) -> None:
    st.session_state.kind, st.session_state.layer, st.session_state.head = kind, layer, head


def _head_words(head: Head) -> str:
    return f"head {head + 1}" if isinstance(head, int) else f"{head} of heads"


def _fingerprint(trace: Trace) -> str:
    made_by = trace.made_by
    words = "\0".join(
        [
            trace.source,
            str(made_by.get("checkpoint")),
            str(made_by.get("device")),
            str(made_by.get("seconds")),
            *trace.output_tokens,
        ]
    )
    return hashlib.sha256(words.encode()).hexdigest()[:12]
