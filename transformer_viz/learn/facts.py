"""Facts of a run, as a lesson's claim speaks of them: a function for each name of `claims.FACTS`."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transformer_viz.addresses import HeadAddress, parse
from transformer_viz.analysis.grading import HeadGrade, alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.errors import LessonError
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.inside_head.numbers import value_of
from transformer_viz.learn.claims import Claim, computed
from transformer_viz.learn.example_run import Example, example_of, load_model, measured
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.links import Link
from transformer_viz.learn.questions import CAUSE
from transformer_viz.terms import place_label
from transformer_viz.text_display import display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace

_MANY_TEXTS = 1000


def claim_fault(claim: Claim, start: Link) -> str | None:
    """Says what is wrong with a claim, a sentence; None where it is so.

    Raises:
        TransformerVizError: its run cannot be made, or has no such row, head or token.
    """
    if claim.sum:
        return claim.fault(computed(claim))
    example = example_of(claim.link(start).address, is_of_writing=claim.is_of_writing)
    if example is None:
        raise LessonError(f"the page {start.page} shows no run to claim something of")
    return claim.fault(_FACTS[claim.what](_Claimed(claim, example)))


@dataclass(frozen=True)
class _Claimed:
    """A claim beside its run."""

    claim: Claim
    example: Example

    @property
    def trace(self) -> Trace:
        return self.example.trace

    @cached_property
    def place(self) -> HeadAddress:
        """The head that it names, or that is in focus."""
        focus = self.example.focus
        if not self.claim.head:
            return HeadAddress(focus.kind, focus.layer, int(focus.head))
        named, _ = parse(self.claim.head)
        assert named.layer is not None and named.head is not None
        return HeadAddress(named.kind, named.layer, named.head)

    @property
    def attention(self) -> Attention:
        return self.trace.attentions[self.place.kind]

    @property
    def weights(self) -> np.ndarray:
        """The weights of its head, float64 (query, key)."""
        return self.attention.head(self.place.layer, self.place.head).astype(np.float64)

    @property
    def grade(self) -> HeadGrade:
        return alignment(self.trace).at(self.place)

    @property
    def row(self) -> int:
        return self._below(self.claim.row, len(self.attention.queries), "row")

    @property
    def column(self) -> int:
        return self._below(self.claim.column, len(self.attention.keys), "column")

    @property
    def step(self) -> int:
        return self._below(self.claim.row, len(self.trace.steps), "step")

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe of the model."""
        return load_model(self.example.model.name).recipe

    def ask(self, kind: str) -> Ask:
        """A question about its head and row, for which `measured` finds what the run does not hold."""
        return Ask(kind=kind, number="score", head=str(self.place), row=self.row + 1)

    def key(self, key: int) -> str:
        """`10·h`, as on the axes."""
        return place_label(key, display_token(self.attention.keys[key]))

    def _below(self, number: int | None, n: int, what: str) -> int:
        if number is None or number >= n:
            raise LessonError(f"the claim {self.claim.text!r} has to name a {what} from 1 to {n}")
        return number


def _writes(of: _Claimed) -> str:
    """The whole text that the model writes, or one token of it."""
    return of.trace.text if of.claim.row is None else of.trace.steps[of.step].token


def _probability(of: _Claimed) -> float:
    """The probability of what is written at a step, or of another token there."""
    step = of.trace.steps[of.step]
    probabilities = dict(step.candidates) | {step.token: step.probability}
    if (name := of.claim.name or step.token) not in probabilities:
        raise LessonError(f"the claim {of.claim.text!r} names no candidate of that step")
    return probabilities[name]


def _taught(of: _Claimed) -> float:
    """The probability of a token of the target, where the model reads it as in training."""
    return of.trace.steps[of.step].probability


def _log_p(of: _Claimed) -> float:
    return float(sum(step.log_probability for step in of.trace.steps))


def _looks(of: _Claimed) -> str:
    """The key that a row looks at most."""
    return of.key(int(of.weights[of.row].argmax()))


def _darkest(of: _Claimed) -> float:
    """The row that gives a column most; the column stands where a row does elsewhere."""
    return 1 + int(of.weights[:, of._below(of.claim.row, len(of.attention.keys), "column")].argmax())


def _masked(of: _Claimed) -> str:
    """The columns that a row may not look at."""
    mask = of.attention.head_mask(of.place.layer, of.place.head)[of.row]
    return " ".join(str(key + 1) for key in np.flatnonzero(mask)) or "none"


def _inside(of: _Claimed) -> float:
    """A number inside a head by its address, as `score.5`."""
    [inside] = [one for one in measured(of.example, of.ask("number")).insides if one.row == of.row]
    return value_of(inside, of.claim.name)


def _causes(of: _Claimed) -> np.ndarray:
    """By how many nats what a row writes loses without each key."""
    causes = measured(of.example, of.ask("matters-most")).attributions[CAUSE].values
    return np.nan_to_num(causes[..., of.row, :].reshape(-1).astype(np.float64))


def _best(of: _Claimed) -> str:
    """The head of cross-attention with the largest weight on the right tokens."""
    if (best := best_head(of.trace)) is None:
        raise LessonError(f"the claim {of.claim.text!r} is of a run without right tokens")
    return str(HeadAddress("cross", best[0], best[1]))


def _frequent(of: _Claimed) -> str:
    """The token that stands most often in the right answers of the model's texts."""
    model = load_model(of.example.model.name)
    answers = (model.task.answer(model.task.read(text)) for text in sample_texts(model, _MANY_TEXTS, seed=0))
    return Counter(token for answer in answers for token in answer or ()).most_common(1)[0][0]


def _measure(of: _Claimed) -> float:
    value = of.grade.measures[of.claim.what]
    if value is None:
        raise LessonError(f"the claim {of.claim.text!r} is of a head without this measure")
    return value


_FACTS: dict[str, Callable[[_Claimed], float | str]] = {
    "writes": _writes,
    "probability": _probability,
    "log_p": _log_p,
    "written": lambda of: len(of.trace.steps),
    "taught": _taught,
    "reads": lambda of: of.attention.queries[of.row],
    "weight": lambda of: float(of.weights[of.row, of.column]),
    "looks": _looks,
    "darkest": _darkest,
    "masked": _masked,
    "inside": _inside,
    "cause": lambda of: float(_causes(of)[of.column]),
    "depends": lambda of: of.key(int(_causes(of).argmax())),
    "best": _best,
    "name": lambda of: of.grade.name,
    "palest": lambda of: float(of.weights.max(-1).min()),
    "maps": lambda of: sum(one.n_layers * one.n_heads for one in of.trace.attentions.values()),
    "trained": lambda of: float(of.recipe["steps"]),
    "lengths": lambda of: "{} to {}".format(*of.recipe["task_options"]["trained_lengths"]),
    "frequent": _frequent,
    **dict.fromkeys(MEASURES, _measure),
}
