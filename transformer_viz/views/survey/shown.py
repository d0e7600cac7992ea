"""The values that every tab of the page Over many texts gets."""

from dataclasses import dataclass

from transformer_viz.addresses import HeadAddress
from transformer_viz.surveys.result import Survey, SurveyedStatistic
from transformer_viz.views.components.markdown import sentence
from transformer_viz.views.state import display_options


@dataclass(frozen=True)
class Shown:
    """A survey, and what of it is looked at.

    Attributes:
        identity: tells it from all others.
        survey: the survey.
        number: by which heads are compared.
        head: in focus.
        beside: another survey of a model of the same sizes, or None.
    """

    identity: tuple[object, ...]
    survey: Survey
    number: SurveyedStatistic
    head: HeadAddress
    beside: Survey | None

    @property
    def is_large(self) -> bool:
        """Tells whether letters are for a projector."""
        return display_options.current().is_large

    def heading(self, said: str) -> str:
        """Writes a tab's first words as Markdown, in letters that a projector's room can read."""
        return f"#### {sentence(said)}" if self.is_large else f"**{sentence(said)}**"
