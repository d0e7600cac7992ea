"""The bar above every page: text, checkpoint, device, examples."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from transformer_viz import readers
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.errors import InputError, TraceTooLarge, TransformerVizError
from transformer_viz.language import later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.readers.modules.tokenizer import ListTokenizer
from transformer_viz.tracing.tokenize_batch import longest_source
from transformer_viz.views.cache import limits, model_list
from transformer_viz.views.components import decoding, lesson_card, mask_tokens, option_notes, viewer, ways
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.state import display_options, levels, link, own_text, switches
from transformer_viz.views.state.display_options import AUTO, DisplayOptions
from transformer_viz.views.state.early_end import end_page

DEFAULT_CHECKPOINT = "reverse"
DEFAULT_TEXT = "reversethis"
FILE, _FILE_WORDS = "trace file", later("a trace file …")
"""In the model's box: what is looked at is read from a file, and no model runs."""
MOST_TYPED = 10_000
"""A stranger's text is cut here; every real limit is the task's and is said in words."""
_BEGINNING, _SENTENCE = "The capital of France is", "The house is small."
"""Texts for models without a task: one to go on from, and a whole one."""

T = TypeVar("T")


@dataclass(frozen=True)
class Bar(DisplayOptions):
    """The choices in the bar."""

    text: str
    model: LoadedModel | None
    device: str
    """The chosen device: `auto` or a device."""
    is_file: bool = False
    """True where a trace file is looked at."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The model, if it is one of ours."""
        return self.model if isinstance(self.model, Checkpoint) else None


def show(
    page: str,
    *,
    with_text: bool = True,
    with_models: bool = False,
    with_files: bool = False,
    with_decoding: bool = False,
    is_own_text: bool = False,
    instead: Callable[[list[str]], None] | None = None,
) -> Bar:
    """Draws the bar, with the text of the one sentence or without. A checkpoint that cannot be loaded is said, and is None.

    Args:
        page: that has it.
        with_text: with the box for one source text.
        with_models: the page has models that are not ours too. Elsewhere one stays chosen, and the page says why it has none.
        with_files: whether a trace file may take the place of the model. Other pages have the model of before then.
        with_decoding: whether one may choose how the model writes.
        is_own_text: whether the text's box is that of the page's viewer.
        instead: draws what stands in the place of text and checkpoint, on a page that has more than one of each; it is
            given the names of those that may be chosen, and the page loads them itself.
    """
    levels.start()
    entries, others, state = model_list.entries(), model_list.models(), st.session_state
    usable = [entry.name for entry in entries if entry.error is None]
    if not usable:
        words = say("There is no usable checkpoint. Train one: python -m transformer_viz train --recipe reverse")
        st.error(words, icon=":material/error:")
        _say_damaged([*entries])
        end_page()
    listed = [name for name, entry in others.items() if entry.error is None]
    names, before = [*usable, *listed], state.get("model_before_file")
    options, before = [*names, *([FILE] if with_files else [])], before if before in names else None
    words = {name: _FILE_WORDS if name == FILE else name for name in options}
    link.option(
        "checkpoint",
        words,
        default_checkpoint(names),
        fallback=before,
        said=lambda name: say(_FILE_WORDS) if name == FILE else name,
    )
    titles = {name: devices.title(devices.resolve(name)) for name in devices.available()}
    auto = devices.resolve(AUTO).type
    link.option(
        "device",
        {AUTO: f"auto ({auto})", **titles},
        said=lambda name: say("auto ({device})", device=auto) if name == AUTO else titles[name],
    )
    row: Any = {"horizontal": True, "vertical_alignment": "center", "key": "bar"}
    if state.checkpoint == FILE:
        with st.container(**row):
            model_box(say("Checkpoint"), "checkpoint")
            display_options.popover(page)
        return Bar("", None, state.device, is_file=True, **vars(display_options.current()))
    state.model_before_file = state.checkpoint
    is_served = with_models or state.checkpoint not in listed
    if is_served and model_list.is_to_be_loaded(state.checkpoint, state.device):
        # Another model can be chosen; the page ends with how far the loading is.
        with st.container(**row):
            model_box(say("Checkpoint"), "checkpoint")
            link.selectbox(say("Device"), key="device", label_visibility="collapsed", width=150)
        if _loaded(state.checkpoint, state.device) is not None:
            st.rerun()
        end_page()
    if (chosen := _model_of(state.checkpoint)) is not None:
        switches.start(chosen)
        if with_decoding:
            decoding.start(chosen)
        chosen = _model_of(state.checkpoint)
    with st.container(**row):
        if instead is not None:
            instead([*usable, *(name for name in listed if with_models or name == state.checkpoint)])
        else:
            if with_text:
                start_text()
                if is_own_text:
                    is_long = chosen is not None and chosen.task is None
                    viewer.text_box(default_text(chosen), is_long=is_long, most=MOST_TYPED)
                else:
                    text_box(say("Source text"), "text", chosen)
                _beside_text(state.text, chosen)
            model_box(say("Checkpoint"), "checkpoint")
        if is_served and chosen is not None:
            if with_decoding:
                decoding.popover(chosen)
            switches.popover(chosen)
        display_options.popover(page, lambda: link.selectbox(say("Device"), key="device"))
    if chosen is not None:
        limits.hidden_choice(chosen)
    model = _loaded(state.checkpoint, state.device) if instead is None and is_served else None
    _say_damaged([*entries, *others.values()])
    return Bar(state.get("text", ""), model, state.device, **vars(display_options.current()))


