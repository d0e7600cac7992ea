"""The options that change a survey's numbers."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from transformer_viz.errors import OptionError
from transformer_viz.schema import Choice, Range, check_fields
from transformer_viz.terms import MODES

MOST_KEPT, MOST_VERDICT_TEXTS, LARGEST_SEED, LONGEST = 50, 100_000, 2**63 - 2, 100_000


@dataclass(frozen=True, kw_only=True)
class SurveyOptions:
    """Checked when they are made; plain data.

    Attributes:
        k: how many texts are kept of each head, the most typical and the most unusual, and how many of the worst outputs.
        by: the statistic that makes texts typical or unusual; None = the mass where there is a true key, else the entropy.
        max_length: the most tokens to write, the end included; None = as the model.
        seed: which texts the verdicts take; also of their intervals, and of which held-out texts are drawn.
        verdict_texts: the number of texts on which `tv.verdict` judges attention; 0 = none.
        mode: how these verdicts occlude a token, as in `tv.attribute`.

    Raises:
        OptionError: a number out of its range, or a mode that is not known.
    """

    k: Annotated[int, Range(1, MOST_KEPT)] = 5
    by: str | None = None
    max_length: Annotated[int, Range(1, LONGEST)] | None = None
    seed: Annotated[int, Range(0, LARGEST_SEED)] = 0
    verdict_texts: Annotated[int, Range(0, MOST_VERDICT_TEXTS)] = 300
    mode: Annotated[str, Choice(MODES)] = "word"

    def __post_init__(self) -> None:
        check_fields(self, OptionError)

    def of_blocks(self) -> dict[str, Any]:
        """The options that change a block's result: all but those about the lists that are made when blocks are merged."""
        return {name: value for name, value in asdict(self).items() if name not in ("k", "by")}
