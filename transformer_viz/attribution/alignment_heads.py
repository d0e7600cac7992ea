"""Alignment heads of a model: texts are read with their translations (teacher forcing), and every head is compared."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from transformer_viz.addresses import Grid, HeadAddress, find_head
from transformer_viz.analysis.word_links import Link, checked
from transformer_viz.attribution.knock_out import all_heads, knock_out
from transformer_viz.attribution.result import alignment_heads as result
from transformer_viz.attribution.result.alignment_heads import AlignmentHeads, WordAttention
from transformer_viz.decoding.memory import KEPT
from transformer_viz.errors import InputError, OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.limits import MAX_TRACE_BYTES
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.progress import OnProgress

MOST_TEXTS, LONGEST_TEXT = 1000, 2000
"""Texts, and the characters of one."""
_SHARE_READ = 0.3
"""The share of the progress that reading takes where heads are ablated too."""


def alignment_heads(
    model: LoadedModel,
    texts: Sequence[str],
    *,
    targets: Sequence[str] | None = None,
    links: Sequence[str | Iterable[Link]] | None = None,
    reference: str | HeadAddress | None = None,
    effect: bool = True,
    on_progress: OnProgress | None = None,
) -> AlignmentHeads:
    """Ranks the heads of cross-attention by how well they align.

    Heads are judged by `links`; without them token by token by the alignment of the model's task; and where the task has none,
    by how often they link as the reference does.

    Args:
        model: with an encoder and a decoder, from `load_checkpoint` or `load_model`.
        texts: the source texts.
        targets: a translation of each; by default the task's true answer, or what the model writes by itself.
        links: for each text the pairs of words that correspond, as `0-0 1-2` or as tuples; words are split as on the pages,
            with punctuation apart, and count from 0. They need targets.
        reference: the head, such as `cross.2.1`, with which the others are compared; by default the one that aligns best, or
            without links the one with the largest effect.
        effect: whether each head is also ablated, which takes most of the time.
        on_progress: is called with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        All heads, the best first, with their error rates; `print` shows a table.

    Raises:
        OptionError: a model without cross-attention, or an impossible argument.
        InputError: a text that cannot be read, too many or too long texts, or links of words that the texts do not have.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("numbers", device="cpu")
        >>> found = tv.alignment_heads(model, ["zwölf", "neunzig"], effect=False)
        >>> str(found.best())
        'L1 H4'
        >>> found.at("cross.1.1").errors["writes"] >= found.best().errors["writes"]
        True

    References:
        Och & Ney (2003), "A Systematic Comparison of Various Statistical Alignment Models":
            https://aclanthology.org/J03-1002
        Chen et al. (2020), "Accurate Word Alignment Induction from Neural Machine Translation":
            https://arxiv.org/abs/2004.14837
    """
    grid: Grid = {kind: heads for kind, heads in model.network.sizes.grid.items() if kind == "cross"}
    if not grid:
        raise OptionError(f"{model.name} has no cross-attention, so no head can align words")
    chosen = None if reference is None else find_head(reference, grid, model.name, "reference")
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
    known = None if links is None or targets is None else checked(links, texts, targets)
    report = on_progress or (lambda _: None)
    share = _SHARE_READ if effect else 1.0
    languages = {label for code in model.languages for label in (code, f"__{code}__")}
    traces, runs = list[Trace](), list[WordAttention]()
    for number, text in enumerate(texts):
        report(share * number / len(texts))
        target = None if targets is None else targets[number]
        try:
            if target is None and model.task is not None:
                target = model.tokenizer.task_answer(text, 1).expected
            trace = decode(model, text, target=target, kinds=("cross",), candidates=1, max_trace_bytes=MAX_TRACE_BYTES)
        except InputError as error:
            raise InputError(f"Text {number + 1}: {error}") from error
        # By words, with links where they are given; by tokens where the task says where to look.
        if known is not None:
            run = result.with_links(result.attended(trace, languages=languages), known[number], text, target or "")
        elif any(key is not None for key in trace.alignment):
            run = result.with_alignment(result.attended(trace, unit="token"), trace)
        else:
            run = result.attended(trace, languages=languages)
        traces.append(trace)
        runs.append(run)
        if sum(run.weights.size for run in runs) > 2 * KEPT:
            raise InputError(f"{len(texts)} texts of this length have too many weights to compare. Give fewer or shorter ones.")
    effects = None
    if effect:
        effects = knock_out(model, traces, heads=cross_heads(model), on_progress=lambda n: report(share + (1 - share) * n))
    truth: Literal["links", "task"] | None = None if runs[0].truth is None else "links" if known is not None else "task"
    if truth is None and chosen is None:
        if effects is None:
            raise OptionError("there is nothing to rank heads by; give links, a reference, or measure effects")
        # The head without which the target loses most.
        chosen = min(effects.heads, key=lambda head: head.log_p.value).place
    best, heads = result.ranked(runs, None if chosen is None else (chosen.layer, chosen.head))
    if effects is not None:
        heads = tuple(replace(head, effect=effects.at(head.place).log_p) for head in heads)
    return AlignmentHeads(
        truth=truth,
        unit="token" if truth == "task" else "word",
        n_texts=len(runs),
        n_words=sum(len(run.target) for run in runs),
        n_links=result.n_links(runs),
        reference=HeadAddress("cross", *best),
        heads=heads,
        averages=() if truth is None else result.best_averages(runs),
    )


def cross_heads(model: LoadedModel) -> tuple[HeadAddress, ...]:
    """Lists the heads of cross-attention; empty for a model without it."""
    return tuple(place for place in all_heads(model.network.sizes) if place.kind == "cross")
