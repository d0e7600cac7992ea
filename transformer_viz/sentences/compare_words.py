"""The differences of two runs in words: a sentence, the rows of a small table, and the weight that changed most."""

import math
from contextlib import suppress
from dataclasses import dataclass

from transformer_viz import edits
from transformer_viz.analysis.word_pooling import Words, noun, word_label
from transformer_viz.analysis.word_starts import word_starts
from transformer_viz.comparison.compare import Comparison, LargestDifference
from transformer_viz.comparison.word_pairs import by_position, by_text, pairs_that_differ
from transformer_viz.edits import HeadOff
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import count_words, number_words, percent_words, rounded_words, signed_words
from transformer_viz.sentences.correctness import answer, answer_words, is_given
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, plain, sentence
from transformer_viz.terms import KIND_TITLES, KINDS, REASON_WORDS, Kind, cell_words, head_label, head_title, place_words
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
    if not comparison.kinds or largest is None:
        return sentence(*texts, " No weight differs." if comparison.kinds else " They have no kind of attention in common.")
    in_row = f": in row {largest.query + 1}{' of A' if largest.in_b else ''}, "
    pieces: list[str | Piece] = [*texts, " Attention differs most in ", ("strong", _head_words(largest)), in_row]
    in_b = largest.in_b[1] if largest.in_b else largest.key
    for name, run, key, weight in (("A", comparison.a, largest.key, largest.a), ("B", comparison.b, in_b, largest.b)):
        pieces.append(("strong", name))
        if math.isnan(weight):
            pieces.append(" has no number")
        else:
            token = of_run(run.attentions[largest.kind].keys[key])
            pieces += [f" looks {percent_words(weight)} at ", token, f" ({place_words(key, noun(run))})"]
        pieces.append(", " if name == "A" else ".")
    return sentence(*pieces)


def table(comparison: Comparison) -> list[Row]:
    """Input, model, decoding, output, and a line for each kind of attention; masks where they differ."""
    a, b = comparison.a, comparison.b

    def row(what: str, of_a: str, of_b: str, apart: str = "") -> Row:
        return Row(what, of_a, of_b, apart or ("same" if of_a == of_b else "differs"))

    read = [tokens_read(run) for run in (a, b)]
    pairs, words, reads_apart = comparison.paired(*read), noun(a), "same"
    if places := pairs_that_differ(pairs, *read):
        in_a, in_b = pairs[places[0]]
        reads_apart = place_words(in_b or 0, words) + " of B" if in_a is None else place_words(in_a, words)
        reads_apart = f"{len(places)} {words}s, from {reads_apart} on" if len(places) > 1 else reads_apart
    if writes_nothing(a) and writes_nothing(b):
        writes_apart = "same" if fills_words(a) == fills_words(b) else "differs"
    elif not (a.output_tokens and b.output_tokens):
        writes_apart = "unknown"
    else:
        writes_apart = "same" if comparison.parted is None else f"from step {comparison.parted + 1} on"
    rows = [
        row("reads", display_text(_short(a.source)), display_text(_short(b.source)), reads_apart),
        row("model", model_words(a), model_words(b)),
        row("decoding", how_words(a), how_words(b)),
        row("writes", written_words(a), written_words(b), writes_apart),
    ]
    if answer(a) or answer(b):
        # The expected answer is in the words of a wrong one.
        is_known = None not in (a.is_right, b.is_right)
        answers_apart = ("same" if answer(a) == answer(b) else "differs") if is_known else "not known of both"
        rows.append(row("answer", plain(answer_words(a)), plain(answer_words(b)), answers_apart))
    for kind in [kind for kind in KINDS if kind in (*a.kinds, *b.kinds)]:
        largest = comparison.farthest(kind) if kind in comparison.kinds else None
        if largest is not None:
            of_a = " of A" if largest.in_b else ""
            place = f"{head_label(largest.layer, largest.head)}, {cell_words(largest.query, largest.key)}{of_a}"
            words = f"{size_words(largest.size)} in {place}"
            rows.append(Row(KIND_TITLES[kind], number_words(largest.a, 3), number_words(largest.b, 3), words, kind))
        elif kind in comparison.kinds:
            rows.append(Row(KIND_TITLES[kind], "", "", "no weight differs"))
        else:
            has = ["" if kind in run.kinds else "has none" for run in (a, b)]
            rows.append(Row(KIND_TITLES[kind], has[0], has[1], "not in both"))
    for mask in filter(None, map(comparison.mask_difference, comparison.kinds)):
        alone = [f"{n} masked here alone" for n in (mask.in_a_alone, mask.in_b_alone)]
        in_a, in_b = (REASON_WORDS[code] for code in mask.reasons)
        where = cell_words(*mask.first) + (" of A" if comparison.is_by_text else "")
        rows.append(Row(f"{mask.kind} mask", alone[0], alone[1], f"first: {where}: {in_a} in A, {in_b} in B"))
    return rows


