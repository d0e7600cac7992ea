"""A survey of many texts: what every head did, how heads agree, what was written, and where maps point.

Lines of a file of texts count from 1, as editors count them; layers and heads from 0, as everywhere in code. Everything in a
survey follows from texts, model and options: nothing says when, where, how fast or by how many processes it was made.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from transformer_viz import reading
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.analysis.intervals import normal
from transformer_viz.analysis.verdict import Verdicts
from transformer_viz.errors import FileError, OptionError, SurveyError, listed, quoted
from transformer_viz.schema import LARGEST, Count, Range, Share, read_value, to_plain
from transformer_viz.terms import KINDS, Kind

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
MOST_HEADS, MOST_COMPARED = 2**14, 512
MOST_BINS, MOST_STATISTICS, MOST_EXAMPLES, MOST_LENGTHS = 200, 100, 100, 2**16
_Edges = Annotated[tuple[float, ...], Range(2, MOST_BINS + 1)]
_ROUNDING = 1e-6


def require(is_so: bool, words: str) -> None:
    """Raises a SurveyError with these words unless it is so."""
    if not is_so:
        raise SurveyError(words)


def ascend(numbers: Iterable[float]) -> bool:
    """Whether each number is larger than the one before."""
    return all(a < b for a, b in pairwise(numbers))


@dataclass(frozen=True, kw_only=True)
class SurveyedModel:
    """Whose heads they are; `fingerprint` tells apart models of one name."""

    name: str
    variant: str
    parameters: Count
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A text that the model cannot read, cut where it is long, and why."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, kw_only=True)
class SurveyedTexts:
    """What was read.

    Attributes:
        source: the name of the file, or which texts of a task, in words.
        n: how many texts there were.
        n_read: how many of them the model could read: all statistics are over these.
        n_failed: how many it could not.
        failed: the first few of those.
        digest: of all lines; tells apart files of one name.
    """

    source: str
    n: Count
    n_read: Count
    n_failed: Count
    failed: Annotated[tuple[Failed, ...], Range(0, MOST_EXAMPLES)]
    digest: str

    def __post_init__(self) -> None:
        is_whole = self.n == self.n_read + self.n_failed
        require(is_whole, f"of {self.n} texts {self.n_read} were read and {self.n_failed} failed; these add up to all")
        fits = len(self.failed) <= self.n_failed and ascend(failed.line for failed in self.failed)
        require(fits, f"failed has {len(self.failed)} texts of {self.n_failed}, or their lines do not ascend")


@dataclass(frozen=True, kw_only=True)
class SurveyedStatistic:
    """What is measured of each head and text, and the edges of the bins in which texts are counted.

    Edges ascend, and need not be evenly spaced. The first and the last bin also hold what lies outside.
    """

    name: str
    title: str
    help: str
    is_share: bool
    edges: _Edges

    def __post_init__(self) -> None:
        require(ascend(self.edges), f"the edges of {quoted(self.name)} do not ascend")


@dataclass(frozen=True, kw_only=True)
class SurveyedKind:
    """The numbers of the layers that have this kind of attention, and the heads of each."""

    layers: tuple[Count, ...]
    n_heads: Count

    def __post_init__(self) -> None:
        fits = ascend(self.layers) and 0 < self.n <= MOST_HEADS
        words = f"{len(self.layers)} layers of {self.n_heads} heads; ascending numbers and up to {MOST_HEADS} heads are needed"
        require(fits, words)

    @property
    def n(self) -> int:
        """Heads of all layers."""
        return len(self.layers) * self.n_heads


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One statistic of one head over all texts that have it.

    Attributes:
        n: how many texts have it.
        mean: over texts, each of which counts alike.
        sd: standard deviation over texts; 0 of a single one.
        low: the lower end of the 95 % interval of the mean, mean ± 1.96 sd / √n.
        high: the upper end.
        min: the smallest.
        max: the largest.
        even: the mean for attention that looks at every allowed key alike; None where that is not computed.
        counts: texts in each bin of the statistic.
    """

    n: Count
    mean: float
    sd: Annotated[float, Range(0)]
    low: float
    high: float
    min: float
    max: float
    even: float | None
    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        require(0 < self.n == sum(self.counts), f"{self.n} texts, and {sum(self.counts)} in {len(self.counts)} bins")
        slack = _ROUNDING * (1 + abs(self.min) + abs(self.max))
        fits = self.min - slack <= self.mean <= self.max + slack and self.low - slack <= self.mean <= self.high + slack
        words = f"a mean of {self.mean:g} is not between {self.min:g} and {self.max:g}, or not in its interval"
        require(fits, words)


