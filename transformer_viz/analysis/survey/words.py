"""What a survey says, in sentences of plain text."""

from transformer_viz.analysis.survey.compare import SurveyComparison
from transformer_viz.analysis.survey.readings import best, calibration, estimate, reading, roles
from transformer_viz.analysis.survey.result import Survey, SurveyedHead, SurveyedOutputs
from transformer_viz.numbers_in_words import count_words, interval_words, number_words, percent_words, signed_words
from transformer_viz.terms import KIND_TITLES, head_title

_MOST_ROLES = 4
_IN_TWENTY = 0.05
"""Of heads that do not differ, the share whose 95 % interval leaves 0 out by chance."""


def place(head: SurveyedHead) -> str:
    """`layer 2 head 1 of cross-attention`."""
    return f"{head_title(head.layer, head.head)} of {KIND_TITLES[head.kind]}"


def headline(survey: Survey, name: str) -> str:
    """Which head has the highest number, and what uniform attention would have."""
    head = best(survey, name)
    found = None if head is None else estimate(head, name)
    if head is None or found is None:
        return f"No head of {survey.model.name} was measured: none of {count_words(survey.texts.n, 'text')} could be read."
    compared = reading(survey, name)
    if compared.role is not None:
        ends = interval_words((found.low, found.high), percent_words, 1)
        share = f"{percent_words(found.value, 1)} of {count_words(found.n, 'text')} (95 %: {ends})"
        return f"No head is named “{compared.role}” more often than {place(head)}: in {share}."
    even = "" if found.even is None else f"; uniform attention would have {number_words(found.even)}"
    return (
        f"Over {count_words(found.n, 'text')}, {compared.title} is highest in {place(head)}: {number_words(found.value)} "
        f"on average (95 %: {interval_words((found.low, found.high))}){even}."
    )


def role_words(head: SurveyedHead) -> str:
    """`mirror in 95 % of 2,000 texts, mixed in 5 %`."""
    found = roles(head)
    if not found:
        return "no text tells its role"
    (first, most), *others = found
    parts = [f"{first} in {percent_words(most, 1)} of {count_words(head.n_texts, 'text')}"]
    parts += [f"{role} in {percent_words(share, 1)}" for role, share in others[: _MOST_ROLES - 1]]
    rest = sum(share for _, share in others[_MOST_ROLES - 1 :])
    return ", ".join([*parts, *([f"something else in {percent_words(rest, 1)}"] if rest else [])])


def made_of(survey: Survey) -> str:
    """What was surveyed and with which options."""
    model, read = survey.model, survey.texts
    failed = "" if not read.n_failed else f"; {read.n_failed:,} of {read.n:,} could not be read"
    chosen = ", ".join(f"{name} {value}" for name, value in survey.options.items() if value is not None)
    parameters, texts = count_words(model.parameters, "parameter"), count_words(read.n_read, "text")
    return (
        f"Surveyed: {model.name} ({model.variant}, {parameters}) over {texts} ({read.source}){failed}. "
        f"Options: {chosen or 'none'}. Made by version {survey.version}."
    )


def changed(comparison: SurveyComparison, a: str, b: str) -> str:
    """What changed most between two surveys, by what they are called, and how many heads differ at all."""
    n, n_clear, title = len(comparison.heads), len([*comparison.clear()]), comparison.reading.title
    largest = comparison.largest
    if largest is None:
        return f"From {a} to {b} no head's {title} differs by more than its 95 % interval."
    where = f"{head_title(largest.layer, largest.head)} of {KIND_TITLES[largest.kind]}"
    return (
        f"From {a} to {b} {title} changed most in {where}: {number_words(largest.a.value)} → {number_words(largest.b.value)}, "
        f"{signed_words(largest.difference)} (95 %: {interval_words((largest.low, largest.high), signed_words)}). {n_clear} "
        f"of {n} heads differ by more than their interval; by chance alone it would be about {_IN_TWENTY * n:.1g}."
    )


def right(outputs: SurveyedOutputs) -> str:
    """How many outputs and tokens are right."""
    if not outputs.n_known:
        return f"Of none of the {outputs.n:,} outputs the right answer is known, so that none is counted as right."
    words = (
        f"{outputs.n_exact:,} of {outputs.n_known:,} outputs are right, {percent_words(outputs.n_exact / outputs.n_known, 1)}"
    )
    if outputs.n_tokens:
        words += f"; of the tokens at their place {percent_words(outputs.n_right / outputs.n_tokens, 1)}"
    return words + ("" if outputs.bleu is None else f"; BLEU {outputs.bleu:.1f}") + "."


def calibrated(outputs: SurveyedOutputs) -> str:
    """How far confidence and accuracy are apart."""
    bins, error = calibration(outputs.confidence)
    if error is None:
        return "No token was written after a right prefix of a known answer, so that nothing says how sure the model may be."
    n = sum(each.n for each in bins)
    sure, hits = (sum(getattr(each, name) * each.n for each in bins) / n for name in ("confidence", "accuracy"))
    return (
        f"Of {n:,} tokens that were written after a right prefix {percent_words(hits, 1)} are right, and their probability is "
        f"{percent_words(sure, 1)} on average. Expected calibration error: {error:.3f}."
    )


def worst_title(outputs: SurveyedOutputs) -> str:
    """What the worst outputs are."""
    return "The surest mistakes" if outputs.n_known else "The least probable outputs"