def change_words(difference: LargestDifference) -> str:
    """`0.91, in cross-attention, layer 2 head 2, row 10, column 2`: how much a weight has changed, and which."""
    size = "not a number any more" if math.isinf(difference.size) else rounded_words(abs(difference.size), 2)
    return f"{size}, in {_head_words(difference)}, {cell_words(difference.query, difference.key)}"


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
    return str(edit.place) if layer is None or head is None else f"{head_label(layer, head)} of the {KIND_TITLES[kind]}"


def size_words(size: float) -> str:
    """`+0.91`; never a rounded 0 for what is none."""
    if math.isinf(size):
        return "not a number"
    if size and abs(size) < 0.005:
        return f"{'+' * (size > 0)}{rounded_words(size, 2)}"
    return signed_words(size, 2)


def model_words(run: Trace) -> str:
    """Checkpoint, and the snapshot where it is one."""
    name = str(run.made_by.get("checkpoint") or "not recorded")
    step = run.made_by.get("snapshot")
    return name if step is None else f"{name}, step {step}"


def how_words(run: Trace) -> str:
    """`beam, size 5`, with edits and a mistake."""
    known = [(name, run.made_by[name]) for name in _HOW if run.made_by.get(name) is not None]
    words = [
        str(value) if name == "strategy" else f"{_NAMES.get(name, name)} {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in known
    ]
    words += [count_words(len(run.edits), "edit")] if run.edits else []
    words += [f"mistake {run.mistake}"] if run.mistake else []
    return ", ".join(words) or "not recorded"


def written_words(run: Trace) -> str:
    """The text, and that it was given where it was."""
    if writes_nothing(run):
        return f"nothing; fills {display_text(fills_words(run))}" if run.fills else "nothing"
    if not run.output_tokens:
        return "not recorded"
    if is_given(run):
        return f"{display_text(_short(run.text)) or 'nothing'} (given)"
    return display_text(_short(run.text)) or "nothing"


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


def _texts(comparison: Comparison) -> list[str | Piece]:
    """Says what both read and write, and where that parts."""
    a, b = comparison.a, comparison.b
    names: tuple[Piece, Piece] = ("strong", "A"), ("strong", "B")
    first, second = (of_run(_short(run.source)) for run in (a, b))
    pieces: list[str | Piece] = ["Both read ", first]
    if a.source != b.source:
        pieces = [names[0], " reads ", first, ", ", names[1], " ", second]
    if writes_nothing(a) and writes_nothing(b):
        if not (a.fills and b.fills):
            return [*pieces, "; neither writes anything."]
        fills = [of_run(fills_words(run)) for run in (a, b)]
        if fills[0] == fills[1]:
            return [*pieces, "; both fill in ", fills[0], "."]
        return [*pieces, "; ", names[0], " fills in ", fills[0], ", ", names[1], " ", fills[1], "."]
    if not (a.output_tokens and b.output_tokens):
        if writes_nothing(a) or writes_nothing(b):
            return [*pieces, "; ", names[not writes_nothing(a)], " is an encoder alone, which writes nothing."]
        return [*pieces, "; not both have recorded what they write."]
    if comparison.parted is None:
        text = of_run(_short(a.text) or "nothing")
        if is_given(a) == is_given(b):
            verb = "are given" if is_given(a) else "write"
            return [*pieces, f" and {verb} " if a.source == b.source else f"; both {verb} ", text, "."]
        writer = names[is_given(a)]
        return [*pieces, "; ", writer, " writes ", text, ", which ", names[not is_given(a)], " is given."]
    for name, run, start in zip(names, (a, b), ("; ", ", "), strict=True):
        pieces += [start, name, " is given " if is_given(run) else " writes ", of_run(_short(run.text) or "nothing")]
    return [*pieces, f": they diverge at step {comparison.parted + 1}."]


def _head_words(difference: LargestDifference) -> str:
    return f"{KIND_TITLES[difference.kind]}, {head_title(difference.layer, difference.head)}"


def _short(text: str) -> str:
    """A long text by its two ends; the strips have all of it."""
    half = _LONGEST_TEXT // 2
    return text if len(text) <= _LONGEST_TEXT else f"{text[:half]}…{text[1 - half :]}"
