"""The input of the page Masks: boxes for sources and targets, one a line, and the batch that the lines make."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from transformer_viz.errors import InputError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.views.components import bar
from transformer_viz.views.state import link

MOST_LINES = 8
_SHORT, _LONG = "Hello!", "The weather in Paris today is"
"""Beside `bar.default_text`, for models without a task: shorter and longer, so that there is padding."""


@dataclass(frozen=True)
class Typed:
    """The lines of both boxes; a target of None is what the model writes by itself."""

    sources: tuple[str, ...]
    targets: tuple[str | None, ...]


def show(model: LoadedModel) -> None:
    """Draws the boxes. Another model brings its own examples, unless something else was typed."""
    state, examples = st.session_state, default_sources(model)
    if state.get("sources") is not None and state.sources == state.get("examples_of_sources"):
        state.sources = examples
    state.examples_of_sources = examples
    side = side_of_padding(model)
    help_words = f"A batch of up to {MOST_LINES}. Shorter ones are padded to the longest, {side} their own tokens."
    looks: Any = {"most": bar.MOST_TYPED, "height": 112}
    if not model.model.kind.writes:
        link.text_area("Texts, one a line", examples, key="sources", help=help_words, **looks)
        return
    left, right = st.columns(2)
    with left:
        words = "Texts, one a line" if model.task is None else "Source strings, one a line"
        link.text_area(words, examples, key="sources", help=f"{help_words} Only so does padding appear.", **looks)
    with right:
        link.text_area(
            "Targets, one a line (optional)" if model.task is None else "Target strings, one a line (optional)",
            key="targets",
            placeholder="Empty: what the model writes by itself",
            help="One for each source; an empty line stands for what the model writes by itself.",
            **looks,
        )


def side_of_padding(model: LoadedModel) -> str:
    """Where padding stands: `before` a prompt, and `behind` what an encoder reads."""
    return "before" if model.model.kind.has_prompt else "behind"


def default_sources(model: LoadedModel) -> str:
    """Examples of different lengths, one a line."""
    if model.task is None:
        return "\n".join([bar.default_text(model), _SHORT, _LONG])
    chosen: dict[int, str] = {}
    for example in model.task.examples():
        if len(example.text) <= 20:
            chosen.setdefault(len(example.text), example.text)
    return "\n".join([*chosen.values()][:3])


def typed(model: LoadedModel) -> Typed:
    """The lines of the boxes.

    Raises:
        InputError: no line, an empty one among others, too many, not one target for each source, or one that the model
            cannot read.
    """
    sources = _lines(st.session_state.sources)
    targets = _lines(st.session_state.targets, keep=len(sources)) if model.model.kind.writes else []
    if not sources:
        raise InputError(f"There is no source text. Type 1 to {MOST_LINES}, each on a line of its own.")
    if len(sources) > MOST_LINES:
        raise InputError(
            f"{len(sources)} source texts are given; this page shows at most {MOST_LINES} at once. "
            f"Take {len(sources) - MOST_LINES} lines out."
        )
    if "" in sources:
        raise InputError(f"Line {sources.index('') + 1} of the sources is empty. Type a text there, or take the line out.")
    if any(targets) and len(targets) != len(sources):
        raise InputError(
            f"{len(sources)} sources and {len(targets)} targets are given. Give one target for each source; "
            "an empty line stands for what the model writes by itself."
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
