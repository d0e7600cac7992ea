"""The state of the page Masks in one rerun: the batch, the sentence in focus, the edits and the mistake, and their runs."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import count_words
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.batch import decode_batch, read_batch, written_target
from transformer_viz.views.cache import computing
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.runs import cost_of
from transformer_viz.views.components import bar
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.masks.batch import Typed
from transformer_viz.views.state import link

NO_MISTAKE = "none"
MOST_OF_EDITS, _MOST_OF_A_SENTENCE = 4_000, 18


@dataclass(frozen=True)
class Setup:
    """What every tab of Masks gets."""

    model: LoadedModel
    typed: Typed
    sentence: int
    edits: tuple[str, ...]
    mistake: str | None

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the sound model."""
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
        """What is tried beyond this batch: the person's own texts, where no task draws others."""
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
        """What the model writes for each source, decoded as one padded batch with its padding kept."""
        cost, changed = cost_of(self.model, self.typed.sources), self._changed()
        traces = computing.decode(cost, decode_batch, self.model, self.typed.sources, **changed)
        return record(traces, Call(decode_batch, self.model, self.sources, **changed))

    def forced(self) -> list[Trace]:
        """One pass over sources and targets, with scores and with the padding of both sides kept."""
        model, sources, changed = self.model, self.typed.sources, self._changed()
        # What `read_batch` would decode for itself, from the cache.
        pairs = zip(self.sound().decoded(), self.typed.targets, strict=True)
        targets = tuple(written_target(one) if target is None else target for one, target in pairs)
        cost = cost_of(model, sources, **({"target": targets} if model.model.kind.writes else {}))
        traces = computing.compute("Reading the texts", cost, read_batch, model, sources, targets, **changed)
        return record(traces, Call(read_batch, model, self.sources, self.targets, **changed))

    def _changed(self) -> dict[str, Any]:
        return {"edits": self.edits, "mistake": self.mistake, "max_trace_bytes": MAX_TRACE_BYTES}

    @property
    def sources(self) -> Call:
        """The sources as “Show the code” has them: in a variable."""
        return Call("sources = {}", [*self.typed.sources])

    @property
    def targets(self) -> Call | None:
        """The targets, in a variable; None where the model writes by itself, which is `read_batch`'s default."""
        return Call("targets = {}", [*self.typed.targets]) if any(self.typed.targets) else None

    def change_words(self) -> str:
        """What is changed, in words."""
        parts = [f"the mistake “{MISTAKES[self.mistake].title}”"] if self.mistake else []
        parts += [count_words(len(self.edits), "edit")] if self.edits else []
        return " and ".join(parts)


def start(model: LoadedModel, typed: Typed) -> Setup:
    """What the widgets say, before they are drawn."""
    n = len(typed.sources)
    sentence = link.option("sentence", range(n), words=sentence_words(typed), fallback=n - 1)
    link.text("many", most=bar.MOST_TYPED)
    mistake = NO_MISTAKE if model.task is None else link.option("mistake", (NO_MISTAKE, *MISTAKES), words=mistake_words)
    edits: tuple[str, ...] = ()
    try:
        edits = tuple(map(str, plain_edits.parse(link.text("edits", most=MOST_OF_EDITS))))
    except OptionError as error:
        st.error(f"{literal(str(error))} Nothing is edited until this is put right.", icon=":material/edit_off:")
    return Setup(model, typed, sentence, edits, None if mistake == NO_MISTAKE else mistake)


def sentence_words(typed: Typed) -> Callable[[int], str]:
    """`2: abc`."""
    return lambda number: f"{number + 1}: {of_run(shorten(typed.sources[number], _MOST_OF_A_SENTENCE))}"


def mistake_words(name: str) -> str:
    """The mistake as its box has it."""
    return "no mistake" if name == NO_MISTAKE else MISTAKES[name].title


def reset() -> None:
    """Takes all edits and the mistake back."""
    st.session_state.update(edits="", mistake=NO_MISTAKE)
