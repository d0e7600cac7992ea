"""The part of a run that a question covers until it is answered: a row, rows from one on, masks, or the tree of a search.

Axes, letters and all other rows stay. A step says it in its `cover`, or it follows from what is asked.
"""

import re
from dataclasses import dataclass

from transformer_viz.errors import LessonError
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.questions import COVERS, Question
from transformer_viz.terms import Kind
from transformer_viz.text_display import quote_text
from transformer_viz.trace.hidden_answer import cover_rows, hide_answer
from transformer_viz.trace.trace import Trace

MASKS, TREE = "masks", "tree"
_ROWS = re.compile(r"(rows?) ([1-9]\d{0,2})", re.ASCII)


@dataclass(frozen=True)
class Cover:
    """The covered part of a run.

    Attributes:
        step: from which on nothing of what is written, and no row of the decoder and of cross-attention, may be seen; so many
            as the run has where only what is said of the whole run, as its right tokens, is left out; None where all is seen.
        kind: of which rows are covered.
        rows: of this kind.
        is_of_masks: whether it is masks that are asked for: then no mask of the page may be seen.
        is_of_search: whether nothing of the search may be seen but how it begins: greedily.
    """

    step: int | None = None
    kind: Kind | None = None
    rows: range = range(0)
    is_of_masks: bool = False
    is_of_search: bool = False

    def of(self, trace: Trace) -> Trace:
        """The run as it may be seen."""
        if self.step is not None:
            trace = hide_answer(trace, self.step)
        return trace if self.kind is None else cover_rows(trace, self.kind, self.rows)


def cover_of(asked: Question, ask: Ask, trace: Trace) -> Cover:
    """Finds what a question covers of its run."""
    row, kind, what = asked.spot.row, asked.spot.kind, COVERS[asked.kind]
    # Rows of what is written go with it: later ones have read it.
    is_of_step = kind != "encoder" and trace.writes and not trace.is_given(row)
    n_rows = len(trace.attentions[kind].queries)
    if what == "mask":
        return Cover(row if is_of_step else None, kind, range(n_rows), is_of_masks=True)
    if what == "row":
        first, end = read_rows(ask.cover, n_rows) or (row, row + 1)
        if not first <= row < end:  # of a text of one's own
            first, end = row, row + 1
        return Cover(first) if is_of_step else Cover(kind=kind, rows=range(first, end))
    return Cover(trace.n_steps, is_of_search=what == "search")


def read_rows(said: str, n_rows: int) -> tuple[int, int] | None:
    """The first row, from 0, and the end of those that a step's `cover` names; None where it names none."""
    if (match := _ROWS.fullmatch(said)) is None:
        return None
    first = int(match[2]) - 1
    return first, first + 1 if match[1] == "row" else n_rows


def check_cover(ask: Ask, row: int) -> None:
    """Raises a LessonError where a step's `cover` is none, or does not cover what is asked; `row` is from 0."""
    what, rows = COVERS[ask.kind], read_rows(ask.cover, 10**6)
    possible = {"row": rows is not None, "mask": ask.cover == MASKS, "search": ask.cover == TREE}
    if not ask.cover or (possible.get(what, False) and (rows is None or rows[0] <= row < rows[1])):
        return
    if what == "row" and rows is not None:
        raise LessonError(f"cover={quote_text(ask.cover)} leaves row {row + 1} open, which is asked about")
    words = {"row": '"row 6" or "rows 4"', "mask": f'"{MASKS}"', "search": f'"{TREE}"'}
    needed = f"such a question needs {words[what]}, or no cover" if what in words else "such a question covers no row"
    raise LessonError(f"cover={quote_text(ask.cover)} is not possible; {needed}")