def default_checkpoint(names: list[str]) -> str:
    """The checkpoint that a link leaves out."""
    return DEFAULT_CHECKPOINT if DEFAULT_CHECKPOINT in names else names[0]


def text_box(label: str, key: str, model: LoadedModel | None, default: str | None = None) -> None:
    """A box for a text, for which `start_text` has been called; of several lines where the model has no task. A link leaves
    out `default`."""
    looks: Any = {"key": key, "most": MOST_TYPED, "label_visibility": "collapsed"}
    default = default_text(model) if default is None else default
    if model is not None and model.task is None:
        link.text_area(label, default, height="content", placeholder=say("Type, then press Ctrl and Enter"), **looks)
    else:
        link.text_input(label, default, placeholder=say("Type, then press Enter"), **looks)


def _beside_text(text: str, model: LoadedModel | None) -> None:
    """Draws how much the model reads of what it may, as `11 of 32`, and buttons for an example or a mask token."""
    # Of a text that cannot be read an error says why.
    with suppress(TransformerVizError):
        if model is not None and model.task is not None:
            n, most = len(model.task.read(text)), model.task.max_length
            st.caption(say("{n} of {most}", n=n, most=most), width="content")
        elif model is not None:
            n, most = len(model.tokenizer.encode_source(text)), longest_source(model)
            st.caption(say("{n} of {most} tokens", n=n, most=most), width="content")
    if model is not None and model.task is None:
        mask_tokens.popover(model)
        return
    with st.popover(say("Examples"), icon=":material/lightbulb:"):
        if not isinstance(model, Checkpoint):  # said below the bar
            return
        # Callbacks, since a drawn widget's value is fixed for its run.
        put: Any = {"on_click": _put, "width": "stretch"}
        for number, example in enumerate(model.task.examples()):
            st.button(of_run(example.text), f"example-{number}", say(example.note), args=(example.text,), **put)
        st.button(say("Surprise me"), icon=":material/casino:", on_click=_surprise, args=(model,), width="stretch")
        if failures := model.metrics.get("failures"):
            words, source = say("From this checkpoint's own evaluation"), str(failures[0]["source"])
            st.button(say("One that it gets wrong"), icon=":material/report:", help=words, args=(source,), **put)


def default_text(model: LoadedModel | None) -> str:
    """The text that the box begins with, and that a link leaves out: the task's first example, or a text of the kind that the
    model reads."""
    if model is None:
        return DEFAULT_TEXT
    if model.task is not None:
        return model.task.examples()[0].text
    if model.tokenizer.mask_id is not None and not model.network.kind.writes:
        return f"{_BEGINNING} {model.tokenizer.source_labels([model.tokenizer.mask_id])[0]}."
    return readable(model, _BEGINNING if model.network.kind.has_prompt else _SENTENCE, 5)


def readable(model: LoadedModel, text: str, n_tokens: int) -> str:
    """The text, or where a model has a vocabulary of its own that does not have these words, so many tokens of that."""
    if not isinstance(model.tokenizer, ListTokenizer) or model.tokenizer.encode is not None:
        return text
    try:
        model.tokenizer.encode_source(text)
    except InputError:
        return model.tokenizer.own_text(n_tokens)
    return text


def start_text(text: str = "text", checkpoint: str = "checkpoint", default: str | None = None) -> None:
    """The link's text, or an example. Another checkpoint brings its own example, unless something else was typed or it knows
    the answer to this one.

    Args:
        text: the control's key.
        checkpoint: the key of the box of the checkpoint that reads it.
        default: what it is at first, where that is no example of the checkpoint.
    """
    state, known = st.session_state, f"{text}_checkpoint"
    before = state.get(known)
    if (text in state and before == state[checkpoint]) or model_list.is_to_be_loaded(state[checkpoint], state.device):
        return
    state[known] = state[checkpoint]
    model = _model_of(state[checkpoint])
    default = default_text(model) if default is None else default
    if text not in state:
        link.text(text, default, most=MOST_TYPED)
    elif not (before or state[text]) or (before and _is_example(state[text], before) and not _has_answer(state[text], model)):
        state[text] = default


