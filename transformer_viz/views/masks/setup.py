"""The state of the page Masks in one rerun: boxes for sources and targets, one a line, and the batch that the lines make; the
sentence in focus, the edits and the mistake, and their runs."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz.errors import InputError, OptionError, TransformerVizError
from transformer_viz.language import later, listed, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import count_words
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.batch import decode_batch, decode_forced, written_target
from transformer_viz.views.cache import computing
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.runs import cost_of
from transformer_viz.views.components import bar
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import link

MOST_LINES = 8
_SHORT, _LONG = "Hello!", "The weather in Paris today is"
"""Beside `bar.default_text`, for models without a task: shorter and longer, so that there is padding."""
NO_MISTAKE = "none"
MOST_OF_EDITS, _MOST_OF_A_SENTENCE = 4_000, 18


@dataclass(frozen=True)
class Typed:
    """The lines of both boxes; a target of None is what the model writes by itself."""

    sources: tuple[str, ...]
    targets: tuple[str | None, ...]


@dataclass(frozen=True)
class Setup:
    """The setup that every tab of Masks gets."""

    model: LoadedModel
    typed: Typed
    sentence: int
    edits: tuple[str, ...]
    mistake: str | None

    @property
    def is_changed(self) -> bool:
        """Tells whether anything differs from the sound model."""
        return bool(self.edits) or self.mistake is not None

    @property
    def made_of(self) -> dict[str, Hashable]:
        """For each toggle that asks for what takes seconds, everything that its result depends on; None where there is none."""
        name = (self.model.name, self.model.options)
        changed = (name, self.edits, self.mistake)
        return {
            "effect": (*changed, self.many) if self.is_changed else None,
            "certificate": (*changed, self.texts),
            "gallery": None if self.model.task is None else name,
        }

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The texts that are tried beyond this batch: the person's own, where no task draws others."""
        return self.typed.sources if self.model.task is None else None

    @property
    def many(self) -> tuple[str, ...] | None:
        """The many texts that a change is tried on; None = fresh strings of the task."""
        if self.model.task is not None:
            return None
        lines = tuple(line for line in st.session_state.many.splitlines() if line.strip())
        return lines or self.typed.sources

    def sound(self, mistake: str | None = None) -> "Setup":
        """The same without the changes that are set on the page; with another mistake, where one is named."""
        return replace(self, edits=(), mistake=mistake)

    def decoded(self) -> list[Trace]:
        """Decodes all sources as one padded batch with its padding kept."""
        cost, changed = cost_of(self.model, self.typed.sources), self._changed()
        traces = computing.decode(cost, decode_batch, self.model, self.typed.sources, **changed)
        return record(traces, Call(decode_batch, self.model, self.sources, **changed))

    def forced(self) -> list[Trace]:
        """One pass over sources and targets, with scores and with the padding of both sides kept."""
        model, sources, changed = self.model, self.typed.sources, self._changed()
        # What `decode_forced` would decode for itself, from the cache.
        pairs = zip(self.sound().decoded(), self.typed.targets, strict=True)
        targets = tuple(written_target(one) if target is None else target for one, target in pairs)
        cost = cost_of(model, sources, **({"target": targets} if model.network.kind.writes else {}))
        traces = computing.compute(say("Reading the texts"), cost, decode_forced, model, sources, targets, **changed)
        return record(traces, Call(decode_forced, model, self.sources, self.targets, **changed))

    def _changed(self) -> dict[str, Any]:
        return {"edits": self.edits, "mistake": self.mistake, "max_trace_bytes": MAX_TRACE_BYTES}

    @property
    def sources(self) -> Call:
        """The sources as “Show the code” has them: in a variable."""
        return Call("sources = {}", [*self.typed.sources])

    @property
    def targets(self) -> Call | None:
        """The targets, in a variable; None where the model writes by itself, which is `decode_forced`'s default."""
        return Call("targets = {}", [*self.typed.targets]) if any(self.typed.targets) else None

    def change_words(self) -> str:
        """Says what is changed."""
        parts = [say("the mistake “{title}”", title=say(MISTAKES[self.mistake].title))] if self.mistake else []
        parts += [count_words(len(self.edits), "edit")] if self.edits else []
        return listed(parts)


def start(model: LoadedModel, typed: Typed) -> Setup:
    """Reads the widgets before they are drawn."""
    n = len(typed.sources)
    sentence = link.option("sentence", range(n), words=sentence_words(typed), fallback=n - 1)
    link.text("many", most=bar.MOST_TYPED)
    mistake = (
        NO_MISTAKE
        if model.task is None
        else link.option("mistake", (NO_MISTAKE, *MISTAKES), words=mistake_words, said=said_mistake)
    )
    edits: tuple[str, ...] = ()
    try:
        edits = tuple(map(str, plain_edits.parse(link.text("edits", most=MOST_OF_EDITS))))
    except OptionError as error:
        st.error(
            say("{error} Nothing is edited until this is put right.", error=literal(str(error))), icon=":material/edit_off:"
        )
    return Setup(model, typed, sentence, edits, None if mistake == NO_MISTAKE else mistake)


