"""What a survey says, in sentences of plain text."""

from transformer_viz.analysis.survey.compare import SurveyComparison
from transformer_viz.analysis.survey.readings import Estimate, best, calibration, estimate, reading, roles
from transformer_viz.analysis.survey.result import Survey, SurveyedHead, SurveyedOutputs
from transformer_viz.terms import KIND_TITLES, head_title

_MOST_ROLES = 4
_IN_TWENTY = 0.05
"""Of heads that do not differ, the share whose 95 % interval leaves 0 out by chance."""


def number(value: float) -> str:
    """Three figures behind the point, fewer of what is large; what rounds to nothing has no sign."""
    return (f"{round(value, 3) + 0.0:.3f}" if abs(value) < 10 else f"{value:.4g}").replace("-", "−")


def signed(value: float) -> str:
    """`+0.021`; what rounds to nothing has no sign."""
    return ("+" if round(value, 3) > 0 else "") + number(value)


def interval(found: Estimate) -> str:
    """`95 %: 0.981 to 0.985`."""
    return f"95 %: {number(found.low)} to {number(found.high)}"


def percent(share: float) -> str:
    """Never 100 % or 0 % of what is not."""
    if 0.9995 <= share < 1:
        return "more than 99.9 %"
    return "less than 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %".replace(".0 %", " %")


def place(head: SurveyedHead) -> str:
    """`layer 2 head 1 of cross-attention`."""
    return f"{head_title(head.layer, head.head)} of {KIND_TITLES[head.kind]}"


def headline(survey: Survey, name: str) -> str:
    """Which head has the highest number, and what uniform attention would have."""
    head = best(survey, name)
    found = None if head is None else estimate(head, name)
    if head is None or found is None:
        return f"No head of {survey.model.name} was measured: none of {texts(survey.texts.n)} could be read."
    compared = reading(survey, name)
    if compared.role is not None:
        share = f"{percent(found.value)} of {texts(found.n)} (95 %: {percent(found.low)} to {percent(found.high)})"
        return f"No head is named “{compared.role}” more often than {place(head)}: in {share}."
    even = "" if found.even is None else f"; uniform attention would have {number(found.even)}"
    return (
        f"Over {texts(found.n)}, {compared.title} is highest in {place(head)}: {number(found.value)} on average "
        f"({interval(found)}){even}."
    )


def texts(n: int) -> str:
    """`2,000 texts`."""
    return f"{n:,} text{'' if n == 1 else 's'}"


def role_words(head: SurveyedHead) -> str:
    """`mirror in 95 % of 2,000 texts, mixed in 5 %`."""
    found = roles(head)
    if not found:
        return "no text tells its role"
    (first, most), *others = found
    parts = [f"{first} in {percent(most)} of {texts(head.n_texts)}"]
    parts += [f"{role} in {percent(share)}" for role, share in others[: _MOST_ROLES - 1]]
    rest = sum(share for _, share in others[_MOST_ROLES - 1 :])
    return ", ".join([*parts, *([f"something else in {percent(rest)}"] if rest else [])])


def made_of(survey: Survey) -> str:
    """What was surveyed and with which options."""
    model, read = survey.model, survey.texts
    failed = "" if not read.n_failed else f"; {read.n_failed:,} of {read.n:,} could not be read"
    chosen = ", ".join(f"{name} {value}" for name, value in survey.options.items() if value is not None)
    parameters = f"{model.parameters:,} parameters"
    return (
        f"Surveyed: {model.name} ({model.variant}, {parameters}) over {texts(read.n_read)} ({read.source}){failed}. "
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
        f"From {a} to {b} {title} changed most in {where}: {number(largest.a.value)} → {number(largest.b.value)}, "
        f"{signed(largest.difference)} (95 %: {signed(largest.low)} to {signed(largest.high)}). {n_clear} of {n} heads differ "
        f"by more than their interval; by chance alone it would be about {_IN_TWENTY * n:.1g}."
    )


def right(outputs: SurveyedOutputs) -> str:
    """How many outputs and tokens are right."""
    if not outputs.n_known:
        return f"Of none of the {outputs.n:,} outputs the right answer is known, so that none is counted as right."
    words = f"{outputs.n_exact:,} of {outputs.n_known:,} outputs are right, {percent(outputs.n_exact / outputs.n_known)}"
    if outputs.n_tokens:
        words += f"; of the tokens at their place {percent(outputs.n_right / outputs.n_tokens)}"
    return words + ("" if outputs.bleu is None else f"; BLEU {outputs.bleu:.1f}") + "."


def calibrated(outputs: SurveyedOutputs) -> str:
    """How far confidence and accuracy are apart."""
    bins, error = calibration(outputs.confidence)
    if error is None:
        return "No token was written after a right prefix of a known answer, so that nothing says how sure the model may be."
    n = sum(each.n for each in bins)
    sure, hits = (sum(getattr(each, name) * each.n for each in bins) / n for name in ("confidence", "accuracy"))
    return (
        f"Of {n:,} tokens that were written after a right prefix {percent(hits)} are right, and their probability is "
        f"{percent(sure)} on average. Expected calibration error: {error:.3f}."
    )


def worst_title(outputs: SurveyedOutputs) -> str:
    """What the worst outputs are."""
    return "The surest mistakes" if outputs.n_known else "The least probable outputs"
