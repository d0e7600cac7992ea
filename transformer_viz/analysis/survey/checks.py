"""Whether the parts of a survey fit together; the first that do not are named. Numbers are checked where they are read."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from transformer_viz.analysis.head_names import PLACES, WIDTHS
from transformer_viz.errors import SurveyError, listed
from transformer_viz.terms import KINDS

if TYPE_CHECKING:
    from transformer_viz.analysis.survey.result import (
        Confidence,
        Correct,
        Distribution,
        Survey,
        SurveyedHead,
        SurveyedOutputs,
        SurveyedStatistic,
        TextValue,
    )
    from transformer_viz.analysis.verdict import Mean

MOST_HEADS, MOST_COMPARED = 2**14, 512
MOST_BINS, MOST_STATISTICS, MOST_EXAMPLES, MOST_LENGTHS = 200, 100, 100, 2**16
_ROLES = {*(place.name for place in PLACES), *WIDTHS}
_ROUNDING = 1e-6


def check(survey: "Survey") -> None:
    """Raises a SurveyError that names the parts which do not fit together."""
    _check_texts(survey)
    _check_statistics(survey.statistics)
    _check_kinds(survey)
    for head in survey.heads:
        _check_head(survey, head)
    _check_agreement(survey)
    if survey.outputs is not None:
        _check_outputs(survey, survey.outputs)
    if survey.verdict is not None:
        _check_verdict(survey)


def _must(fits: bool, words: str) -> None:
    if not fits:
        raise SurveyError(words)


def _check_texts(survey: "Survey") -> None:
    texts = survey.texts
    fits = texts.n_read >= 0 and texts.n_failed >= 0 and texts.n == texts.n_read + texts.n_failed
    _must(fits, f"of {texts.n} texts {texts.n_read} were read and {texts.n_failed} failed; these add up to all")
    fits = len(texts.failed) <= min(texts.n_failed, MOST_EXAMPLES) and _ascend(each.line for each in texts.failed)
    _must(fits, f"failed has {len(texts.failed)} texts of {texts.n_failed}, or their lines do not ascend")
    _must(survey.model.parameters >= 0, f"the model has {survey.model.parameters} parameters")
    _must(len(survey.options) <= MOST_STATISTICS, f"there are {len(survey.options)} options; {MOST_STATISTICS} are allowed")


def _check_statistics(statistics: "Sequence[SurveyedStatistic]") -> None:
    names = [each.name for each in statistics]
    fits = len(set(names)) == len(names) <= MOST_STATISTICS
    _must(fits, f"there are {len(names)} statistics; at most {MOST_STATISTICS} of different names are needed")
    for each in statistics:
        fits = 2 <= len(each.edges) <= MOST_BINS + 1 and _ascend(each.edges)
        _must(fits, f"statistic {each.name!r} has {len(each.edges)} edges; 2 to {MOST_BINS + 1} that ascend are needed")


def _check_kinds(survey: "Survey") -> None:
    places = []
    for kind in KINDS:
        if (of := survey.kinds.get(kind)) is None:
            continue
        fits = _ascend((-1, *of.layers)) and 0 < len(of.layers) * of.n_heads <= MOST_HEADS
        words = (
            f"{kind}: {len(of.layers)} layers of {of.n_heads} heads; ascending numbers and up to {MOST_HEADS} heads are needed"
        )
        _must(fits, words)
        places += [(kind, layer, head) for layer in of.layers for head in range(of.n_heads)]
    given = [(each.kind, each.layer, each.head) for each in survey.heads]
    _must(given == places, f"there are {len(given)} heads; {len(places)} by kind, layer and head are needed")


def _check_head(survey: "Survey", head: "SurveyedHead") -> None:
    where, n = f"{head.kind} layer {head.layer} head {head.head}", survey.texts.n_read
    _must(0 <= head.n_texts <= n, f"{where}: {head.n_texts} texts of {n}")
    unknown = [name for name in head.roles if name not in _ROLES]
    _must(not unknown, f"{where}: {listed(unknown[:3])} is no role; roles are {listed(sorted(_ROLES))}")
    fits = min(head.roles.values(), default=1) > 0 and sum(head.roles.values()) == head.n_texts
    _must(fits, f"{where}: roles of {sum(head.roles.values())} texts; each has one of the {head.n_texts}")
    names = [each.name for each in survey.statistics]
    _must(list(head.statistics) == names, f"{where}: it has {listed(list(head.statistics)[:20])}; needed are {listed(names)}")
    for each in survey.statistics:
        if (found := head.statistics[each.name]) is not None:
            _check_distribution(f"{where}: {each.name}", found, len(each.edges) - 1, n)
    _must(head.by is None or head.statistics.get(head.by) is not None, f"{where}: no text has {head.by!r}, its statistic")
    for name in ("highest", "typical", "unusual"):
        found: tuple[TextValue, ...] = getattr(head, name)
        lines = {each.line for each in found}
        fits = len(lines) == len(found) <= (0 if head.by is None else MOST_EXAMPLES)
        _must(fits, f"{where}: {name} has {len(found)} texts by {head.by!r}; one a line and at most {MOST_EXAMPLES} are needed")


def _check_distribution(where: str, found: "Distribution", n_bins: int, most: int) -> None:
    fits = 0 < found.n <= most and len(found.counts) == n_bins and _count(found.counts, found.n)
    _must(fits, f"{where}: {found.n} texts of {most} in {len(found.counts)} bins; {n_bins} that hold all of them are needed")
    slack = _ROUNDING * (1 + abs(found.min) + abs(found.max))
    fits = found.min - slack <= found.mean <= found.max + slack and found.sd >= 0
    fits = fits and found.low - slack <= found.mean <= found.high + slack
    _must(fits, f"{where}: a mean of {found.mean:g} is not between {found.min:g} and {found.max:g}, or not in its interval")


def _check_agreement(survey: "Survey") -> None:
    for kind, rows in survey.agreement.items():
        of = survey.kinds.get(kind)
        n = 0 if of is None else len(of.layers) * of.n_heads
        fits = 0 < n <= MOST_COMPARED and len(rows) == n and all(len(row) == n for row in rows)
        _must(fits, f"agreement: {len(rows)} rows of {kind} for {n} heads; {n} rows of {n} numbers are needed")
        fits = all(share is None or -_ROUNDING <= share <= 1 + _ROUNDING for row in rows for share in row)
        _must(fits, f"agreement: a number of {kind} is no share")


def _check_outputs(survey: "Survey", outputs: "SurveyedOutputs") -> None:
    _must(outputs.n <= survey.texts.n_read, f"{outputs.n} outputs of {survey.texts.n_read} texts")
    _check_correct("outputs", outputs)
    lengths = [each.length for each in outputs.by_length]
    _must(_ascend((-1, *lengths)) and len(lengths) <= MOST_LENGTHS, "by_length: lengths that ascend from 0 are needed")
    for each in outputs.by_length:
        _check_correct(f"outputs of length {each.length}", each)
    for name in ("n", "n_known", "n_exact", "n_tokens", "n_right"):
        total = sum(getattr(each, name) for each in outputs.by_length)
        _must(total == getattr(outputs, name), f"by_length: {name} adds up to {total} instead of {getattr(outputs, name)}")
    _check_confidence(outputs.confidence)
    fits = len({each.line for each in outputs.worst}) == len(outputs.worst) <= min(MOST_EXAMPLES, outputs.n)
    _must(fits, f"worst has {len(outputs.worst)} outputs; one a line and at most {MOST_EXAMPLES} are needed")
    shares = [each.confidence for each in outputs.worst]
    _must(_are_shares(shares), "worst: a confidence is no probability")


def _check_correct(where: str, found: "Correct") -> None:
    fits = 0 <= found.n_exact <= found.n_known <= found.n and 0 <= found.n_right <= found.n_tokens
    _must(
        fits, f"{where}: {found.n_exact} of {found.n_known} known of {found.n}, or {found.n_right} of {found.n_tokens} tokens"
    )
    _must(found.bleu is None or 0 <= found.bleu <= 100 + _ROUNDING, f"{where}: BLEU is {found.bleu}; it is from 0 to 100")


def _check_confidence(found: "Confidence") -> None:
    n = len(found.edges) - 1
    fits = 1 <= n <= MOST_BINS and _ascend(found.edges)
    fits = fits and all(len(each) == n for each in (found.counts, found.n_judged, found.sum_p, found.n_right))
    _must(fits, f"confidence: {n} bins between edges that ascend need {n} counts")
    each = zip(found.counts, found.n_judged, found.n_right, found.sum_p, strict=True)
    fits = all(
        0 <= right <= judged <= count and -_ROUNDING <= p <= judged * (1 + _ROUNDING) for count, judged, right, p in each
    )
    _must(fits, "confidence: more tokens are right than judged, or judged than written, or their probabilities are none")


def _check_verdict(survey: "Survey") -> None:
    found = survey.verdict
    assert found is not None
    fits = 0 < found.n_texts <= survey.texts.n_read and 0 <= found.n_without_choice <= found.n_left_out and found.n_judged >= 0
    _must(fits, f"verdict: {found.n_texts} texts of {survey.texts.n_read}, or more steps without a choice than left out")
    fits = len({each.name for each in found.maps}) == len(found.maps) <= 4 * MOST_HEADS
    _must(fits, "verdict: two maps have one name, or there are too many")
    _must(len(found.missing) <= MOST_STATISTICS, "verdict: too much is missing")
    for each in found.maps:
        _check_mean(f"verdict: {each.name}", each.top, 0)
        _check_mean(f"verdict: {each.name}", each.rho, -1)
    _check_mean("verdict: chance", found.chance, 0)


def _check_mean(where: str, mean: "Mean", least: float) -> None:
    """NaN compares as false, and is allowed."""
    ends = (mean.value, *(mean.interval or ()))
    fits = not any(end < least - _ROUNDING or end > 1 + _ROUNDING for end in ends)
    _must(fits and (mean.interval is None or mean.interval[0] <= mean.interval[1]), f"{where}: {ends} is not possible")


def _ascend(numbers: Iterable[float]) -> bool:
    found = list(numbers)
    return all(a < b for a, b in pairwise(found))


def _count(counts: Iterable[int], n: int) -> bool:
    found = list(counts)
    return min(found, default=0) >= 0 and sum(found) == n


def _are_shares(numbers: Iterable[float]) -> bool:
    return all(-_ROUNDING <= number <= 1 + _ROUNDING for number in numbers)
