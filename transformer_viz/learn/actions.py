"""The `do` of a lesson's step: what the learner is to do, and whether the page's link shows that it has been done."""

import re
from dataclasses import dataclass

from transformer_viz.errors import LessonError, join_names
from transformer_viz.learn.links import PAGES, Link
from transformer_viz.terms import KINDS, MISTAKES
from transformer_viz.text_display import quote_text

RUN = ("text", "checkpoint", "decoding", "beam", "alpha", "temperature", "seed", "sources", "edits", "mistake", "b_text")
"""Controls that make another run when they change."""
_PLACE = r"[1-9][0-9]{0,2}"
VERBS: dict[str, tuple[str, str]] = {
    "step": ("N", _PLACE),
    "cell": ("[ROW,COLUMN]", f"({_PLACE},{_PLACE})?"),
    "head": ("[cross.2.1]", rf"(({'|'.join(KINDS)})(\.[1-9][0-9]?){{2}})?"),
    "text": ("[TEXT]", ".*"),
    "model": ("[NAME]", ".*"),
    "mistake": ("[NAME]", f"({'|'.join(MISTAKES)})?"),
    "mask": ("", ""),
    "run": ("", ""),
    "moment": ("[STEP OF TRAINING]", r"\d*"),
    "tab": ("TITLE", ".+"),
    "page": (join_names(PAGES), "|".join(PAGES)),
}
"""Kinds of action: in words what may follow the name of each, and a pattern of it."""


@dataclass(frozen=True)
class Action:
    """An action of a lesson: a verb and its value, as in `step 4`."""

    verb: str
    value: str = ""

    def is_done(self, before: Link, now: Link) -> bool:
        """Tells whether it has been done between two links of the page: the one at which the step began, and the present one.

        Both links name all values, also defaults, which the page's own link leaves out; a mistake has its short name.
        """

        def differs(*names: str) -> bool:
            return any(before.values.get(name) != now.values.get(name) for name in names)

        match self.verb:
            case "step":
                return (now.number("step") or 0) >= int(self.value)
            case "cell" if self.value and now.values.get("pin", "").startswith(","):
                # By keyboard: the column, at the step of the row.
                return (str(now.number("step")), now.values["pin"][1:]) == (*self.value.split(","),)
            case "head" if self.value:
                kind, layer, head = self.value.split(".")
                return (now.kind or "cross", now.number("layer"), now.head) == (kind, int(layer), int(head) - 1)
            case "head":
                return differs("kind", "layer", "head")
            case "mask":
                return differs("edits", "mistake")
            case "run":
                return differs(*RUN)
            case "tab":
                return self.value in (now.values.get("explore_tab"), now.values.get("masks_tab"))
            case "page":
                return now.page == self.value
        # A control has the value, or without one another value than before.
        control = {"cell": "pin", "model": "checkpoint"}.get(self.verb, self.verb)
        return now.values.get(control) == self.value if self.value else differs(control)


def read_action(text: str) -> Action:
    """An action from the text of a lesson: a verb, a space and a value.

    Raises:
        LessonError: the text is not an action; the message lists them.
    """
    verb, _, value = text.partition(" ")
    if verb not in VERBS or not re.fullmatch(VERBS[verb][1], value, re.DOTALL):
        possible = join_names(f"{name} {about}".strip() for name, (about, _) in VERBS.items())
        raise LessonError(f"do={quote_text(text)} is not an action; choose one of {possible}")
    return Action(verb, value)
