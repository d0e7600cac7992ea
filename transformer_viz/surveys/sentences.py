"""Sentences about a survey, as plain text."""

from transformer_viz.addresses import HeadAddress
from transformer_viz.numbers_in_words import (
    count_words,
    interval_words,
    number_words,
    percent_words,
    rounded_words,
    signed_words,
)
from transformer_viz.surveys.columns import SurveyComparison, best, calibration, column
from transformer_viz.surveys.result import Survey, SurveyedOutputs
from transformer_viz.terms import KIND_TITLES, head_title

_MOST_ROLES = 4
_IN_TWENTY = 0.05
"""The share of heads that do not differ whose 95 % interval leaves 0 out by chance."""


def head_words(place: HeadAddress) -> str:
    """`layer 2 head 1 of cross-attention`."""
    return f"{head_title(place.layer, place.head)} of {KIND_TITLES[place.kind]}"


def headline(survey: Survey, name: str) -> str:
    """Names the head with the highest number, and gives that of uniform attention."""
    head = best(survey, name)
    row = None if head is None else survey.at(head, name)
    if head is None or row is None:
        return f"No head of {survey.model.name} was measured: none of {count_words(survey.texts.n, 'text')} could be read."
    compared = column(survey, name)
    if compared.role is not None:
        ends = interval_words(row.interval, percent_words, 1)
        share = f"{percent_words(row.mean, 1)} of {count_words(row.n, 'text')} (95 %: {ends})"
        return f"No head is named “{compared.role}” more often than {head_words(head)}: in {share}."
    uniform = "" if row.uniform is None else f"; uniform attention would have {number_words(row.uniform)}"
    return (
        f"Over {count_words(row.n, 'text')}, {compared.title} is highest in {head_words(head)}: {number_words(row.mean)} "
        f"on average (95 %: {interval_words(row.interval)}){uniform}."
    )


def role_words(survey: Survey, head: HeadAddress) -> str:
    """`mirror in 95 % of 2,000 texts, mixed in 5 %`."""
    roles = survey.roles(head)
    if not roles:
        return "no text tells its role"
    (first, most), *others = roles
    parts = [f"{first} in {percent_words(most, 1)} of {count_words(survey.texts.n_read, 'text')}"]
    parts += [f"{role} in {percent_words(share, 1)}" for role, share in others[: _MOST_ROLES - 1]]
    rest = sum(share for _, share in others[_MOST_ROLES - 1 :])
    return ", ".join([*parts, *([f"something else in {percent_words(rest, 1)}"] if rest else [])])


def survey_words(survey: Survey) -> str:
    """Says what was surveyed and with which options."""
    model, read = survey.model, survey.texts
    failed = "" if not read.n_failed else f"; {read.n_failed:,} of {read.n:,} could not be read"
    chosen = ", ".join(f"{name} {value}" for name, value in survey.options.items() if value is not None)
    parameters, texts = count_words(model.parameters, "parameter"), count_words(read.n_read, "text")
    return (
        f"Surveyed: {model.name} ({model.variant}, {parameters}) over {texts} ({read.source}){failed}. "
        f"Options: {chosen or 'none'}. Made by version {survey.version}."
    )


def changed(comparison: SurveyComparison, a: str, b: str) -> str:
    """Says what changed most between two surveys, by what they are called, and how many heads differ at all."""
    n, n_significant, title = len(comparison.heads), len([*comparison.significant()]), comparison.column.title
    largest = comparison.largest
    if largest is None:
        return f"From {a} to {b} no head's {title} differs by more than its 95 % interval."
    return (
        f"From {a} to {b} {title} changed most in {head_words(largest.place)}: {number_words(largest.a.mean)} → "
        f"{number_words(largest.b.mean)}, {signed_words(largest.difference)} "
        f"(95 %: {interval_words(largest.interval, signed_words)}). {n_significant} of {n} heads differ by more than their "
        f"interval; by chance alone it would be about {rounded_words(_IN_TWENTY * n, 1)}."
    )


def right(outputs: SurveyedOutputs) -> str:
    """Counts the outputs and tokens that are right."""
    if not outputs.n_known:
        return f"Of none of the {outputs.n:,} outputs the right answer is known, so that none is counted as right."
    words = (
        f"{outputs.n_exact:,} of {outputs.n_known:,} outputs are right, {percent_words(outputs.n_exact / outputs.n_known, 1)}"
    )
    if outputs.n_tokens:
        words += f"; of the tokens at their place {percent_words(outputs.n_right / outputs.n_tokens, 1)}"
    return words + ("" if outputs.bleu is None else f"; BLEU {number_words(outputs.bleu, 1)}") + "."


def calibrated(outputs: SurveyedOutputs) -> str:
    """Says how far confidence and accuracy are apart."""
    bins, error = calibration(outputs.confidence)
    if error is None:
        return "No token was written after a right prefix of a known answer, so that nothing says how sure the model may be."
    n = sum(each.n for each in bins)
    sure, hits = (sum(getattr(each, name) * each.n for each in bins) / n for name in ("confidence", "accuracy"))
    return (
        f"Of {n:,} tokens that were written after a right prefix {percent_words(hits, 1)} are right, and their probability is "
        f"{percent_words(sure, 1)} on average. Expected calibration error: {number_words(error, 3)}."
    )


def worst_title(outputs: SurveyedOutputs) -> str:
    """Lists the worst outputs."""
    return "The surest mistakes" if outputs.n_known else "The least probable outputs"
