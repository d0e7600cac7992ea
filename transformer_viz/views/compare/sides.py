"""The controls of the two sides of Compare: text, model, decoding and edits. A's text and model are those of other pages."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from transformer_viz import checkpoints
from transformer_viz import edits as plain_edits
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import enumerated, later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.text_display import shorten
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import bar, opened
from transformer_viz.views.components.decoding import NUMBERS, STRATEGIES
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link

A_RUN, FINISHED = "", "finished"
"""The values of boxes where no file and no snapshot is chosen: an empty box would hold None."""
_MOST_OF_EDITS = 4_000
Strategy = Literal["greedy", "beam", "sample", "forced"]
_OWN = ("file", "snapshot", "strategy", "beam", "temperature", "seed", "edits")
_MOST_EDITS_SHOWN = 18
"""Characters on the button; all of them are in the box behind it."""
_OTHER_WORDS = {"France": later("Spain"), "small": "large"}
"""The words that, on the other side, replace those of the texts that models without a task begin with."""


@dataclass(frozen=True)
class Keys:
    """The keys of what a side was asked: the names of its widgets, of the session's values and of the link's keys."""

    name: str
    other: str
    text: str
    checkpoint: str
    prefix: str

    def of(self, name: str) -> str:
        """`a_snapshot`."""
        return self.prefix + name

    def strategy_words(self, name: str) -> str:
        """Says how this side writes."""
        more = {"beam": say("beam search"), "sample": say("sampled"), "forced": say("reads {other}’s output", other=self.other)}
        return more.get(name) or say(name)


A, B = Keys("A", "B", "text", "checkpoint", "a_"), Keys("B", "A", "b_text", "b_checkpoint", "b_")


@dataclass(frozen=True)
class Asked:
    """The request of one side: an opened file, or a run of a text by a model."""

    text: str
    checkpoint: str
    snapshot: int | None
    """A step of its training; None is the finished model."""
    strategy: Strategy
    beam: int
    temperature: float
    seed: int
    edits: str
    """The edits as text."""
    file: str | None

    @property
    def reads_the_other(self) -> bool:
        """Tells whether it needs the other side's output."""
        return self.file is None and self.strategy == "forced"

    def keywords(self) -> dict[str, Any]:
        """The keywords of `decode`, but for a target.

        Raises:
            OptionError: edits that are not understood.
        """
        edits = tuple(map(str, plain_edits.parse(self.edits)))
        changed: dict[str, Any] = {"edits": edits} if edits else {}
        if self.strategy == "beam":
            return {"strategy": "beam", "beam_size": self.beam, **changed}
        if self.strategy == "sample":
            return {"strategy": "sample", "temperature": self.temperature, "seed": self.seed, **changed}
        return changed


def start(keys: Keys, usable: list[str]) -> None:
    """Values of a side before its boxes are drawn; those of B are A's with one sign of the text changed."""
    state = st.session_state
    if keys is B:
        # A link leaves out A's, where it may be chosen.
        name = state[A.checkpoint]
        link.option(B.checkpoint, usable, name if name in usable else usable[0])
        if model_list.is_to_be_loaded(state[B.checkpoint], state.device):
            _model(B)  # says how far it is; A's is there by now
            st.rerun()
        if state.pop("b_text_wanted", False):
            link.reset(B.text)
        bar.start_text(B.text, B.checkpoint, _text_of_b())
    else:
        bar.start_text()
    link.option(keys.of("file"), {A_RUN: say("a run"), **{file: file for file in opened.traces()}})
    link.option(keys.of("snapshot"), (FINISHED, *_snapshots(state[keys.checkpoint])), words=_snapshot_words)
    link.option(keys.of("strategy"), STRATEGIES, words=keys.strategy_words)
    link.text(keys.of("edits"), most=_MOST_OF_EDITS)
    for name, (least, most, default) in NUMBERS.items():
        link.number(keys.of(name), least, most, default)


def asked(keys: Keys) -> Asked:
    """Reads what stands in the boxes."""
    state = st.session_state
    values = {name: state[keys.of(name)] for name in _OWN}
    values["file"] = values["file"] or None
    values["snapshot"] = None if values["snapshot"] == FINISHED else values["snapshot"]
    if not _writes(_model(keys)):
        values["strategy"] = "greedy"
    return Asked(state[keys.text], state[keys.checkpoint], **values)