def _model_of(name: str) -> LoadedModel | None:
    """Loads a model; None where it cannot be loaded, and while that takes a while."""
    try:
        device = st.session_state.device
        return None if model_list.is_to_be_loaded(name, device) else model_list.load_any(name, device)
    except TransformerVizError:
        return None


def _is_example(text: str, name: str) -> bool:
    model = _model_of(name)
    if model is None:
        return False
    examples = () if model.task is None else (example.text for example in model.task.examples())
    return text in {DEFAULT_TEXT, default_text(model), *examples}


def _has_answer(text: str, model: LoadedModel | None) -> bool:
    """Tells whether a model's task reads a text and knows its answer: a string of letters may be read as a date and is none."""
    task = None if model is None else model.task
    try:
        return task is not None and task.answer(task.read(text)) is not None
    except TransformerVizError:
        return False


def model_box(label: str, key: str, width: int = 190) -> None:
    """A box of models, for which `link.option` has been called; its list says what each one does."""
    link.selectbox(label, key=key, width=width, label_visibility="collapsed")
    notes = {FILE: say("a run that was saved before; no model runs"), **model_list.notes()}
    option_notes.show(label, [notes.get(name, "") for name in link.options_of(key)])


def _loaded(name: str, device: str) -> LoadedModel | None:
    try:
        return model_list.load_any(name, device)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return None


def made(chosen: Bar, checkpoint: LoadedModel, make: Callable[[], T]) -> T | None:
    """Makes what a page shows of the text; None after saying why it cannot be. What was typed stays in box and link."""
    try:
        return make()
    except InputError as error:
        lesson_card.nothing_is_shown()
        draw = st.error if chosen.text else st.info
        draw(literal(str(error)), icon=":material/keyboard:")
        if isinstance(checkpoint, Checkpoint):
            _offer_ways(checkpoint, chosen.text)
            _offer_examples(checkpoint)
    except TraceTooLarge as error:
        limits.refuse(error)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
    return None


def _offer_ways(checkpoint: Checkpoint, text: str) -> None:
    """Buttons that read a part of the text, or all of it with another model."""
    if not text.strip():
        return
    parts = ways.readable_parts(checkpoint.task, text)
    names = (entry.name for entry in model_list.entries() if entry.error is None and entry.name != checkpoint.name)
    others = ((name, model.task) for name in names if (model := _model_of(name)) is not None and model.task is not None)
    with st.container(horizontal=True, key="ways"):
        for words, part in parts.items():
            st.button(words, f"way-{part}", on_click=_put, args=(part,), type="primary", icon=":material/content_cut:")
        for name in ways.readers(text, others):
            words = say("Read it with {name}", name=literal(name))
            st.button(
                words, f"with-{name}", on_click=_read_with, args=(name, text), type="primary", icon=":material/swap_horiz:"
            )


def _read_with(name: str, text: str) -> None:
    """Another model for what was typed; the box keeps it."""
    st.session_state.checkpoint = name
    st.session_state.text_checkpoint = name
    _put(text)


def _offer_examples(checkpoint: Checkpoint, most: int = 4) -> None:
    """A row of examples, for a page that has nothing to show."""
    with st.container(horizontal=True, vertical_alignment="center", key="offer"):
        st.caption(say("Or try one of these:"), width="content")
        for number, example in enumerate(checkpoint.task.examples()[:most]):
            st.button(of_run(example.text), key=f"offer-{number}", help=say(example.note), on_click=_put, args=(example.text,))
        st.button(say("Surprise me"), key="offer-surprise", icon=":material/casino:", on_click=_surprise, args=(checkpoint,))


def _put(text: str) -> None:
    own_text.chosen()
    st.session_state.text = text
    st.session_state.step = ""


def _surprise(checkpoint: Checkpoint) -> None:
    _put(model_list.surprise(checkpoint))


def _say_damaged(entries: list[Entry | readers.Entry]) -> None:
    damaged = [entry for entry in entries if entry.error is not None]
    if damaged:
        n, are_ours = len(damaged), all(isinstance(entry, Entry) for entry in damaged)
        words = say("{n} checkpoint folder(s) cannot be used", n=n) if are_ours else say("{n} folder(s) cannot be used", n=n)
        with st.expander(words, icon=":material/warning:"):
            for entry in damaged:
                st.text(str(entry.error))
