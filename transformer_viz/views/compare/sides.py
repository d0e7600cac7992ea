"""The two sides of Compare: what each is asked to be. A's text and checkpoint are those of the other pages."""

import contextlib
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from transformer_viz import checkpoints
from transformer_viz import edits as plain_edits
from transformer_viz.errors import TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.views.cache import runs
from transformer_viz.views.components import bar, prompt_keys
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.open import opened
from transformer_viz.views.state import link
from transformer_viz.views.state.controls import (
    A_RUN,
    FINISHED,
    HOTTEST,
    LARGEST_SEED,
    MOST_OF_EDITS,
    SAME,
    STRATEGIES,
    WIDEST,
)

Strategy = Literal["greedy", "beam", "sample", "forced"]
_OWN = ("file", "snapshot", "strategy", "beam", "temperature", "seed", "edits")
_MOST_EDITS_SHOWN = 18
"""Characters on the button; all of them are in the box behind it."""
_OTHER_WORDS = {"France": "Spain", "small": "large"}
"""Of the texts that models without a task begin with, and what stands there on the other side."""


@dataclass(frozen=True)
class Keys:
    """Where a side keeps what it was asked: the names of its widgets, of the session's values and of the link's keys."""

    name: str
    other: str
    text: str
    checkpoint: str
    prefix: str

    def of(self, name: str) -> str:
        """`a_snapshot`."""
        return self.prefix + name

    @property
    def all(self) -> tuple[str, ...]:
        """Every one of them, in the same order on both sides."""
        return (self.text, self.checkpoint, *map(self.of, _OWN))


A, B = Keys("A", "B", "text", "checkpoint", "a_"), Keys("B", "A", "b_text", "b_checkpoint", "b_")


