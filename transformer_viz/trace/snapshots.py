"""A moment of a training: what the model did with one source when it had learned so far."""

from dataclasses import dataclass
from typing import Literal

from transformer_viz.trace.trace import Trace

Target = Literal["answer", "final output"]
"""What every moment reads: the task's true answer, or, where nobody knows it, what the finished model writes."""


@dataclass(frozen=True, kw_only=True)
class TrainingSnapshot:
    """One snapshot and what it makes of the source.

    Attributes:
        step: steps of training behind it; 0 = untrained.
        written: greedy decoding, what the model writes by itself; its rows differ from moment to moment.
        forced: one pass over a fixed target, so that its rows are the same at every moment.
        target: where that target comes from.
    """

    step: int
    written: Trace
    forced: Trace
    target: Target