@dataclass(frozen=True, kw_only=True)
class TextValue:
    """A text and a head's statistic of it; the text is cut where it is long."""

    line: int
    text: str
    value: float


_Examples = Annotated[tuple[TextValue, ...], Range(0, MOST_EXAMPLES)]


@dataclass(frozen=True, kw_only=True)
class SurveyedHead:
    """One head.

    Attributes:
        n_texts: how many texts its roles are of.
        roles: how many texts each name of `analysis.head_names` was given for; names that were never given are not there.
        statistics: by name; None where no text has it.
        by: the statistic of the texts below; None where no text has it, and then there are none.
        highest: the texts with the largest values, the largest first; of equal ones the first line.
        typical: the texts nearest to the mean, the nearest first.
        unusual: the texts farthest from it on either side, the farthest first.
    """

    kind: Kind
    layer: int
    head: int
    n_texts: Count
    roles: Mapping[str, Annotated[int, Range(1, LARGEST)]]
    statistics: Mapping[str, Distribution | None]
    by: str | None
    highest: _Examples
    typical: _Examples
    unusual: _Examples

    def __post_init__(self) -> None:
        unknown = [name for name in self.roles if name not in ROLES]
        require(not unknown, f"{listed(map(quoted, unknown[:3]))} is no role; roles are {listed(sorted(ROLES))}")
        n_roles = sum(self.roles.values())
        require(n_roles == self.n_texts, f"roles of {n_roles} texts; each of the {self.n_texts} has one")
        require(self.by is None or self.statistics.get(self.by) is not None, f"no text has {quoted(self.by)}, its statistic")
        for name in ("highest", "typical", "unusual"):
            texts: tuple[TextValue, ...] = getattr(self, name)
            fits = len({text.line for text in texts}) == len(texts) and not (texts and self.by is None)
            require(fits, f"{name} has {len(texts)} texts by {quoted(self.by)}; one a line is possible")


@dataclass(frozen=True, kw_only=True)
class Correct:
    """How right outputs are.

    Attributes:
        n: outputs.
        n_known: those whose answer is known.
        n_exact: of these, how many are the answer, the end included.
        n_tokens: tokens of known answers, the end included.
        n_right: how many of these tokens were written at their place.
        bleu: corpus BLEU against the known answers, 0 to 100; None where none is known or sacrebleu is not installed.
    """

    n: Count
    n_known: Count
    n_exact: Count
    n_tokens: Count
    n_right: Count
    bleu: Annotated[float, Range(0, 100 + _ROUNDING)] | None

    def __post_init__(self) -> None:
        fits = self.n_exact <= self.n_known <= self.n and self.n_right <= self.n_tokens
        words = f"{self.n_exact} of {self.n_known} known of {self.n}, or {self.n_right} of {self.n_tokens} tokens, are right"
        require(fits, words)


