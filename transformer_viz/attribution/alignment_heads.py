"""Which heads of a model align: texts are read with their translations (teacher forcing), and every head is asked."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from transformer_viz.addresses import HeadPlace
from transformer_viz.analysis import alignment_heads as heads_of
from transformer_viz.analysis.alignment_heads import AlignedHead, AlignmentHeads, Attended, Head
from transformer_viz.analysis.knock_out import KnockOut
from transformer_viz.analysis.word_links import Link, checked
from transformer_viz.attribution.knock_out import knock_out, places
from transformer_viz.errors import InputError, OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.limits import MAX_TRACE_BYTES
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.progress import OnProgress

MOST_TEXTS, LONGEST_TEXT = 1000, 2000
"""Texts, and the characters of one."""
_MOST_WEIGHTS = 2**27
"""Numbers of all texts together: half a gigabyte."""
_SHARE_READ = 0.3
"""Of the time, where heads are also taken away."""


def alignment_heads(
    model: LoadedModel,
    texts: Sequence[str],
    *,
    targets: Sequence[str] | None = None,
    links: Sequence[str | Iterable[Link]] | None = None,
    reference: Head | None = None,
    effect: bool = True,
    on_progress: OnProgress | None = None,
) -> AlignmentHeads:
    """Ranks the heads of cross-attention by how well they align.

    Without links, and where the model's task knows which token each step must look at, that is the truth, token by token; else
    heads are ranked by how often they link as the reference does.

    Args:
        model: with an encoder and a decoder.
        texts: what it reads.
        targets: what it should write for each; by default the task's true answer, or what it writes by itself.
        links: for each text the words that say the same, as `0-0 1-2` or as pairs; words are split as on the pages, with
            punctuation apart, and count from 0. They need targets.
        reference: layer and head, from 0, that the others are compared with; by default the one that aligns best, or without
            links the one with the largest effect.
        effect: whether each head is also taken away, which takes most of the time.
        on_progress: is told which share is done.

    Raises:
        OptionError: a model without cross-attention, or an impossible argument.
        InputError: a text that cannot be read, too many or too long ones, or links of words that there are not.
    """
    _check(model, texts, targets, links, reference)
    known = None if links is None or targets is None else checked(links, texts, targets)
    tell = on_progress or (lambda _: None)
    share = _SHARE_READ if effect else 1.0
    traces, runs = list[Trace](), list[Attended]()
    for number, text in enumerate(texts):
        tell(share * number / len(texts))
        target = None if targets is None else targets[number]
        traces.append(_read(model, text, target, number))
        runs.append(_attended(model, traces[-1], None if known is None else (known[number], text, target or "")))
        if sum(run.weights.size for run in runs) > _MOST_WEIGHTS:
            raise InputError(f"{len(texts)} texts of this length have too many weights to compare. Give fewer or shorter ones.")
    without = None
    if effect:
        without = knock_out(model, traces, heads=cross_heads(model), on_progress=lambda done: tell(share + (1 - share) * done))
    return _summary(runs, without, reference, has_links=known is not None)


def _summary(runs: Sequence[Attended], without: KnockOut | None, reference: Head | None, *, has_links: bool) -> AlignmentHeads:
    truth: Literal["links", "task"] | None = None if runs[0].truth is None else "links" if has_links else "task"
    compared, found = heads_of.ranked(runs, _largest(without) if truth is None and reference is None else reference)
    return AlignmentHeads(
        truth=truth,
        unit="token" if truth == "task" else "word",
        n_texts=len(runs),
        n_words=sum(len(run.target) for run in runs),
        n_links=heads_of.n_links(runs),
        reference=compared,
        heads=tuple(_with_effect(each, without) for each in found),
        averages=() if truth is None else heads_of.best_averages(runs),
    )


def cross_heads(model: LoadedModel) -> tuple[HeadPlace, ...]:
    """All heads of cross-attention; none where there is no such thing."""
    return tuple(place for place in places(model.model.sizes) if place.kind == "cross")


def _check(
    model: LoadedModel,
    texts: Sequence[str],
    targets: Sequence[str] | None,
    links: Sequence[str | Iterable[Link]] | None,
    reference: Head | None,
) -> None:
    heads = [(place.layer, place.head) for place in cross_heads(model)]
    if not heads:
        raise OptionError(f"{model.name} has no cross-attention, in which words of a source could be aligned")
    if reference is not None and tuple(reference) not in heads:
        raise OptionError(f"reference={reference!r} is no head of cross-attention; {heads[-1]} is one, both from 0")
    if isinstance(texts, str) or not 1 <= len(texts) <= MOST_TEXTS:
        raise OptionError(f"heads are compared over a list of 1 to {MOST_TEXTS} texts")
    if targets is None and links is not None:
        raise OptionError("links are between words of a text and of its translation; give the targets too")
    if targets is not None and len(targets) != len(texts):
        raise InputError(f"There are {len(texts)} texts and {len(targets)} targets; give one target for each text.")
    for number, text in enumerate([*texts, *(targets or ())]):
        if not text.strip() or len(text) > LONGEST_TEXT:
            what = f"{'text' if number < len(texts) else 'target'} {number % len(texts) + 1}"
            raise InputError(f"The {what} has {len(text)} characters; 1 to {LONGEST_TEXT}, not only spaces, are possible.")


def _read(model: LoadedModel, text: str, target: str | None, number: int) -> Trace:
    """One text with its target, or else with the true answer, or with what the model writes."""
    try:
        if target is None and model.task is not None:
            target = model.tokenizer.known(text, 1).expected
        return decode(model, text, target=target, kinds=("cross",), candidates=1, max_trace_bytes=MAX_TRACE_BYTES)
    except InputError as error:
        raise InputError(f"Text {number + 1}: {error}") from error


def _attended(model: LoadedModel, trace: Trace, linked: tuple[frozenset[Link], str, str] | None) -> Attended:
    """By words, with links where they are given; by tokens where the task says where to look."""
    if linked is None and any(key is not None for key in trace.alignment):
        return heads_of.with_alignment(heads_of.attended(trace, unit="token"), trace)
    run = heads_of.attended(trace, languages={label for code in model.languages for label in (code, f"__{code}__")})
    return run if linked is None else heads_of.with_links(run, *linked)


def _largest(without: KnockOut | None) -> Head:
    """The head without which the target loses most."""
    if without is None:
        raise OptionError("without links, a reference and effects nothing says how to rank heads; give one of them")
    place = min(without.heads, key=lambda each: each.log_p.value).place
    return place.layer, place.head


def _with_effect(head: AlignedHead, without: KnockOut | None) -> AlignedHead:
    return head if without is None else replace(head, effect=without.at("cross", head.layer, head.head).log_p)