@dataclass(frozen=True)
class Asked:
    """What one side is to be: an opened file, or a run of a text by a model."""

    side: str
    text: str
    checkpoint: str
    snapshot: int | None
    """A step of its training; None is the finished model."""
    strategy: Strategy
    beam: int
    temperature: float
    seed: int
    edits: str
    """As text."""
    file: str | None

    @property
    def reads_the_other(self) -> bool:
        """Whether it needs the other side's output."""
        return self.file is None and self.strategy == "forced"

    def keywords(self) -> dict[str, Any]:
        """Of `decode`, but for a target.

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
    """First values of a side, from the link or by default; what cannot be is said and brought into range."""
    if keys is B:
        _start_b(usable)
    link.start(keys.of("file"), (A_RUN, *opened.traces()))
    link.start(keys.of("snapshot"), (FINISHED, *snapshots(st.session_state[keys.checkpoint])))
    # Always said: their defaults depend on the other side.
    link.leave_out(keys.text)
    link.leave_out(keys.checkpoint)


def asked(keys: Keys) -> Asked:
    """What stands in the boxes."""
    state = st.session_state
    values = {name: state[keys.of(name)] for name in _OWN}
    values["file"] = values["file"] or None
    values["snapshot"] = None if values["snapshot"] == FINISHED else values["snapshot"]
    model = _model(keys)
    if model is not None and not model.model.sizes.writes:
        values["strategy"] = "greedy"
    return Asked(keys.name, state[keys.text], state[keys.checkpoint], **values)


def show(keys: Keys, usable: list[str]) -> None:
    """The boxes of a side; those that mean nothing to what is chosen are left out and keep what they hold."""
    state = st.session_state
    quiet: dict[str, Any] = {"label_visibility": "collapsed"}
    files, model = list(opened.traces()), _model(keys)
    with st.container(horizontal=True, vertical_alignment="center", key=f"side-{keys.name}"):
        st.markdown(f"**{keys.name}**", width="content")
        if files:
            options = [A_RUN, *files]
            st.selectbox(f"{keys.name}: run or file", options, key=keys.of("file"), format_func=_file_words, width=150, **quiet)
        if state[keys.of("file")]:
            return
        _text(keys, model)
        st.selectbox(f"{keys.name}: checkpoint", usable, key=keys.checkpoint, width=150, **quiet)
        with st.popover(_how_words(keys, model), key=f"how-{keys.name}"):
            _how(keys, model)


def _how(keys: Keys, model: LoadedModel | None) -> None:
    """Which of its weights, how they decode, and what is edited: behind a button that says what is chosen, so that a page that
    opens does not mount three boxes a side for it."""
    if steps := snapshots(st.session_state[keys.checkpoint]):
        words = f"{keys.name}: step of training"
        st.selectbox(words, [FINISHED, *steps], key=keys.of("snapshot"), format_func=_snapshot_words)
    if model is None or model.model.sizes.writes:
        _decoding(keys)
    name, places = f"{keys.name}: edits", "edits, like cross:off"
    st.text_input(name, key=keys.of("edits"), max_chars=MOST_OF_EDITS, placeholder=places)


def _how_words(keys: Keys, model: LoadedModel | None) -> str:
    """`A: finished, greedy`, and the edits where there are any."""
    state = st.session_state
    edits, words = state[keys.of("edits")], []
    if snapshots(state[keys.checkpoint]):
        words.append(_snapshot_words(state[keys.of("snapshot")]))
    if model is None or model.model.sizes.writes:
        words.append(_STRATEGY_WORDS[state[keys.of("strategy")]].format(other=keys.other))
    if edits:
        words.append(literal(edits if len(edits) <= _MOST_EDITS_SHOWN else f"{edits[: _MOST_EDITS_SHOWN - 1]}…"))
    return f"{keys.name}: {', '.join(words) or 'no edits'}"


def _text(keys: Keys, model: LoadedModel | None) -> None:
    """Of several lines where the model has no task."""
    words = f"{keys.name}: source text"
    if model is not None and model.task is None:
        hint = "Type, then press Enter; Shift and Enter begin a new line"
        st.text_area(words, key=keys.text, height="content", placeholder=hint, label_visibility="collapsed")
        prompt_keys.listen(keys.name)
        return
    st.text_input(words, key=keys.text, placeholder="Type, then press Enter", label_visibility="collapsed")


def _decoding(keys: Keys) -> None:
    st.selectbox(
        f"{keys.name}: decoding",
        STRATEGIES,
        key=keys.of("strategy"),
        format_func=lambda name: _STRATEGY_WORDS[name].format(other=keys.other),
    )
    strategy = st.session_state[keys.of("strategy")]
    if strategy == "beam":
        st.number_input(f"{keys.name}: beam size", 1, WIDEST, key=keys.of("beam"))
    if strategy == "sample":
        name, key, icon = f"{keys.name}: temperature", keys.of("temperature"), ":material/thermostat:"
        st.number_input(name, 0.0, HOTTEST, step=0.1, key=key, icon=icon)
        name, key, icon = f"{keys.name}: seed", keys.of("seed"), ":material/casino:"
        st.number_input(name, 0, LARGEST_SEED, key=key, icon=icon)


def long_texts() -> dict[str, str]:
    """What may be too long for a link, by what it is called."""
    state = st.session_state
    sides = [keys for keys in (A, B) if not state.get(keys.of("file"))]
    texts = {f"{keys.name}’s text": state.get(keys.text, "") for keys in sides}
    return texts | {f"{keys.name}’s edits": state.get(keys.of("edits"), "") for keys in sides}


def put(keys: Keys, values: dict[str, Any]) -> None:
    """Sets a side: `text`, `checkpoint` and whatever of its own; the rest as at first."""
    state = st.session_state
    state[keys.text], state[keys.checkpoint] = values["text"], values["checkpoint"]
    state[f"{keys.text}_checkpoint"] = values["checkpoint"]
    for name in _OWN:
        state.pop(keys.of(name), None)
        if name in values:
            state[keys.of(name)] = values[name]


def swap() -> None:
    """A becomes B and B becomes A, with their places among layers and heads."""
    state = st.session_state
    for first, second in zip((*A.all, "text_checkpoint"), (*B.all, "b_text_checkpoint"), strict=True):
        state[first], state[second] = state.get(second), state.get(first)
    for first, second in (("layer", "b_layer"), ("head", "b_head")):
        if state.get(second, SAME) != SAME:
            state[first], state[second] = state[second], state[first]


def snapshots(name: str) -> list[int]:
    """Steps of training of which a checkpoint kept the weights."""
    try:
        return list(checkpoints.snapshots(checkpoints.find_name(name)))
    except TransformerVizError:
        return []


def neighbour(text: str, model: LoadedModel) -> str:
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


_STRATEGY_WORDS: dict[str, str] = {
    "greedy": "greedy",
    "beam": "beam search",
    "sample": "sampled",
    "forced": "reads {other}’s output",
}


def _start_b(usable: list[str]) -> None:
    """B's checkpoint and text: the link's, or those of A with one sign changed."""
    state = st.session_state
    link.start(B.checkpoint, usable, state[A.checkpoint])
    if runs.is_to_be_loaded(state[B.checkpoint], state.device):
        _model(B)  # says how far it is; A's is there by now
        st.rerun()
    is_first = B.text not in state and not link.is_waiting(B.text)
    bar.start_text(B.text, B.checkpoint)
    if is_first:
        with contextlib.suppress(TransformerVizError):  # its side says why
            state[B.text] = neighbour(state[A.text], runs.load_any(state[B.checkpoint], state.device))


def _model(keys: Keys) -> LoadedModel | None:
    """None where it cannot be loaded, of which the side says why."""
    with contextlib.suppress(TransformerVizError):
        return runs.load_any(st.session_state[keys.checkpoint], st.session_state.device)
    return None


def _file_words(name: str) -> str:
    return name or "a run"


def _snapshot_words(step: int | str) -> str:
    return f"step {step:,}" if isinstance(step, int) else step
