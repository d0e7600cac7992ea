"""Two surveys of models of the same sizes: how far each head's number differs, and whether that is more than chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_viz.analysis.intervals import difference
from transformer_viz.analysis.survey.readings import Estimate, Reading, estimate, reading
from transformer_viz.analysis.survey.result import Survey
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class HeadChange:
    """One head in both surveys; layer and head from 0.

    Attributes:
        a: its number in the first.
        b: in the second.
        low: of the 95 % interval of b − a.
        high: likewise.
    """

    kind: Kind
    layer: int
    head: int
    a: Estimate
    b: Estimate
    low: float
    high: float

    @property
    def difference(self) -> float:
        """b − a."""
        return self.b.value - self.a.value

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class SurveyComparison:
    """Every head that has the number in both surveys, in the order of the first.

    Attributes:
        reading: what is compared.
        heads: one each.
        is_same_texts: whether both surveyed the same texts; the intervals take them to be drawn independently, which is
            cautious then.
    """

    reading: Reading
    heads: tuple[HeadChange, ...]
    is_same_texts: bool

    @property
    def largest(self) -> HeadChange | None:
        """The head that differs most among those whose interval leaves 0 out; None where there is none."""
        return max(self.clear(), key=lambda head: abs(head.difference), default=None)

    def clear(self) -> Iterator[HeadChange]:
        """Those whose interval leaves 0 out."""
        return (head for head in self.heads if head.is_clear)

    def of(self, kind: Kind) -> Iterator[HeadChange]:
        """The heads of a kind."""
        return (head for head in self.heads if head.kind == kind)

    def to_frame(self) -> "pd.DataFrame":
        """One row a head."""
        import pandas as pd

        rows = [
            (each.kind, each.layer, each.head, each.a.value, each.b.value, each.difference, each.low, each.high)
            for each in self.heads
        ]
        return pd.DataFrame(rows, columns=["kind", "layer", "head", "a", "b", "difference", "low", "high"])


def compare_surveys(a: Survey, b: Survey, name: str) -> SurveyComparison:
    """b − a of one number, head by head.

    Args:
        a: the first survey.
        b: the second, of a model with as many layers and heads of each kind.
        name: of a number that both have, as `readings` calls it; a role that one of them does not have has the share 0 there.

    Raises:
        OptionError: the sizes differ, or neither has such a number.
    """
    if dict(a.kinds) != dict(b.kinds):
        raise OptionError(
            f"{a.model.name} and {b.model.name} differ in their numbers of layers or heads, so that no head of one is one of "
            "the other; compare surveys of one model, or of models of the same sizes."
        )
    compared = _reading_of_both(a, b, name)
    others = {(head.kind, head.layer, head.head): estimate(head, name) for head in b.heads}
    pairs = ((head, estimate(head, name), others[head.kind, head.layer, head.head]) for head in a.heads)
    changes = (
        HeadChange(head.kind, head.layer, head.head, first, second, *_interval(first, second))
        for head, first, second in pairs
        if first is not None and second is not None
    )
    return SurveyComparison(compared, tuple(changes), a.texts.digest == b.texts.digest)


def _interval(a: Estimate, b: Estimate) -> tuple[float, float]:
    return difference(a.value, (a.low, a.high), b.value, (b.low, b.high))


def _reading_of_both(a: Survey, b: Survey, name: str) -> Reading:
    try:
        return reading(a, name)
    except OptionError:
        return reading(b, name)
