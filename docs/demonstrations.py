"""Ten demonstrations for a lecture: each is a moment of a live page, what to say, and what to ask the hall."""

from dataclasses import dataclass
from urllib.parse import urlencode

from transformer_viz.terms import Kind


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """A moment of a run.

    Attributes:
        title: in a few words.
        say: what to say while it is looked at.
        ask: the hall, before the next press.
        model: one of those that have a live page.
        text: what it reads.
        layer: from 1, as in the address; so are head and step.
        head: that is looked at.
        step: at which the page opens.
        looks: the token that the head looks at most there.
        writes: the token that the model writes there.
        kind: of attention.
    """

    title: str
    say: str
    ask: str
    model: str
    text: str
    layer: int
    head: int
    step: int
    looks: str
    writes: str
    kind: Kind = "cross"

    @property
    def link(self) -> str:
        """From the site's folder."""
        place = {"kind": self.kind, "layer": self.layer, "head": self.head, "step": self.step}
        return f"{self.model}.html#{urlencode({**place, 'text': self.text})}"


_WORD, _LONG, _CASES = "hello", "ich weiß, dass die alte Frau gestern das Buch gelesen hat", "den Hund sieht der König"
_NUMBER = "siebenhundertdreiundzwanzig"

DEMONSTRATIONS = (
    Demonstration(
        title="It writes backwards, and nobody told it how",
        say="This model saw pairs of words, and learned to write the second from the first. At each step one head looks back.",
        ask="It has written the last letter first. Which one will it look at next?",
        model="reverse",
        text=_WORD,
        layer=2,
        head=2,
        step=1,
        looks="o",
        writes="o",
    ),
    Demonstration(
        title="A row is a moment, a column a letter",
        say="Each row of the map is one step. Dark is where it looked. The dark cells go down to the left.",
        ask="What would the map of a model look like that copies the word?",
        model="reverse",
        text=_WORD,
        layer=2,
        head=2,
        step=3,
        looks="l",
        writes="l",
    ),
    Demonstration(
        title="Three times the same letter",
        say="The word has three a. To write a right, any of them would do; it looks at the one whose turn it is.",
        ask="How can it tell them apart, if they are the same letter?",
        model="reverse",
        text="banana",
        layer=2,
        head=2,
        step=3,
        looks="a",
        writes="a",
    ),
    Demonstration(
        title="How it knows that it is done",
        say="After the last letter it writes an end. Its look has left the word, and rests on the sign before it.",
        ask="What would happen if it never wrote that sign?",
        model="reverse",
        text=_WORD,
        layer=2,
        head=2,
        step=6,
        looks="<start>",
        writes="<end>",
    ),
    Demonstration(
        title="It reads what it has written",
        say="Rows are the same steps, columns now its own letters so far. What is to come is masked: it cannot look there.",
        ask="Why does a model that writes look at its own words at all?",
        model="reverse",
        text="banana",
        layer=2,
        head=2,
        step=4,
        looks="n",
        writes="n",
        kind="decoder",
    ),
    Demonstration(
        title="The verb comes last",
        say="German puts “gelesen” at the end, English needs “read” early. The look jumps over five words.",
        ask="Which word does it look at after that: on, or back?",
        model="german",
        text=_LONG,
        layer=2,
        head=2,
        step=7,
        looks="gelesen",
        writes="read",
    ),
    Demonstration(
        title="A translation is a crossing",
        say="Now “yesterday”, from the middle of the German sentence. One more press, and all looks are drawn at once.",
        ask="Which lines cross, and what would they look like between English and French?",
        model="german",
        text=_LONG,
        layer=2,
        head=2,
        step=10,
        looks="gestern",
        writes="yesterday",
    ),
    Demonstration(
        title="Two heads, two words, one verb",
        say="Where “read” is written, this head looks at “hat”, which says that it is past; head 2 looks at “gelesen”.",
        ask="Would one head be enough?",
        model="german",
        text=_LONG,
        layer=2,
        head=1,
        step=7,
        looks="hat",
        writes="read",
    ),
    Demonstration(
        title="Who sees whom",
        say="“den Hund” comes first and is the one that is seen: “den” says so. To write “king” it looks to the end.",
        ask="Change “den” to “der” and “der” to “den”. What will it write?",
        model="german",
        text=_CASES,
        layer=2,
        head=1,
        step=2,
        looks="König",
        writes="king",
    ),
    Demonstration(
        title="Three and twenty",
        say="German says the units before the tens. To write the 2 it skips “drei” and looks at “zwanzig”.",
        ask="In which other language would these lines cross? And would they in yours?",
        model="numbers",
        text=_NUMBER,
        layer=2,
        head=1,
        step=2,
        looks="zwanzig",
        writes="2",
    ),
)
