"""What is typed on the Masks page: sources and targets, one a line, and the lines as a batch."""

from dataclasses import dataclass

import streamlit as st

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError
from transformer_viz.tasks import Task
from transformer_viz.views.state import link

MOST_LINES = 8


@dataclass(frozen=True)
class Typed:
    """The lines of both boxes; a target of None is what the model decodes."""

    sources: tuple[str, ...]
    targets: tuple[str | None, ...]


def show(checkpoint: Checkpoint) -> None:
    """The two boxes. Another checkpoint brings its own examples, unless something else was typed."""
    state, examples = st.session_state, default_sources(checkpoint.task)
    if state.get("lab_sources") is not None and state.lab_sources == state.get("lab_examples"):
        state.lab_sources = examples
    state.lab_examples = examples
    link.start("lab_sources", default=examples)
    left, right = st.columns(2)
    left.text_area(
        "Source strings, one a line",
        key="lab_sources",
        height=112,
        help=f"A batch of up to {MOST_LINES}. Shorter ones are padded to the longest: only so does padding appear.",
    )
    right.text_area(
        "Target strings, one a line (optional)",
        key="lab_targets",
        height=112,
        placeholder="Empty: what the model decodes",
        help="One for each source; an empty line stands for what the model decodes.",
    )


def default_sources(task: Task) -> str:
    """Examples of the task with different lengths."""
    chosen: dict[int, str] = {}
    for example in task.examples():
        if len(example.text) <= 20:
            chosen.setdefault(len(example.text), example.text)
    return "\n".join(list(chosen.values())[:3])


def typed() -> Typed:
    """The lines of the boxes.

    Raises:
        InputError: no line, an empty one among others, too many, or not one target for each source.
    """
    sources = _lines(st.session_state.lab_sources)
    targets = _lines(st.session_state.lab_targets, keep=len(sources))
    if not sources:
        raise InputError(f"There is no source string. Type 1 to {MOST_LINES}, each on a line of its own.")
    if len(sources) > MOST_LINES:
        raise InputError(
            f"{len(sources)} source strings are given; this page shows at most {MOST_LINES} at once. "
            f"Take {len(sources) - MOST_LINES} lines out."
        )
    for number, source in enumerate(sources, start=1):
        if not source:
            raise InputError(f"Line {number} of the sources is empty. Type a string there, or take the line out.")
    if any(targets) and len(targets) != len(sources):
        raise InputError(
            f"{len(sources)} sources and {len(targets)} targets are given. Give one target for each source; "
            "an empty line stands for what the model decodes."
        )
    return Typed(tuple(sources), tuple(target or None for target in targets) if any(targets) else (None,) * len(sources))


def check_readable(typed: Typed, task: Task) -> None:
    """Raises an InputError that names the line that the task cannot read."""
    for what, lines, read in (("sources", typed.sources, task.read), ("targets", typed.targets, task.read_target)):
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
