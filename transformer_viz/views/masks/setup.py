"""What the Masks page is about in this run of it: the batch, the sentence in focus, and what was changed."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import ThemeName
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import bar
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.masks import batch_runs
from transformer_viz.views.masks.batch import Typed
from transformer_viz.views.snippets.runs import Batch
from transformer_viz.views.state import link, switches

NO_MISTAKE = "none"


@dataclass(frozen=True)
class Setup:
    """Everything that a tab needs to know."""

    model: LoadedModel
    device: str
    """As chosen: `auto` or a device."""
    typed: Typed
    sentence: int
    edits: tuple[str, ...]
    mistake: str | None
    theme: ThemeName
    is_large: bool
    is_narrow: bool

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the sound model."""
        return bool(self.edits) or self.mistake is not None

    @property
    def made_of(self) -> dict[str, object]:
        """What takes seconds and is made when a button asks for it, and of which model and change; see `on_demand`."""
        name = (self.model.name, self.model.switches)
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
        lines = tuple(line for line in st.session_state.lab_many.splitlines() if line.strip())
        return lines or self.typed.sources

    @property
    def columns(self) -> int:
        """How many maps fit side by side."""
        return 1 if self.is_narrow else 3

    @property
    def batch(self) -> Batch:
        """How the batch is made, for “Show the code”."""
        return Batch(
            self.model.name,
            self.typed.sources,
            self.typed.targets,
            self.edits,
            self.mistake,
            self.device,
            self.texts,
            {} if self.many is None else {"texts": list(self.many), "max_length": batch_runs.most_written(self.model)},
            switches.of(self.model).calls(),
        )

    @property
    def looks(self) -> dict[str, Any]:
        """How the figures are drawn, likewise."""
        return {"theme": self.theme, "large": self.is_large}

    def decoded(self, *, changed: bool) -> list[Trace]:
        """What the model writes, one Trace a sentence."""
        return batch_runs.decoded(self.model, self.typed, *(self._change() if changed else ((), None)))

    def forced(self, *, changed: bool = True) -> list[Trace]:
        """The pass over sources and targets, one Trace a sentence."""
        return batch_runs.forced(self.model, self.typed, *(self._change() if changed else ((), None)))

    def change_words(self) -> str:
        """What is changed, in words."""
        parts = [f"the mistake “{MISTAKES[self.mistake].title}”"] if self.mistake else []
        parts += [f"{len(self.edits)} edit{'s' if len(self.edits) > 1 else ''}"] if self.edits else []
        return " and ".join(parts)

    def _change(self) -> tuple[tuple[str, ...], str | None]:
        return self.edits, self.mistake


def start(chosen: bar.Bar, model: LoadedModel, typed: Typed, theme: ThemeName, is_narrow: bool) -> Setup:
    """Reads the link once and the widgets' state; what cannot be is said."""
    n = len(typed.sources)
    sentence = link.start("sentence", range(n), fallback=n - 1)
    mistake = link.start("mistake", (NO_MISTAKE, *(MISTAKES if model.task is not None else ())))
    mistake = None if mistake == NO_MISTAKE else mistake
    return Setup(model, chosen.device, typed, sentence, _edits(), mistake, theme, chosen.is_large, is_narrow)


def reset() -> None:
    """Back to the sound model, in one go."""
    st.session_state.lab_edits = ""
    st.session_state.mistake = NO_MISTAKE


def long_texts() -> dict[str, str]:
    """What may be too long for a link, by what it is called."""
    names = {"lab_sources": "the sources", "lab_targets": "the targets", "lab_edits": "the edits", "lab_many": "the many texts"}
    return {name: st.session_state.get(key, "") for key, name in names.items()}


def _edits() -> tuple[str, ...]:
    try:
        return tuple(map(str, plain_edits.parse(st.session_state.lab_edits)))
    except OptionError as error:
        st.error(f"{literal(str(error))} Nothing is edited until this is put right.", icon=":material/edit_off:")
        return ()
