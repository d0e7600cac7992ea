"""The report of a mask check. Nothing here needs torch."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from transformer_viz.language import later, listed, say, sentences
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import Kind, head_title, kind_words

Rule = Literal["future", "target length", "source padding", "target padding", "batch invariance", "finite"]
RULES: dict[Rule, str] = {
    "future": later("a later target token changes nothing at an earlier step"),
    "target length": later("how long the target is changes nothing at an earlier step"),
    "source padding": later("padding of the source changes nothing"),
    "target padding": later("padding of the target changes nothing"),
    "batch invariance": later("a sentence in a padded batch is what it is alone"),
    "finite": later("every number is finite, but −∞ for a banned token"),
}
Verdict = Literal["sound", "length first", "leaking", "faulty", "not deterministic"]
HOW_TO_TURN = later(
    "If that is how you call it, check lambda source, target: f(source.T, target.T).transpose(0, 1). "
    "If you give it (batch, length), set batch_first=True: the sentences of a batch see each other."
)
"""The advice about a callable that takes the length first."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of rounding: a weight by this much, an output's number by this much of its size (docs/masks.md)."""

    same_shape: float
    other_shape: float


@dataclass(frozen=True)
class Precision:
    """The model's own precision, and the precision of the check.

    Attributes:
        own: the floating type that it answers in.
        computed_in: the one that it was computed in for the check.
        tolerance: what was let pass.
        why_coarser: why it was not float64; empty where it was.
    """

    own: str
    computed_in: str
    tolerance: Tolerance
    why_coarser: str = ""

    def __str__(self) -> str:
        same, other = self.tolerance.same_shape, self.tolerance.other_shape
        computed = (
            say("Computed in {precision}", precision=listed(self.computed_in.split(" and ")))
            if self.own == self.computed_in
            else say(
                "Computed in {precision}, the model's own is {own}",
                precision=listed(self.computed_in.split(" and ")),
                own=self.own,
            )
        )
        computed = say("{computed} ({why})", computed=computed, why=self.why_coarser) if self.why_coarser else computed
        allowed = (
            say("Allowed is a change of {size:.0e}.", size=same)
            if same == other
            else say(
                "Allowed is a change of {size:.0e}, and {other:.0e} where the length or the batch is another.",
                size=same,
                other=other,
            )
        )
        return sentences([say("{sentence}.", sentence=computed), allowed])


@dataclass(frozen=True)
class ForbiddenWeight:
    """The largest weight that a query put on a key that it must not see. Positions count from 0."""

    kind: Kind
    layer: int
    head: int
    query: int
    key: int
    weight: float

    def __str__(self) -> str:
        place = _place(self.kind, self.layer, self.head, self.query)
        fields: dict[str, Any] = {"place": place, "weight": self.weight, "key": self.key + 1}
        return say("{place} puts a weight of {weight:.3f} on the forbidden key {key}.", **fields)


@dataclass(frozen=True)
class Finding:
    """The worst case in which one rule was broken. Positions count from 0.

    Attributes:
        rule: which rule.
        size: how much changed: in weights (0 to 1), or in logits relative to their size (see `changes.Rows`).
        tolerance: what would have been let pass.
        count: how many rows (of attention or logits) changed more than that.
        kind: which attention; None where only the output shows it.
        layer: of the worst attention row.
        head: of the worst attention row.
        query: position of the row that changed.
        key: position of the token that was replaced, or of the first that was cut off.
        look: where attention is visible, the largest weight on a key that this rule forbids.
    """

    rule: Rule
    size: float
    tolerance: float
    count: int
    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    key: int | None = None
    look: ForbiddenWeight | None = None

    def __str__(self) -> str:
        if self.kind is None or self.layer is None or self.head is None:
            place = say("The output") if self.query is None else say("The output at step {step}", step=self.query + 1)
        else:
            place = _place(self.kind, self.layer, self.head, self.query)
        rows = count_words(self.count, "row")
        if self.rule == "finite":
            found = say("{place} holds numbers that are not finite ({rows}).", place=place, rows=rows)
        else:
            what = say(self._what, place=place, by=self._by, number="" if self.key is None else self.key + 1)
            limit = self.tolerance
            found = say("{what} (allowed {limit:.0e}; {rows}).", what=what, limit=limit, rows=rows)
        return sentences([found, *([] if self.look is None else [str(self.look)])])

    @property
    def _by(self) -> str:
        return say("by an amount that is not finite") if math.isinf(self.size) else say("by {size}", size=f"{self.size:.2g}")

    @property
    def _what(self) -> str:
        """Says what changed when, as a template."""
        if self.rule == "future":
            return later("{place} changed {by} when the later target token number {number} was replaced")
        if self.rule == "target length":
            return later(
                "{place} changed {by} when the target was cut off before token number {number}: it depends on the length of "
                "the target, which is not known while it is written"
            )
        if self.rule == "batch invariance":
            return later("{place} differs {by} between a padded batch and the sentence alone")
        if self.rule == "source padding":
            return (
                later("{place} changed {by} when padding was put at the end of the source")
                if self.key is None
                else later("{place} changed {by} when source padding at position {number} was replaced")
            )
        return (
            later("{place} changed {by} when padding was put at the end of the target")
            if self.key is None
            else later("{place} changed {by} when target padding at position {number} was replaced")
        )


