"""The head that is taken to align a run: for each word that was written, the words that it comes from.

`tv.alignment_heads` finds it. People write it `2.1`, or `2.1.reads` where a word is aligned in the row that reads it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer_viz.addresses import parse_head
from transformer_viz.errors import OptionError
from transformer_viz.terms import head_label
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace

RowOf = Literal["writes", "reads"]
ROWS: tuple[RowOf, ...] = ("writes", "reads")
"""Which row of a target word is looked at: the one that writes it, or the next one, which reads it."""
ROW_WORDS: dict[RowOf, str] = {"writes": "writes the word", "reads": "reads it"}


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
        """A head read from what people write, from 1; None for anything else."""
        head = parse_head(address.removesuffix(".reads"))
        return None if head is None else AlignmentHead(*head, "reads" if address.endswith(".reads") else "writes")

    @property
    def address(self) -> str:
        """The head as people write it, from 1."""
        return f"{self.layer + 1}.{self.head + 1}" + (".reads" if self.row == "reads" else "")

    def __str__(self) -> str:
        return head_label(self.layer, self.head) + (f" ({ROW_WORDS[self.row]})" if self.row == "reads" else "")

    def map_of(self, trace: Trace) -> np.ndarray:
        """float32 (step, key): of each step's word its row of the head; NaN for the last where it was not read."""
        weights = trace.cross.head(self.layer, self.head)
        return weights if self.row == "writes" else np.vstack([weights[1:], np.full_like(weights[:1], np.nan)])


def aligner_of(trace: Trace, address: str) -> AlignmentHead:
    """The head of a run that people mean.

    Raises:
        OptionError: the run has no such head.
    """
    found, there = AlignmentHead.read(address), possible(trace)
    if found is None or found not in there:
        which = f"{there[0].address} to {there[-1].address}" if there else "none in this run"
        raise OptionError(f"aligner {shorten(address)!r} is no head of cross-attention; possible is {which}")
    return found


def possible(trace: Trace) -> tuple[AlignmentHead, ...]:
    """All heads of cross-attention of a run, in either row."""
    if "cross" not in trace.attentions or not trace.output_tokens:
        return ()
    heads = [(layer, head) for layer in trace.cross.layers for head in range(trace.cross.n_heads)]
    return tuple(AlignmentHead(*head, row) for row in ROWS for head in heads)
