"""A survey of many texts: what every head did, how heads agree, what was written, and where maps point.

Lines of a file of texts count from 1, as editors count them; layers and heads from 0, as everywhere in code. Everything in a
survey follows from texts, model and options: nothing says when, where, how fast or by how many processes it was made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_viz import reading
from transformer_viz.analysis.intervals import normal
from transformer_viz.analysis.survey.checks import check
from transformer_viz.analysis.survey.fields import built, plain
from transformer_viz.analysis.verdict import Verdicts
from transformer_viz.errors import FileError, OptionError, SurveyError, listed
from transformer_viz.terms import Kind
from transformer_viz.version import __version__

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class SurveyedModel:
    """Whose heads they are; `fingerprint` tells apart models of one name."""

    name: str
    variant: str
    parameters: int
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
    n: int
    n_read: int
    n_failed: int
    failed: tuple[Failed, ...]
    digest: str


@dataclass(frozen=True, kw_only=True)
class SurveyedStatistic:
    """What is measured of each head and text, and the edges of the bins in which texts are counted.

    Edges ascend, and need not be evenly spaced. The first and the last bin also hold what lies outside.
    """

    name: str
    title: str
    help: str
    is_share: bool
    edges: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class SurveyedKind:
    """The numbers of the layers that have this kind of attention, and the heads of each."""

    layers: tuple[int, ...]
    n_heads: int


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

    n: int
    mean: float
    sd: float
    low: float
    high: float
    min: float
    max: float
    even: float | None
    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TextValue:
    """A text and a head's statistic of it; the text is cut where it is long."""

    line: int
    text: str
    value: float


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
    n_texts: int
    roles: Mapping[str, int]
    statistics: Mapping[str, Distribution | None]
    by: str | None
    highest: tuple[TextValue, ...]
    typical: tuple[TextValue, ...]
    unusual: tuple[TextValue, ...]


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

    n: int
    n_known: int
    n_exact: int
    n_tokens: int
    n_right: int
    bleu: float | None


@dataclass(frozen=True, kw_only=True)
class CorrectAtLength(Correct):
    """The same of texts of one length: source tokens without special ones."""

    length: int


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

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_judged: tuple[int, ...]
    sum_p: tuple[float, ...]
    n_right: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class WorstOutput:
    """A wrong output, with the probability of its first wrong token; without a known answer, of a token on average (geometric
    mean).
    """

    line: int
    text: str
    output: str
    expected: str | None
    confidence: float


@dataclass(frozen=True, kw_only=True)
class SurveyedOutputs(Correct):
    """What was written.

    Attributes:
        by_length: by the length of the source, ascending.
        confidence: all tokens that were written.
        worst: the surest mistakes, the surest first; where no answer is known, the least probable outputs.
    """

    by_length: tuple[CorrectAtLength, ...]
    confidence: Confidence
    worst: tuple[WorstOutput, ...]


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
    options: Mapping[str, Any]
    statistics: tuple[SurveyedStatistic, ...]
    kinds: Mapping[Kind, SurveyedKind]
    heads: tuple[SurveyedHead, ...]
    agreement: Mapping[Kind, tuple[tuple[float | None, ...], ...]]
    outputs: SurveyedOutputs | None
    verdict: Verdicts | None
    version: str = __version__

    def __post_init__(self) -> None:
        check(self)

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
        return json.dumps({"format": FORMAT, **plain(self)}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

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
        return built(cls, found, "the survey")


def share(count: int, n: int) -> Distribution:
    """So many of n texts, as the mean of a statistic that is 1 for these and 0 for the others."""
    p = count / n
    sd = (p * (1 - p) * n / (n - 1)) ** 0.5 if n > 1 else 0.0
    low, high = normal(p, sd, n)
    ends = {"low": low, "high": high, "min": float(count == n), "max": float(count > 0)}
    return Distribution(n=n, mean=p, sd=sd, **ends, even=None, counts=(n - count, count))
