"""The values that every tab of the page Over many texts gets."""

from dataclasses import dataclass

from transformer_viz.addresses import HeadPlace
from transformer_viz.figures.theme import ThemeName
from transformer_viz.surveys.columns import Column
from transformer_viz.surveys.result import Survey
from transformer_viz.views.components.markdown import sentence


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A survey as it is looked at.

    Attributes:
        name: by which it was chosen.
        identity: tells it from all others.
        survey: the survey.
        number: by which heads are compared.
        head: in focus.
        beside: another survey of a model of the same sizes, or None.
        theme: of the page.
        is_large: large letters.
    """

    name: str
    identity: tuple[object, ...]
    survey: Survey
    number: Column
    head: HeadPlace
    beside: Survey | None
    theme: ThemeName
    is_large: bool

    def heading(self, said: str) -> str:
        """What a tab says first, as Markdown, in letters that a projector's room can read."""
        return f"#### {sentence(said)}" if self.is_large else f"**{sentence(said)}**"