def show(keys: Keys) -> None:
    """Draws the boxes of a side; those that mean nothing to what is chosen are left out and keep what they hold."""
    state, name = st.session_state, keys.name
    quiet: dict[str, Any] = {"label_visibility": "collapsed", "width": 150}
    files, model = list(opened.traces()), _model(keys)
    with st.container(horizontal=True, vertical_alignment="center", key=f"side-{name}"):
        st.markdown(f"**{name}**", width="content")
        if files:
            link.selectbox(say("{name}: run or file", name=name), key=keys.of("file"), **quiet)
        if state[keys.of("file")]:
            return
        bar.text_box(say("{name}: source text", name=name), keys.text, model, _text_of_b() if keys is B else None)
        bar.model_box(say("{name}: checkpoint", name=name), keys.checkpoint, quiet["width"])
        steps, edits = _snapshots(state[keys.checkpoint]), state[keys.of("edits")]
        # What is chosen behind the button, as `A: finished, greedy`.
        words = [_snapshot_words(state[keys.of("snapshot")])] if steps else []
        words += [keys.strategy_words(state[keys.of("strategy")])] if _writes(model) else []
        words += [literal(shorten(edits, _MOST_EDITS_SHOWN))] if edits else []
        how = enumerated(words) or say("no edits")
        with st.popover(say("{name}: {value}", name=name, value=how), key=f"how-{name}"):
            if steps:
                link.selectbox(say("{name}: step of training", name=name), key=keys.of("snapshot"))
            if _writes(model):
                strategy = link.selectbox(say("{name}: decoding", name=name), key=keys.of("strategy"))
                if strategy == "beam":
                    link.number_input(say("{name}: beam size", name=name), *NUMBERS["beam"], key=keys.of("beam"))
                elif strategy == "sample":
                    hot: Any = {"step": 0.1, "key": keys.of("temperature"), "icon": ":material/thermostat:"}
                    link.number_input(say("{name}: temperature", name=name), *NUMBERS["temperature"], **hot)
                    seed: Any = {"key": keys.of("seed"), "icon": ":material/casino:"}
                    link.number_input(say("{name}: seed", name=name), *NUMBERS["seed"], **seed)
            edited: Any = {"key": keys.of("edits"), "most": _MOST_OF_EDITS, "placeholder": say("edits, like cross:off")}
            link.text_input(say("{name}: edits", name=name), **edited)


def put(sides: Mapping[Keys, Mapping[str, Any]]) -> None:
    """Sets sides: of each `text`, `checkpoint` and whatever of its own; the rest as at first."""
    values, defaults = dict[str, Any](), list[str]()
    for keys, side in sides.items():
        values |= {keys.text: side["text"], keys.checkpoint: side["checkpoint"]}
        values[f"{keys.text}_checkpoint"] = side["checkpoint"]
        values |= {keys.of(name): side[name] for name in _OWN if name in side}
        defaults += [keys.of(name) for name in _OWN if name not in side]
    link.set_boxes(values, defaults)


def swap() -> None:
    """A becomes B and B becomes A."""
    of_a, of_b = ((keys.text, keys.checkpoint, *map(keys.of, _OWN), f"{keys.text}_checkpoint") for keys in (A, B))
    now = {key: st.session_state.get(key) for key in (*of_a, *of_b)}
    link.set_boxes({one: now[other] for one, other in zip((*of_a, *of_b), (*of_b, *of_a), strict=True)})


def _snapshots(name: str) -> list[int]:
    """Steps of training of which a checkpoint kept the weights."""
    try:
        return list(checkpoints.snapshots(checkpoints.find_name(name)))
    except TransformerVizError:
        return []


def _neighbour(text: str, model: LoadedModel) -> str:
    """A text that differs in one sign where the task can read that, otherwise its first other example; without a task another
    word, or all but the last."""
    task = model.task
    if task is None:
        other = next((text.replace(*pair) for pair in _OTHER_WORDS.items() if pair[0] in text), None)
        return other or text.rpartition(" ")[0] or text
    try:
        tokens = task.read(text)
    except TransformerVizError:
        return bar.default_text(model)
    digits = [i for i, sign in enumerate(text) if sign in "0123456789"]
    middle = len(text) // 2
    for i in (*digits, middle):
        sign = text[i]
        other = {"9": "0", "z": "a", "Z": "A"}.get(sign, chr(ord(sign) + 1))
        changed = text[:i] + other + text[i + 1 :]
        try:
            if sign.isascii() and other.isalnum() and task.read(changed) != tokens and task.answer(task.read(changed)):
                return changed
        except TransformerVizError:
            continue
    return next((example.text for example in task.examples() if example.text != text), text)


def _text_of_b() -> str | None:
    """The text of B that a link leaves out: A's with one sign changed; None where B's model cannot be loaded."""
    model = _model(B)
    return None if model is None else _neighbour(st.session_state[A.text], model)


def _model(keys: Keys) -> LoadedModel | None:
    """Loads the model of a side; None where it cannot be loaded, of which the side says why."""
    with contextlib.suppress(TransformerVizError):
        return model_list.load_any(st.session_state[keys.checkpoint], st.session_state.device)
    return None


def _writes(model: LoadedModel | None) -> bool:
    """Tells whether a model has something to decode, as far as it is known."""
    return model is None or model.network.kind.writes


def _snapshot_words(step: int | str) -> str:
    return say("step {step:,}", step=step) if isinstance(step, int) else step
