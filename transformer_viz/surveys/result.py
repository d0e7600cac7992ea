"""The result of a survey: what every head did over many texts, how heads agree, the outputs, and a verdict on the maps.

Lines of a file count from 1, as in editors; layers and heads from 0, as everywhere in code. A survey depends on texts, model
and options alone: it does not record when, where, how fast or by how many processes it was made.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from transformer_viz import untrusted_files
from transformer_viz.addresses import Grid, HeadAddress, find_head
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.analysis.intervals import Interval, normal, wilson
from transformer_viz.analysis.measures import OF_MANY
from transformer_viz.attribution.result.verdict import Verdicts
from transformer_viz.errors import FileError, OptionError, SurveyError, join_names, short_repr
from transformer_viz.numbers_in_words import count_words
from transformer_viz.schema import Choice, Count, Range, Share, check_fields, read_value, to_plain
from transformer_viz.terms import KINDS, MODES, Kind

if TYPE_CHECKING:
    import pandas as pd

NAME = "summary.json"
CUT = 1000
"""Characters of a text, an output or a reason that are kept."""
FORMAT, LARGEST = 2, 2**26
"""The version of the file's format, and the most bytes of a file, which as Python objects takes up to 25 times as much."""
ROLE = "role "
"""The prefix of a role's name in the statistic that is the share of texts with this role."""
MOST_HEADS, MOST_COMPARED = 2**14, 512
MOST_BINS, MOST_STATISTICS, MOST_EXAMPLES, MOST_LENGTHS = 200, 100, 100, 2**16
_Edges = Annotated[tuple[float, ...], Range(2, MOST_BINS + 1)]
_ROUNDING = 1e-6


def require(is_so: bool, words: str) -> None:
    """Raises a SurveyError with these words unless it is so."""
    if not is_so:
        raise SurveyError(words)


def ascend(numbers: Iterable[float]) -> bool:
    """Tells whether each number is larger than the one before."""
    return all(a < b for a, b in pairwise(numbers))


@dataclass(frozen=True, kw_only=True)
class SurveyedModel:
    """The model of a survey; `fingerprint` tells apart models of one name."""

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
    """The texts that were read.

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
        fits = len(self.failed) <= self.n_failed and ascend(failed.line for failed in self.failed)
        require(fits, f"failed has {len(self.failed)} texts of {self.n_failed}, or their lines do not ascend")


@dataclass(frozen=True, kw_only=True)
class SurveyedStatistic:
    """A statistic of each head and text, with the edges of the bins of its histogram; or the share of texts with a role.

    Edges ascend, and need not be evenly spaced. The first and the last bin also hold what lies outside.
    """

    name: str
    title: str
    help: str
    is_share: bool
    edges: _Edges

    def __post_init__(self) -> None:
        require(ascend(self.edges), f"the edges of {short_repr(self.name)} do not ascend")

    @property
    def role(self) -> str | None:
        """The role, where it is one's share."""
        return self.name.removeprefix(ROLE) if self.name.startswith(ROLE) else None


SHARES = tuple(i / 20 for i in range(21))
SIZES = (*(i / 4 for i in range(33)), *(float(n * 2**i) for i in range(2, 8) for n in (3, 4)))
"""Edges for nats and positions: by a quarter up to 8, then 12, 16, 24, 32 … 512"""
STATISTICS = tuple(
    SurveyedStatistic(name=name, title=of.title, help=of.help, is_share=of.is_share, edges=SHARES if of.is_share else SIZES)
    for name, of in OF_MANY.items()
)
"""The statistics that are measured today; a survey's file may have others."""
NAMES = tuple(OF_MANY)


