"""The results of a training, without torch: its history, its snapshots, each head's progress, and snapshots in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from transformer_viz.analysis.head_rows import HeadRows
from transformer_viz.analysis.measures import entropy_share
from transformer_viz.analysis.query_rows import head_mass
from transformer_viz.language import say
from transformer_viz.numbers_in_words import count_words, percent_words
from transformer_viz.schema import Count, Share
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, say_sentence
from transformer_viz.terms import Kind, head_title
from transformer_viz.trace.trace import Trace

Target = Literal["answer", "final output"]
"""The target that every moment reads: the task's true answer, or, where nobody knows it, what the finished model writes."""
Measure = Literal["mass", "entropy"]
"""The measure of a head's progress: mean weight on the true key or, without a true key, mean entropy of its rows."""
Row = Mapping[str, Any]
"""A row of a training's history: `step`, `loss` and others, in some rows `held_out` and `mass_LAYER_HEAD`."""
_MASS = "mass_"


@dataclass(frozen=True)
class Event:
    """The measurements after a step; loss and entropy in nats, accuracies over tokens and over whole texts of the batch."""

    step: Count
    loss: float
    token_accuracy: Share
    sequence_accuracy: Share
    learning_rate: float
    attention_entropy: float | None
    """Mean entropy of the cross-attention rows, where the recipe weighs it."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """The accuracy on held-out texts after this step (`make_checkpoint.check_held_out`)."""

    def row(self) -> Row:
        """The event as a row of the history."""
        row = dict(vars(self))
        return row | row.pop("checks")


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


@dataclass(frozen=True, eq=False)
class Course:
    """One number from 0 to 1 for each moment and head.

    Attributes:
        measure: what is measured.
        values: float64 (moment, layer, head), for the layers that the runs have. Entropy is a share of the largest
            possible, the logarithm of the number of allowed keys: 1 = uniform attention, 0 = each row looks at one key.
        uniform: the number of a head that spreads every row evenly over its allowed keys.
    """

    measure: Measure
    values: np.ndarray
    uniform: float


def course(moments: Sequence[TrainingSnapshot], kind: Kind) -> Course:
    """The progress of every head of a kind: mass on the true key in cross-attention with a true alignment, else entropy."""
    traces = [moment.forced for moment in moments]
    masses = [head_mass(trace) for trace in traces] if kind == "cross" else []
    known = [mass for mass in masses if mass is not None]
    # Of a moment that is covered until somebody has answered nothing is known.
    is_covered = [bool(trace.attentions[kind].covered) for trace in traces]
    if known:
        rows = [t for t, key in enumerate(traces[0].alignment) if key is not None]
        allowed = (~traces[0].cross.mask[rows]).sum(-1)
        values = np.where(np.reshape(is_covered, (-1, 1, 1)), np.nan, np.stack(known))
        return Course("mass", values, float((1 / np.maximum(allowed, 1)).mean()))
    # 0 where no row has a choice of keys.
    shares = np.stack([np.nan_to_num(entropy_share(HeadRows.of(trace, kind))) for trace in traces])
    return Course("entropy", np.where(np.reshape(is_covered, (-1, 1, 1)), np.nan, shares), 1.0)


def certainty(moment: TrainingSnapshot) -> float:
    """The mean probability of the target's tokens, each after the true ones before it."""
    return float(np.mean([step.probability for step in moment.forced.steps]))


def snapshot_sentence(moment: TrainingSnapshot, place: int, found: Course, kind: Kind, layer: int, head: int) -> Sentence:
    """A sentence about the output at a moment, and about a head.

    ``After 128 steps of training the model writes `olelh`, which is wrong; layer 1 head 2 has 43 % of its attention on the
    right tokens.``
    """
    text = moment.written.text
    fields: dict[str, Any] = {"when": ("strong", when(moment.step)), "text": of_run(text) if text else say("nothing")}
    writes = (
        say_sentence("{when} the model writes {text} and does not stop", **fields)
        if moment.written.finished == "length"
        else say_sentence("{when} the model writes {text}", **fields)
    )
    if moment.written.is_right is not None:
        verdict: Piece = ("strong", say("right") if moment.written.is_right else say("wrong"))
        writes = say_sentence("{writes}, which is {verdict}", writes=writes, verdict=verdict)
    value = float(found.values[place, moment.forced.attentions[kind].layer_index(layer), head])
    about: dict[str, Any] = {"writes": writes, "head": head_title(layer, head), "share": percent_words(value)}
    if found.measure == "mass":
        return say_sentence("{writes}; {head} has {share} of its attention on the right tokens.", **about)
    return say_sentence("{writes}; the rows of {head} have {share} of the entropy of uniform attention.", **about)


def when(step: int) -> str:
    """`After 128 steps of training`."""
    if step == 0:
        return say("Before any training")
    return say("After {steps} of training", steps=count_words(step, "step"))


def head_masses(rows: Sequence[Row]) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """(layer, head) from 0 -> (step, mass on the true key), from the rows of a history that have it."""
    masses: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in row.items():
            parts = name.removeprefix(_MASS).split("_")
            if name.startswith(_MASS) and isinstance(value, int | float) and len(parts) == 2:
                masses.setdefault((int(parts[0]), int(parts[1])), []).append((row["step"], float(value)))
    return masses


def best_head(rows: Sequence[Row]) -> tuple[int, int]:
    """Layer and head, from 0, with the most mass on the true key in the end; the first one where no row says."""
    masses = head_masses(rows)
    return max(masses, key=lambda place: masses[place][-1][1], default=(0, 0))