@dataclass(frozen=True, kw_only=True)
class CorrectAtLength(Correct):
    """The same of texts of one length: source tokens without special ones."""

    length: Count


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """Written tokens by the probability that the model gave them, in bins between `edges`.

    Attributes:
        counts: all of them.
        n_judged: those that were written after a right prefix where the answer is known. What follows a wrong token is not
            judged.
        sum_p: the sum of their probabilities.
        n_right: how many of them are right.
    """

    edges: _Edges
    counts: tuple[Count, ...]
    n_judged: tuple[Count, ...]
    sum_p: tuple[Annotated[float, Range(0)], ...]
    n_right: tuple[Count, ...]

    def __post_init__(self) -> None:
        n = len(self.edges) - 1
        bins = (self.counts, self.n_judged, self.n_right, self.sum_p)
        fits = ascend(self.edges) and all(len(numbers) == n for numbers in bins)
        require(fits, f"{n} bins between edges that ascend need {n} counts")
        fits = all(
            right <= judged <= count and p <= judged * (1 + _ROUNDING) for count, judged, right, p in zip(*bins, strict=True)
        )
        require(fits, "more tokens are right than judged, or judged than written, or their probabilities are none")


@dataclass(frozen=True, kw_only=True)
class WorstOutput:
    """A wrong output, with the probability of its first wrong token; without a known answer, of a token on average (geometric
    mean).
    """

    line: int
    text: str
    output: str
    expected: str | None
    confidence: Share


