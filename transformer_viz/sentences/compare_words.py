"""The differences of two runs in words: a sentence, the rows of a small table, and the weight that changed most."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from transformer_viz import edits
from transformer_viz.analysis.word_pooling import Words, noun, word_label
from transformer_viz.analysis.word_starts import word_starts
from transformer_viz.comparison.compare import Comparison, LargestDifference
from transformer_viz.comparison.word_pairs import by_position, by_text, pairs_that_differ
from transformer_viz.edits import HeadOff
from transformer_viz.errors import OptionError
from transformer_viz.language import enumerated, known, say
from transformer_viz.numbers_in_words import count_words, number_words, percent_words, rounded_words, signed_words
from transformer_viz.sentences.correctness import answer, answer_words, is_given
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, plain, say_sentence
from transformer_viz.terms import (
    KINDS,
    REASON_WORDS,
    Kind,
    cell_words,
    head_label,
    head_title,
    kind_words,
    place_words,
)
from transformer_viz.text_display import display_text
from transformer_viz.trace.trace import Trace

_HOW = ("strategy", "beam_size", "length_penalty", "temperature", "top_k", "top_p", "seed")
_LONGEST_TEXT = 48
_NAMES = {"beam_size": "size", "length_penalty": "α"}


@dataclass(frozen=True)
class Row:
    """One line of the table: what is compared, what A and B have, and how they differ; all of it plain text.

    `kind` is set in the rows about attention, which can be opened.
    """

    what: str
    a: str
    b: str
    apart: str
    kind: Kind | None = None


def summary(comparison: Comparison) -> Sentence:
    """Says what differs, and where attention differs most, with both weights."""
    texts, largest = _texts(comparison), comparison.largest
    if not comparison.kinds:
        return say_sentence("{texts} They have no kind of attention in common.", texts=texts)
    if largest is None:
        return say_sentence("{texts} No weight differs.", texts=texts)
    in_b = largest.in_b[1] if largest.in_b else largest.key
    looks = []
    for name, run, key, weight in (("A", comparison.a, largest.key, largest.a), ("B", comparison.b, in_b, largest.b)):
        side: Piece = ("strong", name)
        if math.isnan(weight):
            looks.append(say_sentence("{run} has no number", run=side))
        else:
            token, place = of_run(run.attentions[largest.kind].keys[key]), place_words(key, noun(run))
            share = percent_words(weight)
            looks.append(
                say_sentence("{run} looks {share} at {token} ({place})", run=side, share=share, token=token, place=place)
            )
    fields: dict[str, Any] = {"texts": texts, "head": ("strong", _head_words(largest)), "row": str(largest.query + 1)}
    fields |= {"a": looks[0], "b": looks[1]}
    if largest.in_b:
        return say_sentence("{texts} Attention differs most in {head}: in row {row} of A, {a}, {b}.", **fields)
    return say_sentence("{texts} Attention differs most in {head}: in row {row}, {a}, {b}.", **fields)


def table(comparison: Comparison) -> list[Row]:
    """Input, model, decoding, output, and a line for each kind of attention; masks where they differ."""
    a, b = comparison.a, comparison.b

    def row(what: str, of_a: str, of_b: str, apart: str = "") -> Row:
        return Row(what, of_a, of_b, apart or (say("same") if of_a == of_b else say("differs")))

    read = [tokens_read(run) for run in (a, b)]
    pairs, words, reads_apart = comparison.paired(*read), noun(a), say("same")
    if places := pairs_that_differ(pairs, *read):
        in_a, in_b = pairs[places[0]]
        reads_apart = say("{place} of B", place=place_words(in_b or 0, words)) if in_a is None else place_words(in_a, words)
        if len(places) > 1:
            reads_apart = say("{tokens}, from {place} on", tokens=count_words(len(places), words), place=reads_apart)
    if writes_nothing(a) and writes_nothing(b):
        writes_apart = say("same") if fills_words(a) == fills_words(b) else say("differs")
    elif not (a.output_tokens and b.output_tokens):
        writes_apart = say("unknown")
    else:
        parted = comparison.parted
        writes_apart = say("same") if parted is None else say("from step {step} on", step=parted + 1)
    rows = [
        row(say("reads"), display_text(_short(a.source)), display_text(_short(b.source)), reads_apart),
        row(say("model"), model_words(a), model_words(b)),
        row(say("decoding"), how_words(a), how_words(b)),
        row(say("writes"), written_words(a), written_words(b), writes_apart),
    ]
    if answer(a) or answer(b):
        # The expected answer is in the words of a wrong one.
        is_known = None not in (a.is_right, b.is_right)
        answers_apart = say("same") if answer(a) == answer(b) else say("differs")
        answers_apart = answers_apart if is_known else say("not known of both")
        rows.append(row(say("answer"), plain(answer_words(a)), plain(answer_words(b)), answers_apart))
    for kind in [kind for kind in KINDS if kind in (*a.kinds, *b.kinds)]:
        largest = comparison.farthest(kind) if kind in comparison.kinds else None
        if largest is not None:
            fields = {"size": size_words(largest.size), "head": head_label(largest.layer, largest.head)}
            fields["cell"] = cell_words(largest.query, largest.key)
            words = (
                say("{size} in {head}, {cell} of A", **fields) if largest.in_b else say("{size} in {head}, {cell}", **fields)
            )
            rows.append(Row(kind_words(kind), number_words(largest.a, 3), number_words(largest.b, 3), words, kind))
        elif kind in comparison.kinds:
            rows.append(Row(kind_words(kind), "", "", say("no weight differs")))
        else:
            has = ["" if kind in run.kinds else say("has none") for run in (a, b)]
            rows.append(Row(kind_words(kind), has[0], has[1], say("not in both")))
    for mask in filter(None, map(comparison.mask_difference, comparison.kinds)):
        alone = [say("{n} masked here alone", n=n) for n in (mask.in_a_alone, mask.in_b_alone)]
        in_a, in_b = (say(REASON_WORDS[code]) for code in mask.reasons)
        where = cell_words(*mask.first)
        where = say("{cell} of A", cell=where) if comparison.is_by_text else where
        first = say("first: {cell}: {in_a} in A, {in_b} in B", cell=where, in_a=in_a, in_b=in_b)
        rows.append(Row(say("{kind} mask", kind=say(mask.kind)), alone[0], alone[1], first))
    return rows


def change_words(difference: LargestDifference) -> str:
    """`0.91, in cross-attention, layer 2 head 2, row 10, column 2`: how much a weight has changed, and which."""
    size = say("not a number any more") if math.isinf(difference.size) else rounded_words(abs(difference.size), 2)
    cell = cell_words(difference.query, difference.key)
    return say("{size}, in {head}, {cell}", size=size, head=_head_words(difference), cell=cell)


def heads_off_words(run: Trace) -> list[str]:
    """`L1 H2 of the cross-attention`: the heads of a run that were switched off."""
    found: list[str] = []
    for text in run.edits:
        # A file may say anything.
        with suppress(OptionError):
            found += [off_words(edit) for edit in edits.parse(text) if isinstance(edit, HeadOff)]
    return found


def off_words(edit: HeadOff) -> str:
    """`L1 H2 of the cross-attention`: which head was switched off."""
    kind, layer, head = edit.place.kind, edit.place.layer, edit.place.head
    if layer is None or head is None:
        return str(edit.place)
    return say("{head} of the {attention}", head=head_label(layer, head), attention=kind_words(kind))


def size_words(size: float) -> str:
    """`+0.91`; never a rounded 0 for what is none."""
    if math.isinf(size):
        return say("not a number")
    if size and abs(size) < 0.005:
        return f"{'+' * (size > 0)}{rounded_words(size, 2)}"
    return signed_words(size, 2)


def model_words(run: Trace) -> str:
    """Checkpoint, and the snapshot where it is one."""
    name = str(run.made_by.get("checkpoint") or say("not recorded"))
    step = run.made_by.get("snapshot")
    return name if step is None else say("{model}, step {step}", model=name, step=step)


def how_words(run: Trace) -> str:
    """`beam, size 5`, with edits and a mistake."""
    found = [(name, run.made_by[name]) for name in _HOW if run.made_by.get(name) is not None]
    words = [
        known(str(value))
        if name == "strategy"
        else f"{_NAMES.get(name, name)} {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in found
    ]
    words += [count_words(len(run.edits), "edit")] if run.edits else []
    words += [say("mistake {mistake}", mistake=run.mistake)] if run.mistake else []
    return enumerated(words) or say("not recorded")


def written_words(run: Trace) -> str:
    """The text, and that it was given where it was."""
    if writes_nothing(run):
        return say("nothing; fills {tokens}", tokens=display_text(fills_words(run))) if run.fills else say("nothing")
    if not run.output_tokens:
        return say("not recorded")
    text = display_text(_short(run.text)) or say("nothing")
    return say("{text} (given)", text=text) if is_given(run) else text


def tokens_read(run: Trace) -> tuple[str, ...]:
    """The tokens of a run's text: what its encoder read, or its prompt."""
    return run.read_tokens


