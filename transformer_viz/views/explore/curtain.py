"""Decides once what may be seen of a run now: by a lesson's question, the first question, or *Hide the answer*.

Whatever is drawn is drawn from the run that the curtain gives, so nothing can tell by mistake.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from transformer_viz.language import later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import first_question
from transformer_viz.views.components.first_question import Offer
from transformer_viz.views.state import focus
from transformer_viz.views.state.display_options import DisplayOptions

if TYPE_CHECKING:
    # A lesson runs models, and a file is shown where there is no torch.
    from transformer_viz.views.components.lesson_card import Covered

_COVERED = later("This step is covered until the question is answered.")


@dataclass(frozen=True)
class Curtain:
    """The part of a run that may be seen.

    Attributes:
        row: from which on the run is covered; None where nothing is.
        words: at the rows that are covered.
        by_lesson: what a lesson's question covers, which is more than steps.
        asked: what the picture is told of a lesson's question, which is answered in it, or was.
        is_guessed: whether each covered row is guessed or revealed.
        offer: the first question, in the place of the covered row's sentence.
        hides_fills: whether what may stand at mask tokens is left out.
    """

    row: int | None = None
    words: str = field(default_factory=lambda: say(_COVERED))
    by_lesson: "Covered | None" = None
    asked: Mapping[str, Any] | None = None
    is_guessed: bool = False
    offer: Offer | None = None
    hides_fills: bool = False

    @property
    def is_open(self) -> bool:
        """Tells whether all may be seen."""
        return self.row is None and self.by_lesson is None

    def cover(self, trace: Trace) -> Trace:
        """The run as it may be seen."""
        if self.by_lesson is not None:
            return self.by_lesson.cover.of(trace)
        if self.row is not None:
            return hide_answer(trace, self.row)
        return replace(trace, fills=()) if self.hides_fills else trace


OPEN = Curtain(words="")
"""The curtain that covers nothing."""


def of_lesson(covered: "Covered | None") -> Curtain | None:
    """The curtain of a lesson's open step over a run, as `lesson_card.ask` says it; None where it covers nothing."""
    return None if covered is None else Curtain(covered.cover.step, covered.words, covered, covered.picture)


def of_page(shown: Trace, model: LoadedModel | None, chosen: DisplayOptions) -> Curtain:
    """The curtain of the first question, or of *Hide the answer*, over a run as it is shown."""
    if model is not None and (offer := first_question.asked(shown, model, chosen)) is not None:
        return Curtain(focus.step(), offer=offer)
    if not chosen.with_answer and shown.n_steps > 0:
        return Curtain(focus.step(), is_guessed=True)
    # An encoder alone writes nothing: its answer is what it puts at mask tokens.
    return OPEN if chosen.with_answer else Curtain(hides_fills=True)