@dataclass(frozen=True)
class Cause:
    """A known mistake that looks like what was found: its name, what it is called, and the code that puts it right."""

    name: str
    title: str
    fixed_code: str

    def __str__(self) -> str:
        return say(
            "This looks like “{title}” ({name}).\n  Put right: {code}",
            title=say(self.title),
            name=self.name,
            code=self.fixed_code,
        )


@dataclass(frozen=True)
class MaskReport:
    """The certificate.

    Attributes:
        verdict: `sound`, `leaking`, `faulty` (not finite, but nothing leaks), `not deterministic`, or `length first`: sound for
            (length, batch), while for (batch, length), which is asked for, sentences see each other.
        findings: the worst case of every broken rule.
        mistakes: the known mistakes that look like this; found from behaviour alone.
        checked: per rule the largest change that was seen, broken or not.
        pairs: how many pairs of source and target were tried.
        replacements: how many perturbed batches were run.
        notes: further observations that are no leaks.
        subject: what was checked, in words.
        precision: what it was computed in, and what was let pass.
        tried: the word for what `pairs` counts, which is texts for an encoder or a decoder alone.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    mistakes: tuple[Cause, ...]
    checked: dict[Rule, float]
    pairs: int
    replacements: int
    notes: tuple[str, ...] = ()
    subject: str = "the model"
    precision: Precision | None = None
    tried: Literal["pairs", "texts"] = "pairs"

    @property
    def sound(self) -> bool:
        """Tells whether nothing was found."""
        return self.verdict == "sound"

    @property
    def causes(self) -> tuple[str, ...]:
        """The names of `mistakes`."""
        return tuple(mistake.name for mistake in self.mistakes)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        n: dict[str, Any] = {"n": self.pairs, "batches": self.replacements}
        tried = (
            say("{n} pairs, {batches} perturbed batches", **n)
            if self.tried == "pairs"
            else say("{n} texts, {batches} perturbed batches", **n)
        )
        about = {"subject": self.subject, "tried": tried}
        match self.verdict:
            case "sound":
                return say("Sound: nothing that must not be seen changed anything in {subject} ({tried}).", **about)
            case "length first":
                return say(
                    "Length first: {subject} takes (length, batch), as nn.Transformer does without batch_first=True. In that "
                    "order nothing that must not be seen changed anything ({tried}). {what_to_do}",
                    what_to_do=say(HOW_TO_TURN),
                    **about,
                )
            case "leaking":
                return say("Leaking: {subject} sees what it must not see ({tried}).", **about)
            case "faulty":
                return say("Faulty: {subject} gives numbers that are not finite ({tried}).", **about)
            case _:
                return say(
                    "Not deterministic: {subject} gave two answers to the same question, so nothing can be said about its "
                    "masks. Call .eval(), which turns dropout off, and try again.",
                    subject=self.subject,
                )

    def __str__(self) -> str:
        computed = [] if self.precision is None else [str(self.precision)]
        lines = [f"- {finding.rule}: {finding}" for finding in self.findings]
        return "\n".join([self.headline, *computed, *lines, *map(str, self.mistakes), *self.notes])

    def to_json(self) -> dict[str, Any]:
        """Plain data; a change that is not finite is null."""

        def rounded(size: float) -> float | None:
            return None if math.isinf(size) else float(f"{size:.6g}")

        return {
            "sound": self.sound,
            "verdict": self.verdict,
            "headline": self.headline,
            "findings": [{**asdict(finding), "size": rounded(finding.size)} for finding in self.findings],
            "causes": list(self.causes),
            "checked": {rule: rounded(size) for rule, size in self.checked.items()},
            "pairs": self.pairs,
            "replacements": self.replacements,
            "notes": list(self.notes),
            "precision": None if self.precision is None else asdict(self.precision),
        }


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """The verdict, by the rules that were broken."""
    if not findings:
        return "sound"
    return "faulty" if all(finding.rule == "finite" for finding in findings) else "leaking"


def _place(kind: Kind, layer: int, head: int, query: int | None) -> str:
    title = kind_words(kind)
    fields: dict[str, Any] = {"attention": f"{title[0].upper()}{title[1:]}", "head": head_title(layer, head)}
    if query is None:
        return say("{attention}, {head}", **fields)
    return say("{attention}, {head}, query {query}", query=query + 1, **fields)
