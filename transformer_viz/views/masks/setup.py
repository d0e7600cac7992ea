"""The state of the page Masks in one rerun: the batch, the sentence in focus, the edits and the mistake."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.numbers_in_words import count_words
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import bar
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.masks import batch_runs
from transformer_viz.views.masks.batch import Typed
from transformer_viz.views.state import link

NO_MISTAKE = "none"
MOST_OF_EDITS, _MOST_OF_A_SENTENCE = 4_000, 18


@dataclass(frozen=True)
class Setup:
    """Everything that a tab needs to know."""

    model: LoadedModel
    typed: Typed
    sentence: int
    edits: tuple[str, ...]
    mistake: str | None
    is_narrow: bool

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the sound model."""
        return bool(self.edits) or self.mistake is not None

    @property
    def made_of(self) -> dict[str, Hashable]:
        """What takes seconds and is made when a toggle asks for it, and of which model and change."""
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

    def decoded(self, *, changed: bool) -> list[Trace]:
        """What the model writes, one Trace a sentence."""
        return batch_runs.decoded(self.model, self.typed, *((self.edits, self.mistake) if changed else ()))

    def forced(self, *, changed: bool = True) -> list[Trace]:
        """The pass over sources and targets, one Trace a sentence."""
        return batch_runs.forced(self.model, self.typed, *((self.edits, self.mistake) if changed else ()))

    def change_words(self) -> str:
        """What is changed, in words."""
        parts = [f"the mistake “{MISTAKES[self.mistake].title}”"] if self.mistake else []
        parts += [count_words(len(self.edits), "edit")] if self.edits else []
        return " and ".join(parts)


def start(model: LoadedModel, typed: Typed, is_narrow: bool) -> Setup:
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
    return Setup(model, typed, sentence, edits, None if mistake == NO_MISTAKE else mistake, is_narrow)


def sentence_words(typed: Typed) -> Callable[[int], str]:
    """`2: abc`."""
    return lambda number: f"{number + 1}: {of_run(shorten(typed.sources[number], _MOST_OF_A_SENTENCE))}"


def mistake_words(name: str) -> str:
    """As the box has it."""
    return "no mistake" if name == NO_MISTAKE else MISTAKES[name].title


def reset() -> None:
    """Takes all edits and the mistake back."""
    st.session_state.update(edits="", mistake=NO_MISTAKE)
