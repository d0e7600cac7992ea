"""The `do` of a lesson's step: what the learner is to do, and whether the page's link shows that it has been done."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from transformer_viz.errors import LessonError, join_names
from transformer_viz.learn.links import PAGES, Link
from transformer_viz.terms import KINDS, MISTAKES
from transformer_viz.text_display import quote_text

RUN = ("text", "checkpoint", "decoding", "beam", "alpha", "temperature", "seed", "sources", "edits", "mistake", "b_text")
"""Controls that make another run when they change."""
_STEP = re.compile(r"[1-9]\d{0,2}", re.ASCII)
_CELL = re.compile(r"[1-9]\d{0,2},[1-9]\d{0,2}", re.ASCII)
_HEAD = re.compile(rf"({'|'.join(KINDS)})\.[1-9]\d?\.[1-9]\d?", re.ASCII)


@dataclass(frozen=True)
class Verb:
    """A kind of action: in words what may follow its name, a test of such a value, and a test whether it has been done."""

    about: str
    is_possible: Callable[[str], bool]
    is_done: Callable[[str, Link, Link], bool]


@dataclass(frozen=True)
class Action:
    """An action of a lesson: a verb and its value, as in `step 4`."""

    verb: str
    value: str = ""

    def is_done(self, before: Link, now: Link) -> bool:
        """Whether it has been done between two links of the page: the one at which the step began, and the present one.

        Both links name all values, also defaults, which the page's own link leaves out; a mistake has its short name.
        """
        return VERBS[self.verb].is_done(self.value, before, now)


def read_action(text: str) -> Action:
    """An action from the text of a lesson: a verb, a space and a value.

    Raises:
        LessonError: the text is not an action; the message lists them.
    """
    verb, _, value = text.partition(" ")
    if verb not in VERBS or not VERBS[verb].is_possible(value):
        possible = join_names(f"{name} {known.about}".strip() for name, known in VERBS.items())
        raise LessonError(f"do={quote_text(text)} is not an action; choose one of {possible}")
    return Action(verb, value)


def _differs(*names: str) -> Callable[[Link, Link], bool]:
    return lambda before, now: any(before.values.get(name) != now.values.get(name) for name in names)


def _changes(name: str) -> Callable[[str, Link, Link], bool]:
    """A test whether a control has the given value, or, without one, another value than before."""
    return lambda value, before, now: now.values.get(name) == value if value else _differs(name)(before, now)


def _chosen_head(value: str, before: Link, now: Link) -> bool:
    if not value:
        return _differs("kind", "layer", "head")(before, now)
    kind, layer, head = value.split(".")
    return (now.kind or "cross", now.number("layer"), now.head) == (kind, int(layer), int(head) - 1)


VERBS: dict[str, Verb] = {
    "step": Verb(
        "N", lambda value: bool(_STEP.fullmatch(value)), lambda value, _, now: (now.number("step") or 0) >= int(value)
    ),
    "cell": Verb("[ROW,COLUMN]", lambda value: not value or bool(_CELL.fullmatch(value)), _changes("pin")),
    "head": Verb("[cross.2.1]", lambda value: not value or bool(_HEAD.fullmatch(value)), _chosen_head),
    "text": Verb("[TEXT]", lambda value: True, _changes("text")),
    "model": Verb("[NAME]", lambda value: True, _changes("checkpoint")),
    "mistake": Verb("[NAME]", lambda value: not value or value in MISTAKES, _changes("mistake")),
    "mask": Verb("", lambda value: not value, lambda value, before, now: _differs("edits", "mistake")(before, now)),
    "run": Verb("", lambda value: not value, lambda value, before, now: _differs(*RUN)(before, now)),
    "moment": Verb("[STEP OF TRAINING]", lambda value: not value or value.isdecimal(), _changes("moment")),
    "tab": Verb(
        "TITLE", bool, lambda value, before, now: value in (now.values.get("explore_tab"), now.values.get("masks_tab"))
    ),
    "page": Verb(join_names(PAGES), lambda value: value in PAGES, lambda value, before, now: now.page == value),
}
