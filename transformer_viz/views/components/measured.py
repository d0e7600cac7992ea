"""The measure that a page's player and maps show beside the weights or instead of them; by default none."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from transformer_viz.errors import join_names
from transformer_viz.language import later, say
from transformer_viz.sentences import attribution_maps
from transformer_viz.sentences.run_sentences import Sentence
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.state import levels, link

MEASURES = ("weights", "value", "cause")
"""The measures that maps show."""
BY_VALUE, BY_CAUSE = "value_weighted", "occlusion"
OF_SWITCH = {"value": BY_VALUE, "cause": BY_CAUSE}
_BUTTONS = {
    "weights": (later("weights"), "weight"),
    "value": (later("by value"), "value-weighted norm"),
    "cause": (later("cause"), "cause"),
}


def switched() -> str:
    """The measure that is switched on."""
    value = link.hidden("measure", MEASURES[1:].__contains__, join_names(MEASURES[1:]))
    return value or MEASURES[0]


def are_shown() -> bool:
    """Tells whether there is a switch of them: with all controls, and where something else than weights is chosen."""
    return levels.is_all() or switched() != MEASURES[0]


@dataclass(frozen=True)
class Measured:
    """The chosen measure, as far as it is known.

    Attributes:
        chosen: the switch of the player; nothing where it has none.
        results: of the kinds that have one.
        row: draws what there is to say, below the boxes of the focus.
        offered: the buttons of the switch.
    """

    chosen: str = ""
    results: Mapping[Kind, Attribution] = field(default_factory=dict)
    row: Callable[[], None] = lambda: None
    offered: Collection[str] = tuple(_BUTTONS)

    def of(self, kind: Kind) -> Attribution | None:
        """For a picture of this kind; of another kind where this one has none, so that its title says that it is weights."""
        return self.results.get(kind, next(iter(self.results.values()), None))

    @property
    def switch(self) -> list[dict[str, str]] | None:
        """The buttons of the switch, for the viewer; None where it has none."""
        if not self.chosen:
            return None
        buttons = ((value, *_BUTTONS[value]) for value in self.offered)
        return [{"value": value, "words": say(words), "title": glossary.sentence(term)} for value, words, term in buttons]

    def step_words(self, trace: Trace, kind: Kind, layer: int, head: Head, step: int) -> Sentence:
        """Says the words below the sentence of a step."""
        result = self.results.get(kind)
        return () if result is None else attribution_maps.step_words(trace, result, layer, head, step)


NOTHING = Measured()
"""No measure at all."""
