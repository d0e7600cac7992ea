"""The focus: the kind, layer, head and step that a page shows. They are in Streamlit's session under these names."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.addresses import map_address
from transformer_viz.analysis.head_order import graded_head, right_looks
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.analysis.word_pooling import has_pieces, is_by_words
from transformer_viz.comparison.compare import IN_BOTH, Comparison
from transformer_viz.export.content import View, default_step
from transformer_viz.language import later, say
from transformer_viz.terms import COMBINED, KIND_TITLES, Head, Kind, head_label, kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.state import levels, link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

UNITS = (later("tokens"), later("words"))
Pin = tuple[int | None, int | None] | tuple[()]
"""A row and a column of a map, None for the one that is not pinned; nothing is neither."""
_CHOSEN = "head_is_chosen"
"""In the session: whether somebody pressed a kind, a layer or a head."""
_PLACE = ("kind", "layer", "head")
_LENT, _TAKEN_BACK = "head_lent", "head_taken_back"
"""In the session: the head to which a page went by itself, with what was in focus before; and the one to which the next page
went back."""
_OF_WORDS, _MOST_KEPT = " by words", 16
_CELL = re.compile(r"(\d{0,9})(?:,(\d{1,9}))?", re.ASCII)
_SENTENCE_PX = 600
"""The width left beside the kinds where a window is 1280 pixels wide."""
_QUIET: dict[str, Any] = {"label_visibility": "collapsed"}


@dataclass(frozen=True)
class Focus:
    """The place in a run that is looked at; all numbers from 0."""

    run: str
    """Tells one run from another, here and in the browser."""
    kind: Kind
    layer: int
    head: Head
    step: int

    @property
    def view(self) -> View:
        """Kind, layer, head and step, for pages and programs that know their run."""
        return View(self.kind, self.layer, self.head, self.step)


def start_place(trace: Trace, model: "LoadedModel | None", *, combined: bool = True) -> None:
    """Kind, layer and head before their boxes are drawn; what this run does not have is brought back into range.

    Args:
        trace: the run.
        model: that made it, or None for a file.
        combined: the mean and the maximum of a layer's heads are possible too.
    """
    take_back()
    start_kind(trace.kinds, "cross" if "cross" in trace.kinds else trace.kinds[0])
    state, kind, name = st.session_state, st.session_state.kind, None if model is None else model.name
    default, best, graded, before = (0, 0), best_head(trace), graded_head(trace), state.get("shown_before")
    if kind == "cross":
        # What the model's own evaluation found best; without a model, this run's best.
        evaluated = model.metrics.get("best_head") if model is not None else None
        default = (evaluated["layer"], evaluated["head"]) if evaluated else best[:2] if model is None and best else default
    if kind == "cross" and best is not None and graded is not None:
        # Another model's heads do other things: where somebody else's best head was in focus, or the one at which a first
        # visitor begins, the new one's takes its place.
        places, here = (best[:2], graded), (state.get("layer"), state.get("head"))
        if before is not None and before[0] != name and here in before[1]:
            state.layer, state.head = places[before[1].index(here)]
        state.shown_before = (name, places)
    layers = trace.attentions[kind].layers
    default = (default[0] if default[0] in layers else layers[-1], default[1])
    start_head(layers, heads_of(trace, kind, combined=combined), default)


def start_kind(kinds: tuple[Kind, ...], default: Kind, fallback: Kind | None = None) -> None:
    """The kind before its box is drawn."""
    link.option("kind", {kind: KIND_TITLES[kind] for kind in kinds}, default, fallback=fallback or kinds[-1], said=kind_words)


def start_head(layers: Sequence[int], heads: Sequence[Head], default: tuple[int, Head]) -> None:
    """Layer and head before their boxes are drawn; where one of them is not there, both are those of `default`, which a link
    leaves out. Where no heads are combined, the first one takes the place of all."""
    state = st.session_state
    if state.get("head") in COMBINED and state.head not in heads:
        state.head = 0
    if state.get("layer", layers[0]) not in layers or state.get("head", 0) not in heads:
        state.layer, state.head = default
    link.option("layer", {layer: f"layer {layer + 1}" for layer in layers}, default[0], said=layer_words)
    link.option("head", {head: _head(head) for head in heads}, default[1], said=head_words)


def heads_of(trace: Trace, kind: Kind, *, combined: bool = True) -> list[Head]:
    """Lists what the box of heads offers."""
    return [*range(trace.attentions[kind].n_heads), *(COMBINED if combined else ())]


def start(trace: Trace, model: "LoadedModel | None", run: str | None = None) -> Focus:
    """Starts as `start_place` does, with the step and the pin. `run` tells this run from others where its words alone do not,
    as those of a file."""
    start_place(trace, model)
    # With the answer hidden a step is how many are revealed: at first none, and all of them after the last.
    is_hidden = st.session_state.hide_answer and trace.writes
    least, last = trace.n_given if is_hidden else 0, max(0, len(trace.rows) - 1)
    return start_run(trace, run_of(trace, run), range(least, last + 1 + is_hidden), least if is_hidden else default_step(trace))


def start_run(trace: Trace, run: str, steps: range, first: int) -> Focus:
    """The step and the pin of a run whose place is decided.

    Args:
        trace: the run.
        run: tells it from others.
        steps: those that are possible.
        first: the one that a link leaves out.
    """
    state, least, most = st.session_state, steps.start, steps.stop - 1
    state.first_step = first
    if (before := state.get("run", run)) != run:
        # Each page has a run of its own, and comes back to it.
        kept = state.setdefault("places_of_runs", {})
        kept[before] = (state.step, state.pin, state.pinned_in)
        while len(kept) > _MOST_KEPT:
            kept.pop(next(iter(kept)))
        state.step, state.pin, state.pinned_in = kept.pop(run, ("", "", (run, state.kind)))
    elif (said := state.get("step", "")).isdigit() and not least < int(said) <= most + 1:
        state.step = str(max(least, min(int(said) - 1, most)) + 1)
    state.run, state.last_step = run, max(0, len(trace.rows) - 1)
    # A row of another run, or of another kind, is another row.
    if state.setdefault("pinned_in", (run, state.kind)) != (run, state.kind):
        state.pinned_in, state.pin = (run, state.kind), ""
    state.pin_range = rows, columns = _size(trace)
    is_step = partial(_is_number, range(least + 1, most + 2))
    link.hidden("step", is_step, say("{least} to {most}", least=least + 1, most=most + 1))
    link.hidden(
        "pin",
        lambda word: bool(_cell(word, (rows, columns))),
        say("row,column up to {rows},{columns}", rows=rows, columns=columns),
    )
    return current()


def _is_number(possible: range, word: str) -> bool:
    # str.isdigit is true of superscripts and other digits that int() cannot read.
    return word.isascii() and word.isdigit() and len(word) < 10 and int(word) in possible


def run_of(trace: Trace, run: str | None = None) -> str:
    """The key that tells a run from others; a run by words is another one."""
    if not run:
        made_by = [str(trace.made_by.get(name)) for name in ("checkpoint", "device", "seconds")]
        run = hashlib.sha256("\0".join([trace.source, *made_by, *trace.output_tokens]).encode()).hexdigest()[:12]
    return f"{run}{_OF_WORDS if is_by_words(trace) else ''}"


def is_of_words(run: str) -> bool:
    """Tells whether this key is that of a run by words."""
    return run.endswith(_OF_WORDS)


def current() -> Focus:
    """The focus as it stands."""
    state = st.session_state
    return Focus(state.run, state.kind, state.layer, state.head, min(step(), state.last_step))


def step() -> int:
    """The step, from 0; where the answer is hidden, how many steps are revealed."""
    state = st.session_state
    return int(state.step) - 1 if _is_number(range(10**9), state.get("step", "")) else state.get("first_step", 0)


def set_step(number: int) -> None:
    """The step, from 0, before its box is drawn."""
    st.session_state.step = str(number + 1)


def pinned() -> Pin:
    """The cell that is pinned; numbers from 0."""
    return _cell(st.session_state.get("pin", ""), st.session_state.pin_range)


def set_pin(place: Pin) -> None:
    """Pins a row and a column, before their box is drawn."""
    st.session_state.pin = ",".join("" if each is None else str(each + 1) for each in place).removesuffix(",")


def _cell(word: str, sizes: tuple[int, int]) -> Pin:
    """`3,5`, `3` or `,5`; nothing where there is no such row and column."""
    match = _CELL.fullmatch(word)
    row, column = (int(number) - 1 if number else None for number in match.groups()) if match else (None, None)
    is_there = all(number is None or 0 <= number < n for number, n in zip((row, column), sizes, strict=True))
    return (row, column) if is_there and (row, column) != (None, None) else ()


def _size(trace: Trace) -> tuple[int, int]:
    kind = st.session_state.kind
    return len(trace.attentions[kind].queries), len(trace.attentions[kind].keys)


def start_one_head(trace: Trace) -> None:
    """Layer and head where none are combined, after `start_place`."""
    kind, default = st.session_state.kind, (link.default_of("layer"), link.default_of("head"))
    start_head(trace.attentions[kind].layers, heads_of(trace, kind, combined=False), default)


def unit_offer(trace: Trace) -> None:
    """Tokens or words, where they differ and all controls are shown, or words are chosen."""
    if (is_by_words(trace) or has_pieces(trace)) and (levels.is_all() or st.session_state.unit != UNITS[0]):
        unit_box()


def layer_and_head_boxes() -> None:
    """For which `start_head` has been called."""
    link.selectbox(say("Layer"), key="layer", width=110, **_QUIET)
    link.selectbox(say("Head"), key="head", width=130, **_QUIET)


def unit_box() -> None:
    """Tokens or words."""
    about = glossary.sentence("Tokens or words")
    link.segmented_control(say("Tokens or words"), UNITS, key="unit", said=say, help=about, **_QUIET)


def go_to_head_button(words: str, key: str, place: tuple[Kind, int, int], help_: str = "", *, is_there: bool = False) -> None:
    """Goes to the head that its words name: kind, layer and head. It cannot be pressed where one is there already."""
    looks: Any = {"icon": ":material/target:", "type": "tertiary", "disabled": is_there}
    st.button(words, key, help_ or say("Go to this head"), go_to_head, args=place, **looks)


def say_largest(comparison: Comparison, words: str, key: str) -> None:
    """Says in `words` where the largest change is, with the way there; first of all where the head in focus has no change."""
    largest, state = comparison.largest, st.session_state
    assert largest is not None
    place = (largest.kind, largest.layer, largest.head)
    if place == (state.kind, state.layer, state.head):
        st.markdown(words)
        return
    name = head_label(largest.layer, largest.head)
    if state.kind in comparison.kinds and state.layer in comparison.layers(state.kind):
        maps = comparison.one_head(map_address(state.kind, state.layer, state.head))
        if not maps.broken.any() and not (maps.difference[maps.present == IN_BOTH] != 0).any():
            words = say("**No difference in this head.** {words}", words=words)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        go_to_head_button(say("Go to {name}", name=name), key, place)


def go_to_head(kind: Kind, layer: int, head: int) -> None:
    """Moves the focus; for a callback, or before its boxes are drawn."""
    st.session_state.kind, st.session_state.layer, st.session_state.head = kind, layer, head


def lend_head(kind: Kind, layer: int, head: int) -> None:
    """Moves the focus for the page alone that is open: the next one goes back to what was in focus before, with its pin, unless
    somebody has chosen a head since."""
    state = st.session_state
    lent, before = state.get(_LENT, (None, {}))
    if lent != place():
        before = {name: state.get(name) for name in (*_PLACE, "pin", "pinned_in")}
    go_to_head(kind, layer, head)
    state[_LENT] = place(), before


def place() -> tuple[Any, ...]:
    """Returns kind, layer and head, None for what is not known yet."""
    return tuple(map(st.session_state.get, _PLACE))


def taken_back() -> tuple[Any, ...] | None:
    """Returns the kind, layer and head to which the focus went back; once."""
    return st.session_state.pop(_TAKEN_BACK, None)


def take_back() -> None:
    """Goes back from a head that was lent to another page; before `start_kind`."""
    state = st.session_state
    lent, before = state.pop(_LENT, (None, {}))
    if lent != place():
        return
    # What was pinned in another run is kept with it.
    if (before["pinned_in"] or ("",))[0] != state.get("run"):
        before = {name: before[name] for name in _PLACE}
    for name, value in before.items():
        if value is None:
            state.pop(name, None)
        else:
            state[name] = value
    state[_TAKEN_BACK] = place()


def choose(kind: Kind, layer: int, head: Head) -> None:
    """Moves the focus to what somebody pressed; for a callback. No text moves it any more then."""
    state = st.session_state
    if (kind, layer, head) != place():
        state[_CHOSEN] = True
        state.kind, state.layer, state.head = kind, layer, head


def suit(trace: Trace, model: "LoadedModel") -> None:
    """Before `start`, for a text of one's own: where nobody chose a head, and the one that suited the last text looks less
    often at what this one's letters come from than another does, that other one is gone to."""
    state = st.session_state
    if state.get(_CHOSEN):
        return
    name, places = state.get("shown_before") or (None, ())
    here, looks, graded = (state.get("layer"), state.get("head")), right_looks(trace), graded_head(trace)
    if name != model.name or here not in places or state.get("kind") != "cross" or looks is None or graded is None:
        return
    of = trace.cross.layers.index
    if looks[of(here[0]), here[1]] < looks[of(graded[0]), graded[1]]:
        go_to_head("cross", *graded)


def in_link(kind: Kind, layer: int, head: Head) -> dict[str, str]:
    """A place as a link has it."""
    return {"kind": KIND_TITLES[kind], "layer": f"layer {layer + 1}", "head": _head(head)}


def layer_words(layer: int) -> str:
    """`layer 2`."""
    return say("layer {layer}", layer=layer + 1)


def head_words(head: Head) -> str:
    """`head 3`, `mean of heads`."""
    return say("head {head}", head=head + 1) if isinstance(head, int) else say(_head(head))


def _head(head: Head) -> str:
    """The words of a head in a link."""
    return f"head {head + 1}" if isinstance(head, int) else {"mean": later("mean of heads"), "max": later("max of heads")}[head]
