"""The head that is taken to align a run: for each word that was written, the words that it comes from.

`tv.alignment_heads` finds it. People write it `cross.2.1`, or `cross.2.1.reads` where a word is aligned in the row that reads
it; links, where no other kind is meant, have `2.1`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer_viz.addresses import Grid, HeadAddress, find_head, parse_head
from transformer_viz.errors import OptionError
from transformer_viz.language import later, say
from transformer_viz.terms import head_label
from transformer_viz.trace.trace import Trace

RowOf = Literal["writes", "reads"]
ROWS: tuple[RowOf, ...] = ("writes", "reads")
"""The row of a target word that is looked at: the one that writes it, or the next one, which reads it."""
ROW_WORDS: dict[RowOf, str] = {"writes": later("writes the word"), "reads": later("reads it")}


@dataclass(frozen=True)
class AlignmentHead:
    """A head of cross-attention; layer and head count from 0.

    Attributes:
        layer: its layer's number.
        head: in the layer.
        row: of a word, the one that writes it, or the next one, which reads it.
    """

    layer: int
    head: int
    row: RowOf = "writes"

    @classmethod
    def read(cls, address: str) -> "AlignmentHead | None":
        """A head read from a link, from 1; None for anything else."""
        head = parse_head(address.removesuffix(".reads"))
        return None if head is None else AlignmentHead(*head, "reads" if address.endswith(".reads") else "writes")

    @property
    def address(self) -> str:
        """The head in a link, from 1."""
        return f"{self.layer + 1}.{self.head + 1}" + (".reads" if self.row == "reads" else "")

    @property
    def words(self) -> str:
        """The same as its text, in the language of now."""
        name = head_label(self.layer, self.head)
        return say("{head} (reads it)", head=name) if self.row == "reads" else name

    def __str__(self) -> str:
        return head_label(self.layer, self.head) + (f" ({ROW_WORDS[self.row]})" if self.row == "reads" else "")

    def map_of(self, trace: Trace) -> np.ndarray:
        """float32 (step, key): of each step's word its row of the head; NaN for the last where it was not read."""
        weights = trace.cross.head(self.layer, self.head)
        return weights if self.row == "writes" else np.vstack([weights[1:], np.full_like(weights[:1], np.nan)])


def aligner_of(trace: Trace, address: str | HeadAddress) -> AlignmentHead:
    """The head of a run that is meant: an address such as `cross.2.1`, or `cross.2.1.reads`.

    Raises:
        OptionError: the run has no such head, or it wrote nothing.
    """
    if not (there := possible(trace)):
        raise OptionError("aligner: this run has no cross-attention of written tokens, so no head aligns them")
    row, text = ROWS[0], address
    if isinstance(address, str) and address.endswith(".reads"):
        row, text = ROWS[1], address.removesuffix(".reads")
    grid: Grid = {"cross": trace.grid["cross"]}
    place = find_head(text, grid, what="aligner")
    aligner = AlignmentHead(place.layer, place.head, row)
    assert aligner in there
    return aligner


def possible(trace: Trace) -> tuple[AlignmentHead, ...]:
    """Lists every head of cross-attention of a run, in either row."""
    if "cross" not in trace.attentions or not trace.output_tokens:
        return ()
    heads = [(layer, head) for layer in trace.cross.layers for head in range(trace.cross.n_heads)]
    return tuple(AlignmentHead(*head, row) for row in ROWS for head in heads)
