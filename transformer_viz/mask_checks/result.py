"""The report of a mask check. Nothing here needs torch."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from transformer_viz.numbers_in_words import count_words, number_words, rounded_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title

Rule = Literal["future", "target length", "source padding", "target padding", "batch invariance", "finite"]
RULES: dict[Rule, str] = {
    "future": "a later target token changes nothing at an earlier step",
    "target length": "how long the target is changes nothing at an earlier step",
    "source padding": "padding of the source changes nothing",
    "target padding": "padding of the target changes nothing",
    "batch invariance": "a sentence in a padded batch is what it is alone",
    "finite": "every number is finite, but −∞ for a banned token",
}
Verdict = Literal["sound", "length first", "leaking", "faulty", "not deterministic"]
HOW_TO_TURN = (
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
        allowed = f"{same:.0e}" if same == other else f"{same:.0e}, and {other:.0e} where the length or the batch is another"
        words = f"Computed in {self.computed_in}" + ("" if self.own == self.computed_in else f", the model's own is {self.own}")
        return words + (f" ({self.why_coarser})" if self.why_coarser else "") + f". Allowed is a change of {allowed}."


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
        return f"{place} puts a weight of {number_words(self.weight, 3)} on the forbidden key {self.key + 1}."


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
            place = "The output" if self.query is None else f"The output at step {self.query + 1}"
        else:
            place = _place(self.kind, self.layer, self.head, self.query)
        look = "" if self.look is None else f" {self.look}"
        if self.rule == "finite":
            return f"{place} holds numbers that are not finite ({count_words(self.count, 'row')}).{look}"
        by = "by an amount that is not finite" if math.isinf(self.size) else f"by {rounded_words(self.size, 2)}"
        number = "" if self.key is None else f"number {self.key + 1}"
        if self.rule == "future":
            what = f"changed {by} when the later target token {number} was replaced"
        elif self.rule == "target length":
            what = f"changed {by} when the target was cut off before token {number}: it depends on the length of the target, "
            what += "which is not known while it is written"
        elif self.rule == "batch invariance":
            what = f"differs {by} between a padded batch and the sentence alone"
        elif self.key is None:
            what = f"changed {by} when padding was put at the end of the {self.rule.split()[0]}"
        else:
            what = f"changed {by} when {self.rule} at position {self.key + 1} was replaced"
        return f"{place} {what} (allowed {self.tolerance:.0e}; {count_words(self.count, 'row')}).{look}"


@dataclass(frozen=True)
class Cause:
    """A known mistake that looks like what was found: its name, what it is called, and the code that puts it right."""

    name: str
    title: str
    fixed_code: str

    def __str__(self) -> str:
        return f"This looks like “{self.title}” ({self.name}).\n  Put right: {self.fixed_code}"


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
        """Whether nothing was found."""
        return self.verdict == "sound"

    @property
    def causes(self) -> tuple[str, ...]:
        """The names of `mistakes`."""
        return tuple(mistake.name for mistake in self.mistakes)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        tried = f"{self.pairs} {self.tried}, {self.replacements} perturbed batches"
        match self.verdict:
            case "sound":
                return f"Sound: nothing that must not be seen changed anything in {self.subject} ({tried})."
            case "length first":
                return (
                    f"Length first: {self.subject} takes (length, batch), as nn.Transformer does without batch_first=True. "
                    f"In that order nothing that must not be seen changed anything ({tried}). {HOW_TO_TURN}"
                )
            case "leaking":
                return f"Leaking: {self.subject} sees what it must not see ({tried})."
            case "faulty":
                return f"Faulty: {self.subject} gives numbers that are not finite ({tried})."
            case _:
                return (
                    f"Not deterministic: {self.subject} gave two answers to the same question, so nothing can be said about "
                    "its masks. Call .eval(), which turns dropout off, and try again."
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
    title = KIND_TITLES[kind]
    words = f"{title[0].upper()}{title[1:]}, {head_title(layer, head)}"
    return words if query is None else f"{words}, query {query + 1}"
