"""`compare_surveys`: how far each head's number differs between two surveys, and whether by more than chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis.intervals import difference
from transformer_viz.errors import OptionError
from transformer_viz.surveys.columns import column, columns
from transformer_viz.surveys.result import HeadStatistic, Survey, SurveyedStatistic
from transformer_viz.terms import Kind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class HeadChange:
    """One head in both surveys.

    Attributes:
        place: which head.
        a: its number in the first.
        b: in the second.
    """

    place: HeadPlace
    a: HeadStatistic
    b: HeadStatistic

    @property
    def difference(self) -> float:
        """b − a."""
        return self.b.mean - self.a.mean

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of b − a, as if the texts of both were drawn independently."""
        return difference(self.a.mean, self.a.interval, self.b.mean, self.b.interval)

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        low, high = self.interval
        return low > 0 or high < 0


@dataclass(frozen=True)
class SurveyComparison:
    """Every head that has the number in both surveys, in the order of the first.

    Attributes:
        column: what is compared.
        heads: one each.
        is_same_texts: whether both surveyed the same texts; the intervals are cautious then.
    """

    column: SurveyedStatistic
    heads: tuple[HeadChange, ...]
    is_same_texts: bool

    @property
    def largest(self) -> HeadChange | None:
        """The head that differs most among those whose interval leaves 0 out; None where there is none."""
        return max(self.significant(), key=lambda head: abs(head.difference), default=None)

    def significant(self) -> Iterator[HeadChange]:
        """The heads whose interval leaves 0 out."""
        return (head for head in self.heads if head.is_significant)

    def of(self, kind: Kind) -> list[HeadChange]:
        """The heads of a kind."""
        return [head for head in self.heads if head.place.kind == kind]

    def to_frame(self) -> "pd.DataFrame":
        """One row a head."""
        import pandas as pd

        rows = [
            (head.place.kind, head.place.layer, head.place.head, head.a.mean, head.b.mean, head.difference, *head.interval)
            for head in self.heads
        ]
        return pd.DataFrame(rows, columns=["kind", "layer", "head", "a", "b", "difference", "low", "high"])


def compare_surveys(a: Survey, b: Survey, name: str) -> SurveyComparison:
    """Subtracts one number of survey `a` from that of survey `b`, head by head.

    Args:
        a: the first survey.
        b: the second, of a model with as many layers and heads of each kind.
        name: a number that both have, by its name in `columns`; a role that no head of one survey has counts as 0 there.

    Raises:
        OptionError: the sizes differ, or neither has such a number.
    """
    if dict(a.kinds) != dict(b.kinds):
        raise OptionError(
            f"{a.model.name} and {b.model.name} differ in their numbers of layers or heads, so that no head of one is one of "
            "the other; compare surveys of one model, or of models of the same sizes."
        )
    compared = column(a if name in columns(a) else b, name)
    pairs = [(place, a.at(place, name), b.at(place, name)) for place in a.places]
    changes = [HeadChange(place, first, second) for place, first, second in pairs if first is not None and second is not None]
    return SurveyComparison(compared, tuple(changes), a.texts.digest == b.texts.digest)
