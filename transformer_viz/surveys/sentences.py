"""Sentences about a survey, as plain text."""

from typing import Any

from transformer_viz.addresses import HeadAddress
from transformer_viz.language import enumerated, known, say, sentences
from transformer_viz.numbers_in_words import (
    count_words,
    interval_words,
    number_words,
    percent_words,
    signed_words,
)
from transformer_viz.surveys.columns import SurveyComparison, best, calibration, column
from transformer_viz.surveys.result import Survey, SurveyedOutputs, SurveyedStatistic
from transformer_viz.terms import head_title, kind_words

_MOST_ROLES = 4
_IN_TWENTY = 0.05
"""The share of heads that do not differ whose 95 % interval leaves 0 out by chance."""


def head_words(place: HeadAddress) -> str:
    """`layer 2 head 1 of cross-attention`."""
    return say("{layer} of {kind}", layer=head_title(place.layer, place.head), kind=kind_words(place.kind))


def headline(survey: Survey, name: str) -> str:
    """Names the head with the highest number, and gives that of uniform attention."""
    head = best(survey, name)
    row = None if head is None else survey.at(head, name)
    if head is None or row is None:
        texts = count_words(survey.texts.n, "text")
        return say("No head of {model} was measured: none of {texts} could be read.", model=survey.model.name, texts=texts)
    compared = column(survey, name)
    if compared.role is not None:
        ends = interval_words(row.interval, percent_words, 1)
        share = say(
            "{share} of {texts} (95 %: {interval})",
            share=percent_words(row.mean, 1),
            texts=count_words(row.n, "text"),
            interval=ends,
        )
        return say(
            "The name “{role}” fits {head} most often: in {share}.",
            role=known(compared.role),
            head=head_words(head),
            share=share,
        )
    fields = {
        "texts": count_words(row.n, "text"),
        "number": statistic_title(compared),
        "head": head_words(head),
        "mean": number_words(row.mean),
        "interval": interval_words(row.interval),
    }
    if row.uniform is None:
        return say("Most {number} is in {head}: {mean} on average over {texts} (95 %: {interval}).", **fields)
    return say(
        "Most {number} is in {head}: {mean} on average over {texts} (95 %: {interval}); a head that looks everywhere alike "
        "would have {uniform}.",
        uniform=number_words(row.uniform),
        **fields,
    )


def role_words(survey: Survey, head: HeadAddress) -> str:
    """`mirror in 95 % of 2,000 texts, mixed in 5 %`."""
    roles = survey.roles(head)
    if not roles:
        return say("no text tells its role")
    (first, most), *others = roles
    texts = count_words(survey.texts.n_read, "text")
    parts = [say("{role} in {share} of {texts}", role=known(first), share=percent_words(most, 1), texts=texts)]
    parts += [
        say("{role} in {share}", role=known(role), share=percent_words(share, 1)) for role, share in others[: _MOST_ROLES - 1]
    ]
    rest = sum(share for _, share in others[_MOST_ROLES - 1 :])
    return enumerated([*parts, *([say("something else in {rest}", rest=percent_words(rest, 1))] if rest else [])])


def statistic_title(number: SurveyedStatistic) -> str:
    """The title of a number, in the language of now."""
    if number.role is not None:
        return say("texts in which it is “{role}”", role=known(number.role))
    return known(number.title)


def survey_words(survey: Survey) -> str:
    """Says what was surveyed and with which options."""
    model, read = survey.model, survey.texts
    chosen = ", ".join(f"{name} {value}" for name, value in survey.options.items() if value is not None)
    parameters, texts = count_words(model.parameters, "parameter"), count_words(read.n_read, "text")
    fields: dict[str, Any] = {"model": model.name, "variant": model.variant, "parameters": parameters, "texts": texts}
    fields |= {"source": read.source}
    surveyed = (
        say(
            "Surveyed: {model} ({variant}, {parameters}) over {texts} ({source}); {failed:,} of {all:,} could not be read.",
            failed=read.n_failed,
            all=read.n,
            **fields,
        )
        if read.n_failed
        else say("Surveyed: {model} ({variant}, {parameters}) over {texts} ({source}).", **fields)
    )
    options = say("Options: {options}.", options=chosen or say("none"))
    return sentences([surveyed, options, say("Made by version {version}.", version=survey.version)])


def changed(comparison: SurveyComparison, a: str, b: str) -> str:
    """Says what changed most between two surveys, by what they are called, and how many heads differ at all."""
    n, n_significant, title = len(comparison.heads), len([*comparison.significant()]), statistic_title(comparison.column)
    largest = comparison.largest
    if largest is None:
        return say("From {a} to {b} no head's {title} differs by more than its 95 % interval.", a=a, b=b, title=title)
    return say(
        "From {a} to {b} {title} changed most in {place}: {mean} → {mean2}, {difference} (95 %: "
        "{interval}). {n_significant} of {n} heads differ by more than their interval; by chance alone "
        "it would be about {in_twenty:.1g}.",
        a=a,
        b=b,
        title=title,
        place=head_words(largest.place),
        mean=number_words(largest.a.mean),
        mean2=number_words(largest.b.mean),
        difference=signed_words(largest.difference),
        interval=interval_words(largest.interval, signed_words),
        n_significant=n_significant,
        n=n,
        in_twenty=_IN_TWENTY * n,
    )


def right(outputs: SurveyedOutputs) -> str:
    """Counts the outputs and tokens that are right."""
    if not outputs.n_known:
        return say("Of none of the {n:,} outputs the right answer is known, so that none is counted as right.", n=outputs.n)
    words = say(
        "{n:,} of {known:,} outputs are right, {share}",
        n=outputs.n_exact,
        known=outputs.n_known,
        share=percent_words(outputs.n_exact / outputs.n_known, 1),
    )
    if outputs.n_tokens:
        share = percent_words(outputs.n_right / outputs.n_tokens, 1)
        words = say("{outputs}; of the tokens at their place {share}", outputs=words, share=share)
    if outputs.bleu is not None:
        words = say("{outputs}; BLEU {bleu:.1f}", outputs=words, bleu=outputs.bleu)
    return say("{sentence}.", sentence=words)


def calibrated(outputs: SurveyedOutputs) -> str:
    """Says how far confidence and accuracy are apart."""
    bins, error = calibration(outputs.confidence)
    if error is None:
        return say(
            "No token was written after a right prefix of a known answer, so nobody can say how far its probabilities are "
            "right."
        )
    n = sum(each.n for each in bins)
    probability, hits = (sum(getattr(each, name) * each.n for each in bins) / n for name in ("confidence", "accuracy"))
    return say(
        "Of {n:,} tokens that were written after a right prefix {hits} are right, and their probability "
        "is {share} on average. Expected calibration error: {error:.3f}.",
        n=n,
        hits=percent_words(hits, 1),
        share=percent_words(probability, 1),
        error=error,
    )


def worst_title(outputs: SurveyedOutputs) -> str:
    """Lists the worst outputs."""
    return say("The most probable mistakes") if outputs.n_known else say("The least probable outputs")