@dataclass(frozen=True, kw_only=True)
class SurveyedOutputs(Correct):
    """What was written.

    Attributes:
        by_length: by the length of the source, ascending.
        confidence: all tokens that were written.
        worst: the surest mistakes, the surest first; where no answer is known, the least probable outputs.
    """

    by_length: Annotated[tuple[CorrectAtLength, ...], Range(0, MOST_LENGTHS)]
    confidence: Confidence
    worst: Annotated[tuple[WorstOutput, ...], Range(0, MOST_EXAMPLES)]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(ascend(part.length for part in self.by_length), "the lengths of by_length do not ascend")
        for name in ("n", "n_known", "n_exact", "n_tokens", "n_right"):
            total = sum(getattr(part, name) for part in self.by_length)
            require(total == getattr(self, name), f"by_length: {name} adds up to {total} instead of {getattr(self, name)}")
        fits = len({output.line for output in self.worst}) == len(self.worst) <= self.n
        require(fits, f"worst has {len(self.worst)} of {self.n} outputs; one a line is possible")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What a survey found.

    Attributes:
        model: whose.
        texts: over which texts.
        options: what else decides the numbers, as plain values.
        statistics: what is measured, in the order of tables.
        kinds: the kinds of attention that the model has.
        heads: by kind, layer and head.
        agreement: for each kind the share of rows with two allowed keys or more, mean over texts, in which two heads have their
            largest weight on the same key, (head, head), heads layer after layer; None where no text tells. A kind of more than
            `MOST_COMPARED` heads is left out.
        outputs: of a model that writes.
        verdict: over the sample for which it was asked; None where it was not.
        version: of the program that made it.
    """

    model: SurveyedModel
    texts: SurveyedTexts
    options: Annotated[Mapping[str, str | int | float | bool | None], Range(0, MOST_STATISTICS)]
    statistics: Annotated[tuple[SurveyedStatistic, ...], Range(0, MOST_STATISTICS)]
    kinds: Mapping[Kind, SurveyedKind]
    heads: tuple[SurveyedHead, ...]
    agreement: Mapping[Kind, tuple[tuple[Share | None, ...], ...]]
    outputs: SurveyedOutputs | None
    verdict: Verdicts | None
    version: str

    def __post_init__(self) -> None:
        n = self.texts.n_read
        names = [statistic.name for statistic in self.statistics]
        require(len(set(names)) == len(names), "two statistics have one name")
        kinds = [(kind, self.kinds[kind]) for kind in KINDS if kind in self.kinds]
        places = [(kind, layer, head) for kind, of in kinds for layer in of.layers for head in range(of.n_heads)]
        fits = [(head.kind, head.layer, head.head) for head in self.heads] == places
        require(fits, f"there are {len(self.heads)} heads; {len(places)} by kind, layer and head are needed")
        for head in self.heads:
            where = f"{head.kind} layer {head.layer} head {head.head}"
            require(head.n_texts <= n, f"{where}: {head.n_texts} texts of {n}")
            fits = list(head.statistics) == names
            require(fits, f"{where}: it has {listed(list(head.statistics)[:20])}; needed are {listed(names)}")
            for statistic in self.statistics:
                if (values := head.statistics[statistic.name]) is not None:
                    fits = values.n <= n and len(values.counts) == len(statistic.edges) - 1
                    words = f"{values.n} texts of {n} in {len(values.counts)} bins; {len(statistic.edges) - 1} are needed"
                    require(fits, f"{where}: {statistic.name}: {words}")
        for kind, rows in self.agreement.items():
            n_heads = self.kinds[kind].n if kind in self.kinds else 0
            fits = 0 < n_heads <= MOST_COMPARED and {len(rows), *map(len, rows)} == {n_heads}
            require(fits, f"agreement: {len(rows)} rows of {kind} for {n_heads} heads; as many rows of as many are needed")
        require(self.outputs is None or self.outputs.n <= n, f"more outputs than the {n} texts that were read")
        require(self.verdict is None or self.verdict.n_texts <= n, f"verdict: more texts than the {n} that were read")

    def at(self, kind: str, layer: int, head: int) -> SurveyedHead:
        """One head; layer and head from 0.

        Raises:
            OptionError: there is no such head.
        """
        for each in self.heads:
            if (each.kind, each.layer, each.head) == (kind, layer, head):
                return each
        has = [f"{name} with layers {listed(of.layers)} of {of.n_heads} heads" for name, of in self.kinds.items()]
        raise OptionError(f"there is no head {kind!r}, layer {layer!r}, head {head!r} in this survey; it has {'; '.join(has)}")

    def statistic(self, name: str) -> SurveyedStatistic:
        """What is measured under a name.

        Raises:
            OptionError: nothing is.
        """
        for each in self.statistics:
            if each.name == name:
                return each
        raise OptionError(f"{name!r} is not measured; choose one of {listed(each.name for each in self.statistics)}")

    def to_frame(self) -> "pd.DataFrame":
        """One row for each head and statistic that some text has: kind, layer, head, statistic, n, mean, sd, low, high, min,
        max, even. The share of texts with a role is the statistic `role NAME`.
        """
        import pandas as pd

        numbers = ("n", "mean", "sd", "low", "high", "min", "max", "even")
        rows: list[tuple[Any, ...]] = []
        for each in self.heads:
            place = (each.kind, each.layer, each.head)
            found = [(name, one) for name, one in each.statistics.items() if one is not None]
            found += [(f"role {name}", share(count, each.n_texts)) for name, count in each.roles.items()]
            rows += [(*place, name, *(getattr(one, number) for number in numbers)) for name, one in found]
        return pd.DataFrame(rows, columns=["kind", "layer", "head", "statistic", *numbers]).astype({"even": "float64"})

    def to_json(self) -> str:
        """All of it, as text that `from_json` reads."""
        return json.dumps({"format": FORMAT, **to_plain(self)}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Survey":
        """A survey from what `to_json` gave, which may have passed through anybody's hands.

        Raises:
            SurveyError: it is none, or its parts do not fit together; the message says which.
        """
        try:
            found = reading.parsed(text)
        except FileError as error:
            raise SurveyError(str(error)) from error
        given = found.pop("format", None) if isinstance(found, dict) else None
        if isinstance(given, bool) or given != FORMAT:
            raise SurveyError(f"its format is {repr(given)[:40]}, and this version reads format {FORMAT}; update the program")
        return read_value(cls, found, "the survey", SurveyError)


def share(count: int, n: int) -> Distribution:
    """So many of n texts, as the mean of a statistic that is 1 for these and 0 for the others."""
    p = count / n
    sd = (p * (1 - p) * n / (n - 1)) ** 0.5 if n > 1 else 0.0
    low, high = normal(p, sd, n)
    ends = {"low": low, "high": high, "min": float(count == n), "max": float(count > 0)}
    return Distribution(n=n, mean=p, sd=sd, **ends, even=None, counts=(n - count, count))