def aligns_differently_by_words(a: Trace, b: Trace) -> bool:
    """Tells whether two runs whose tokens are whole words are aligned differently by the words' text than by position."""
    read = [tokens_read(run) for run in (a, b)]
    for tokens, run in zip(read, (a, b), strict=True):
        if not all(word_starts(tokens, are_words=Words(run).are_words)):
            return False
    first, second = ([word_label([token]) for token in tokens] for tokens in read)
    return by_text(first, second) != by_position(len(first), len(second))


def writes_nothing(run: Trace) -> bool:
    """Tells whether the run is one of an encoder without a decoder."""
    return not run.writes and "encoder" in run.kinds


def fills_words(run: Trace) -> str:
    """The most probable token at each of its mask tokens."""
    return ", ".join(fill.candidates[0][0] for fill in run.fills)


def _texts(comparison: Comparison) -> Sentence:
    """Says what both read and write, and where that parts."""
    a, b = comparison.a, comparison.b
    names: tuple[Piece, Piece] = ("strong", "A"), ("strong", "B")
    first, second = (of_run(_short(run.source)) for run in (a, b))
    sides: dict[str, Any] = {"a": names[0], "b": names[1]}
    reads = (
        say_sentence("Both read {text}", text=first)
        if a.source == b.source
        else say_sentence("{a} reads {text}, {b} {other}", text=first, other=second, **sides)
    )
    if writes_nothing(a) and writes_nothing(b):
        if not (a.fills and b.fills):
            return say_sentence("{reads}; neither writes anything.", reads=reads)
        fills = [of_run(fills_words(run)) for run in (a, b)]
        if fills[0] == fills[1]:
            return say_sentence("{reads}; both fill in {tokens}.", reads=reads, tokens=fills[0])
        return say_sentence(
            "{reads}; {a} fills in {tokens}, {b} {others}.", reads=reads, tokens=fills[0], others=fills[1], **sides
        )
    if not (a.output_tokens and b.output_tokens):
        if writes_nothing(a) or writes_nothing(b):
            alone = names[not writes_nothing(a)]
            return say_sentence("{reads}; {run} is an encoder alone, which writes nothing.", reads=reads, run=alone)
        return say_sentence("{reads}; not both have recorded what they write.", reads=reads)
    if comparison.parted is None:
        text = of_run(_short(a.text) or say("nothing"))
        if is_given(a) == is_given(b):
            same: dict[str, Any] = {"reads": reads, "text": text}
            if a.source == b.source:
                return (
                    say_sentence("{reads} and are given {text}.", **same)
                    if is_given(a)
                    else say_sentence("{reads} and write {text}.", **same)
                )
            return (
                say_sentence("{reads}; both are given {text}.", **same)
                if is_given(a)
                else say_sentence("{reads}; both write {text}.", **same)
            )
        writer, other = names[is_given(a)], names[not is_given(a)]
        return say_sentence(
            "{reads}; {writer} writes {text}, which {other} is given.", reads=reads, writer=writer, text=text, other=other
        )
    does = [
        say_sentence("{run} is given {text}", run=name, text=of_run(_short(run.text) or say("nothing")))
        if is_given(run)
        else say_sentence("{run} writes {text}", run=name, text=of_run(_short(run.text) or say("nothing")))
        for name, run in zip(names, (a, b), strict=True)
    ]
    return say_sentence(
        "{reads}; {first}, {second}: they diverge at step {step}.",
        reads=reads,
        first=does[0],
        second=does[1],
        step=str(comparison.parted + 1),
    )


def _head_words(difference: LargestDifference) -> str:
    attention, head = kind_words(difference.kind), head_title(difference.layer, difference.head)
    return say("{attention}, {head}", attention=attention, head=head)


def _short(text: str) -> str:
    """A long text by its two ends; the strips have all of it."""
    half = _LONGEST_TEXT // 2
    return text if len(text) <= _LONGEST_TEXT else f"{text[:half]}…{text[1 - half :]}"
