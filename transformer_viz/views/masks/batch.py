"""What is typed on the Masks page: sources and targets, one a line, and the lines as a batch."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from transformer_viz.errors import InputError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.tasks import Task
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
    """The boxes. Another model brings its own examples, unless something else was typed."""
    state, examples = st.session_state, default_sources(model)
    if state.get("lab_sources") is not None and state.lab_sources == state.get("lab_examples"):
        state.lab_sources = examples
    state.lab_examples = examples
    link.start("lab_sources", default=examples)
    side = side_of_padding(model)
    help_words = f"A batch of up to {MOST_LINES}. Shorter ones are padded to the longest, {side} their own tokens."
    if not model.model.sizes.writes:
        st.text_area("Texts, one a line", key="lab_sources", height=112, help=help_words)
        return
    left, right = st.columns(2)
    left.text_area(
        "Texts, one a line" if model.task is None else "Source strings, one a line",
        key="lab_sources",
        height=112,
        help=f"{help_words} Only so does padding appear.",
    )
    right.text_area(
        "Targets, one a line (optional)" if model.task is None else "Target strings, one a line (optional)",
        key="lab_targets",
        height=112,
        placeholder="Empty: what the model writes by itself",
        help="One for each source; an empty line stands for what the model writes by itself.",
    )


def has_prompts(model: LoadedModel) -> bool:
    """Whether what is typed is a beginning, which the model goes on with."""
    return model.model.start_id is None and model.model.sizes.writes


def side_of_padding(model: LoadedModel) -> str:
    """`before` a prompt, and `behind` what an encoder reads."""
    return "before" if has_prompts(model) else "behind"


def default_sources(model: LoadedModel) -> str:
    """Examples of different lengths."""
    if model.task is None:
        return "\n".join([bar.default_text(model), _SHORT, _LONG])
    return "\n".join(_examples(model.task))


def _examples(task: Task) -> list[str]:
    chosen: dict[int, str] = {}
    for example in task.examples():
        if len(example.text) <= 20:
            chosen.setdefault(len(example.text), example.text)
    return list(chosen.values())[:3]


def typed(model: LoadedModel) -> Typed:
    """The lines of the boxes.

    Raises:
        InputError: no line, an empty one among others, too many, not one target for each source, or one that the model
            cannot read.
    """
    sources = _lines(st.session_state.lab_sources)
    targets = _lines(st.session_state.lab_targets, keep=len(sources)) if model.model.sizes.writes else []
    if not sources:
        raise InputError(f"There is no source text. Type 1 to {MOST_LINES}, each on a line of its own.")
    if len(sources) > MOST_LINES:
        raise InputError(
            f"{len(sources)} source texts are given; this page shows at most {MOST_LINES} at once. "
            f"Take {len(sources) - MOST_LINES} lines out."
        )
    for number, source in enumerate(sources, start=1):
        if not source:
            raise InputError(f"Line {number} of the sources is empty. Type a text there, or take the line out.")
    if any(targets) and len(targets) != len(sources):
        raise InputError(
            f"{len(sources)} sources and {len(targets)} targets are given. Give one target for each source; "
            "an empty line stands for what the model writes by itself."
        )
    given = tuple(target or None for target in targets) if any(targets) else (None,) * len(sources)
    _check_readable("sources", sources, model.tokenizer.source)
    _check_readable("targets", given, model.tokenizer.target)
    return Typed(tuple(sources), given)


def _check_readable(what: str, lines: list[str] | tuple[str | None, ...], read: Callable[[str], list[int]]) -> None:
    """Raises an InputError that names the line that cannot be read."""
    for number, line in enumerate(lines, start=1):
        if line is None:
            continue
        try:
            read(line)
        except InputError as error:
            raise InputError(f"Line {number} of the {what}: {error}") from error


def _lines(text: str, keep: int = 0) -> list[str]:
    """Without the empty lines at the end, but for those among the first `keep`."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1] and len(lines) > (keep if any(lines) else 0):
        lines.pop()
    return lines