def sentence_words(typed: Typed) -> Callable[[int], str]:
    """`2: abc`."""
    return lambda number: f"{number + 1}: {of_run(shorten(typed.sources[number], _MOST_OF_A_SENTENCE))}"


def mistake_words(name: str) -> str:
    """The mistake as a link has it."""
    return "no mistake" if name == NO_MISTAKE else MISTAKES[name].title


def said_mistake(name: str) -> str:
    """The mistake as its box has it."""
    return say("no mistake") if name == NO_MISTAKE else say(MISTAKES[name].title)


def reset() -> None:
    """Takes all edits and the mistake back."""
    st.session_state.update(edits="", mistake=NO_MISTAKE)


# ---- the boxes


def draw_boxes(model: LoadedModel) -> None:
    """Draws the boxes. Another model brings its own examples, unless something else was typed."""
    state, examples = st.session_state, default_sources(model)
    ours = _with_text(model, examples)
    # What a link says comes first, and what was typed here stays.
    is_ours = state.sources == state.get("examples_of_sources") if "sources" in state else "sources" not in link.address()
    if is_ours and (ours != examples or "sources" in state):
        state.sources = ours
    state.examples_of_sources = ours
    side = side_of_padding(model)
    help_words = say(
        "A batch of up to {most_lines}. Shorter ones are padded to the longest, {side} their own tokens.",
        most_lines=MOST_LINES,
        side=say(side),
    )
    looks: Any = {"most": bar.MOST_TYPED, "height": 112}
    if not model.network.kind.writes:
        link.text_area(say("Texts, one a line"), examples, key="sources", help=help_words, **looks)
        return
    left, right = st.columns(2)
    with left:
        words = say("Texts, one a line") if model.task is None else say("Source strings, one a line")
        link.text_area(
            words,
            examples,
            key="sources",
            help=say("{help_words} Only so does padding appear.", help_words=help_words),
            **looks,
        )
    with right:
        link.text_area(
            say("Targets, one a line (optional)") if model.task is None else say("Target strings, one a line (optional)"),
            key="targets",
            placeholder=say("Empty: what the model writes by itself"),
            help=say("One for each source; an empty line stands for what the model writes by itself."),
            **looks,
        )


def _with_text(model: LoadedModel, examples: str) -> str:
    """The text of the other pages, where the model can read it, before the examples."""
    text, others = st.session_state.get("text", ""), examples.split("\n")
    with suppress(TransformerVizError):
        if text.strip() and "\n" not in text and model.tokenizer.encode_source(text):
            return "\n".join([text, *(line for line in others[1:] if line != text)])
    return examples


def side_of_padding(model: LoadedModel) -> str:
    """The side of the padding: `before` a prompt, and `behind` what an encoder reads."""
    return later("before") if model.network.kind.has_prompt else later("behind")


def default_sources(model: LoadedModel) -> str:
    """Examples of different lengths, one a line."""
    if model.task is None:
        return "\n".join([bar.default_text(model), bar.readable(model, _SHORT, 3), bar.readable(model, _LONG, 8)])
    chosen: dict[int, str] = {}
    for example in model.task.examples():
        if len(example.text) <= 20:
            chosen.setdefault(len(example.text), example.text)
    return "\n".join([*chosen.values()][:3])


def read_boxes(model: LoadedModel) -> Typed:
    """The lines of the boxes.

    Raises:
        InputError: no line, an empty one among others, too many, not one target for each source, or one that the model
            cannot read.
    """
    sources = _lines(st.session_state.sources)
    targets = _lines(st.session_state.targets, keep=len(sources)) if model.network.kind.writes else []
    if not sources:
        raise InputError(say("There is no source text. Type 1 to {most}, each on a line of its own.", most=MOST_LINES))
    if len(sources) > MOST_LINES:
        raise InputError(
            say(
                "{n} source texts are given; this page shows at most {most} at once. Take {more} lines out.",
                n=len(sources),
                most=MOST_LINES,
                more=len(sources) - MOST_LINES,
            )
        )
    if "" in sources:
        n = sources.index("") + 1
        raise InputError(say("Line {n} of the sources is empty. Type a text there, or take the line out.", n=n))
    if any(targets) and len(targets) != len(sources):
        raise InputError(
            say(
                "{sources} sources and {targets} targets are given. Give one target for each source; an empty line stands for "
                "what the model writes by itself.",
                sources=len(sources),
                targets=len(targets),
            )
        )
    given = tuple(target or None for target in targets) if any(targets) else (None,) * len(sources)
    readers = (("sources", sources, model.tokenizer.encode_source), ("targets", given, model.tokenizer.encode_target))
    for what, lines, read in readers:
        for number, line in enumerate(lines, start=1):
            try:
                if line is not None:
                    read(line)
            except InputError as error:
                raise InputError(f"Line {number} of the {what}: {error}") from error
    return Typed(tuple(sources), given)


def _lines(text: str, keep: int = 0) -> list[str]:
    """The lines of a box, without empty ones at the end; the first `keep` stay even if they are empty."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1] and len(lines) > (keep if any(lines) else 0):
        lines.pop()
    return lines