@dataclass(frozen=True, kw_only=True)
class SurveyOptions:
    """The arguments of `survey` that change its numbers; checked when they are made.

    Raises:
        OptionError: a number out of its range, or a word that is not known.
    """

    k: Annotated[int, Range(1, 50)] = 5
    by: Annotated[str, Choice(NAMES)] | None = None
    max_length: Annotated[int, Range(1, 100_000)] | None = None
    seed: Annotated[int, Range(0, 2**63 - 2)] = 0
    verdict_texts: Annotated[int, Range(0, 100_000)] = 300
    mode: Annotated[str, Choice(MODES)] = "word"

    def __post_init__(self) -> None:
        check_fields(self, OptionError)


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
class _OfHead:
    kind: Kind
    layer: Count
    head: Count

    @property
    def place(self) -> HeadAddress:
        """The head."""
        return HeadAddress(self.kind, self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class HeadStatistic(_OfHead):
    """One row of a survey's table: one statistic of one head over all texts that have it.

    Attributes:
        statistic: its name, or `role mirror` for the share of texts in which the head has that role.
        n: how many texts have it.
        mean: over texts, each of which counts alike.
        sd: standard deviation over texts; 0 of a single one.
        min: the smallest.
        max: the largest.
        uniform: the mean for attention that looks at every allowed key alike; None where that is not computed.
        counts: texts in each bin of the statistic; of a role those without and those with it.
    """

    statistic: str
    n: Count
    mean: float
    sd: Annotated[float, Range(0)]
    min: float
    max: float
    uniform: float | None
    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        if not 0 < self.n == sum(self.counts):
            raise SurveyError(f"{self.n} texts, and {sum(self.counts)} in {len(self.counts)} bins")
        slack = _ROUNDING * (1 + abs(self.min) + abs(self.max))
        if not self.min - slack <= self.mean <= self.max + slack:
            raise SurveyError(f"a mean of {self.mean:g} is not between {self.min:g} and {self.max:g}")

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the mean: mean ± 1.96 sd / √n, of a role's share Wilson's."""
        is_role = self.statistic.startswith(ROLE)
        return wilson(self.counts[1], self.n) if is_role else normal(self.mean, self.sd, self.n)


def role_share(place: HeadAddress, role: str, count: int, n: int) -> HeadStatistic:
    """The row of a role: the mean of a statistic that is 1 in the texts where the head has the role, and 0 in the others."""
    share = count / n
    return HeadStatistic(
        kind=place.kind,
        layer=place.layer,
        head=place.head,
        statistic=ROLE + role,
        n=n,
        mean=share,
        sd=(share * (1 - share) * n / (n - 1)) ** 0.5 if n > 1 else 0.0,
        min=float(count == n),
        max=float(count > 0),
        uniform=None,
        counts=(n - count, count),
    )


@dataclass(frozen=True, kw_only=True)
class TextValue:
    """A text and a head's statistic of it; the text is cut where it is long."""

    line: int
    text: str
    value: float


_Examples = Annotated[tuple[TextValue, ...], Range(0, MOST_EXAMPLES)]


@dataclass(frozen=True, kw_only=True)
class HeadTexts(_OfHead):
    """The texts that show a head best. A head without a number in any text has no such entry in the survey.

    Attributes:
        by: the statistic by which they are chosen.
        highest: those with the largest values, the largest first; of equal ones the first line.
        typical: those nearest to the mean, the nearest first.
        unusual: those farthest from it on either side, the farthest first.
    """

    by: str
    highest: _Examples
    typical: _Examples
    unusual: _Examples

    def __post_init__(self) -> None:
        for name in ("highest", "typical", "unusual"):
            texts: tuple[TextValue, ...] = getattr(self, name)
            fits = len({text.line for text in texts}) == len(texts)
            require(fits, f"{name} has {len(texts)} texts by {short_repr(self.by)}; one a line is possible")


@dataclass(frozen=True, kw_only=True)
class Correct:
    """The accuracy of outputs.

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
    """The accuracy of texts of one length (source tokens without special ones)."""

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
    """A wrong output with the probability of its first wrong token. Without a known answer, an output with the geometric mean
    of its tokens' probabilities.
    """

    line: int
    text: str
    output: str
    expected: str | None
    confidence: Share


@dataclass(frozen=True, kw_only=True)
class SurveyedOutputs(Correct):
    """The outputs that were written.

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
        fits = len({output.line for output in self.worst}) == len(self.worst) <= self.n
        require(fits, f"worst has {len(self.worst)} of {self.n} outputs; one a line is possible")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The result of a survey.

    Attributes:
        model: the model that was surveyed.
        texts: the texts that were read.
        options: the options that change the numbers, as plain values.
        statistics: what is measured, in the order of tables.
        kinds: the kinds of attention that the model has.
        heads: the table, a row for each head and each statistic or role that some text has.
        examples: the texts that show each head.
        agreement: for each kind the share of rows with two allowed keys or more, mean over texts, in which two heads have their
            largest weight on the same key, (head, head), heads layer after layer; None where no text tells. A kind of more than
            `MOST_COMPARED` heads is left out.
        outputs: of a model that writes.
        verdict: of the sampled texts; None where no verdict was asked for.
        version: of the program that made it.
    """

    model: SurveyedModel
    texts: SurveyedTexts
    options: Annotated[Mapping[str, str | int | float | bool | None], Range(0, MOST_STATISTICS)]
    statistics: Annotated[tuple[SurveyedStatistic, ...], Range(0, MOST_STATISTICS)]
    kinds: Mapping[Kind, SurveyedKind]
    heads: tuple[HeadStatistic, ...]
    examples: tuple[HeadTexts, ...]
    agreement: Mapping[Kind, tuple[tuple[Share | None, ...], ...]]
    outputs: SurveyedOutputs | None
    verdict: Verdicts | None
    version: str

    def __post_init__(self) -> None:
        n, places = self.texts.n_read, dict.fromkeys(self.places, 0)
        n_bins = {of.name: len(of.edges) - 1 for of in self.statistics} | {ROLE + role: 2 for role in ROLES}
        require(len(n_bins) == len(self.statistics) + len(ROLES), "two statistics have one name")
        for row in self.heads:
            place, name = row.place, row.statistic
            if place not in places or name not in n_bins:
                words = f"is no statistic and no role; these are {join_names(n_bins)}" if place in places else "of no such head"
                raise SurveyError(f"{place}: {short_repr(name)} {words}")
            if row.n > n or len(row.counts) != n_bins[name]:
                words = f"{row.n} texts of {n} in {len(row.counts)} bins; {n_bins[name]} are needed"
                raise SurveyError(f"{place}: {short_repr(name)}: {words}")
            places[place] += row.counts[1] if name.startswith(ROLE) else 0
        require(len(self._rows) == len(self.heads), "a statistic of a head stands twice")
        wrong = [f"{place}: roles of {n_roles} texts" for place, n_roles in places.items() if n_roles != n]
        require(not wrong, f"{''.join(wrong[:1])}; each of the {n} has one")
        wrong = [f"{of.place}: no text has {short_repr(of.by)}" for of in self.examples if (of.place, of.by) not in self._rows]
        require(not wrong, f"{''.join(wrong[:1])}, its statistic")
        require(len({texts.place for texts in self.examples}) == len(self.examples), "the examples of a head stand twice")
        for kind, rows in self.agreement.items():
            n_heads = self.kinds[kind].n if kind in self.kinds else 0
            fits = 0 < n_heads <= MOST_COMPARED and {len(rows), *map(len, rows)} == {n_heads}
            require(fits, f"agreement: {len(rows)} rows of {kind} for {n_heads} heads; as many rows of as many are needed")
        require(self.outputs is None or self.outputs.n <= n, f"more outputs than the {n} texts that were read")
        require(self.verdict is None or self.verdict.n_texts <= n, f"verdict: more texts than the {n} that were read")

    def __repr__(self) -> str:
        """One line."""
        sizes = ", ".join(f"{kind} {len(of.layers)}×{of.n_heads}" for kind, of in self.kinds.items())
        return f"<Survey of {self.model.name!r}: {count_words(self.texts.n_read, 'text')}, {sizes}>"

    @cached_property
    def places(self) -> tuple[HeadAddress, ...]:
        """The heads by kind, layer and head."""
        kinds = [(kind, self.kinds[kind]) for kind in KINDS if kind in self.kinds]
        return tuple(HeadAddress(kind, layer, head) for kind, of in kinds for layer in of.layers for head in range(of.n_heads))

    @cached_property
    def _rows(self) -> dict[tuple[HeadAddress, str], HeadStatistic]:
        return {(row.place, row.statistic): row for row in self.heads}

    @property
    def grid(self) -> Grid:
        """The layers and the number of heads of each kind."""
        return {kind: (self.kinds[kind].layers, self.kinds[kind].n_heads) for kind in KINDS if kind in self.kinds}

    def find(self, head: str | HeadAddress) -> HeadAddress:
        """The address of a head that the survey has.

        Raises:
            OptionError: there is no such head.
        """
        return find_head(head, self.grid, "this survey")

    def at(self, head: str | HeadAddress, name: str) -> HeadStatistic | None:
        """A head's statistic, or its share of texts with a role; None where no text has it.

        Raises:
            OptionError: there is no such head.
        """
        place = self.find(head)
        row = self._rows.get((place, name))
        if row is None and name.startswith(ROLE) and self.texts.n_read:
            return role_share(place, name.removeprefix(ROLE), 0, self.texts.n_read)
        return row

    def roles(self, head: str | HeadAddress) -> list[tuple[str, float]]:
        """The roles that a head has, and in which share of the texts, the most frequent first.

        Raises:
            OptionError: there is no such head.
        """
        place = self.find(head)
        rows = [self._rows[place, ROLE + role] for role in ROLES if (place, ROLE + role) in self._rows]
        shares = [(row.statistic.removeprefix(ROLE), row.mean) for row in rows]
        return sorted(shares, key=lambda role: (-role[1], role[0]))

    def texts_of(self, head: str | HeadAddress) -> HeadTexts | None:
        """The texts that show a head; None where no text has its number.

        Raises:
            OptionError: there is no such head.
        """
        place = self.find(head)
        return next((texts for texts in self.examples if texts.place == place), None)

    def statistic(self, name: str) -> SurveyedStatistic:
        """The statistic with this name.

        Raises:
            OptionError: there is none.
        """
        for statistic in self.statistics:
            if statistic.name == name:
                return statistic
        raise OptionError(f"{name!r} is not measured; choose one of {join_names(each.name for each in self.statistics)}")

    def to_frame(self) -> "pd.DataFrame":
        """The table as a data frame: kind, layer, head, statistic, n, mean, sd, low, high, min, max, uniform. low and high are
        mean ± 1.96 sd / √n.
        """
        import pandas as pd

        columns = ["kind", "layer", "head", "statistic", "n", "mean", "sd", "low", "high", "min", "max", "uniform"]
        rows = pd.DataFrame([vars(row) for row in self.heads], columns=columns).astype({"uniform": "float64"})
        rows["low"], rows["high"] = normal(rows["mean"], rows["sd"], rows["n"])
        return rows

    def to_json(self) -> str:
        """Writes the survey as text that `from_json` reads."""
        return json.dumps({"format": FORMAT, **to_plain(self)}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Survey":
        """A survey from the text of `to_json`, which is checked, since anybody may have changed it.

        Raises:
            SurveyError: it is none, or its parts do not fit together; the message says which.
        """
        try:
            data = untrusted_files.parse_json(text)
        except FileError as error:
            raise SurveyError(str(error)) from error
        given = data.pop("format", None) if isinstance(data, dict) else None
        if isinstance(given, bool) or given != FORMAT:
            raise SurveyError(
                f"its format is {repr(given)[:40]}, and this version reads format {FORMAT}; update the program, or "
                "make the survey anew"
            )
        return read_value(cls, data, "the survey", SurveyError)


def load_survey(path: str | PathLike[str]) -> Survey:
    """Reads a survey.

    Args:
        path: its file `summary.json`, or the folder of that file.

    Returns:
        The survey.

    Raises:
        SurveyError: there is no such file, or it is damaged, too large, or of another version.

    Example:
        >>> import tempfile, transformer_viz as tv
        >>> folder = tempfile.mkdtemp()
        >>> found = tv.survey("reverse-small", ["hello"], output=folder, workers=1, verdict_texts=0)
        >>> tv.load_survey(folder).texts.n
        1
    """
    file = Path(path) / NAME if untrusted_files.is_folder(Path(path)) else Path(path)
    try:
        return Survey.from_json(untrusted_files.read_bytes(file, LARGEST))
    except FileNotFoundError:
        raise SurveyError(f"There is no survey {str(file)[-200:]}.") from None
    except MemoryError:
        raise SurveyError(f"{file.name} needs more memory than there is.") from None
    except (FileError, SurveyError) as error:
        raise SurveyError(f"{file.name} is not a survey that this program can read: {error}.") from error
