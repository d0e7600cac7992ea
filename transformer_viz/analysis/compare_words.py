"""What two runs have apart, said in words: a sentence, the rows of a small table, and one changed weight."""

import math
from dataclasses import dataclass
from typing import Any

from transformer_viz.analysis.comparison import Comparison, LargestDifference
from transformer_viz.analysis.correctness import answer, answer_words, is_given
from transformer_viz.analysis.sentences import Sentence, Style, of_run, plain
from transformer_viz.analysis.word_pairs import apart, by_position, by_text
from transformer_viz.analysis.word_pooling import Words, noun, word_label
from transformer_viz.analysis.word_starts import word_starts
from transformer_viz.numbers_in_words import count_words, percent_words, rounded_words, signed_words
from transformer_viz.terms import (
    KIND_TITLES,
    KINDS,
    REASON_WORDS,
    Kind,
    cell_words,
    head_label,
    head_title,
    place_words,
    visible_text,
)
from transformer_viz.trace.trace import Trace

_HOW = ("strategy", "beam_size", "length_penalty", "temperature", "top_k", "top_p", "seed")
_LONGEST_TEXT = 48
_NAMES = {"beam_size": "size", "length_penalty": "α"}


@dataclass(frozen=True)
class Row:
    """One line of the table: what is compared, what A and B have, and how they differ; all of it plain text.

    `kind` is set where attention differs: there is a place to go to.
    """

    what: str
    a: str
    b: str
    apart: str
    kind: Kind | None = None


def verdict(comparison: Comparison) -> Sentence:
    """What differs, and where attention differs most."""
    return (*_texts(comparison), *_most(comparison))


def table(comparison: Comparison) -> list[Row]:
    """Input, model, decoding, output, and a line for each kind of attention; masks where they differ."""
    a, b = comparison.a, comparison.b
    a_reads, b_reads = (visible_text(_short(run.source)) for run in (a, b))
    a_writes, b_writes = map(written_words, (a, b))
    answers = [_answer_row(a, b)] if answer(a) or answer(b) else []
    plain_rows = [
        Row("reads", a_reads, b_reads, _reads_apart(comparison)),
        Row("model", model_words(a), model_words(b), _same(model_words(a) == model_words(b))),
        Row("decoding", how_words(a), how_words(b), _same(how_words(a) == how_words(b))),
        Row("writes", a_writes, b_writes, _outputs_apart(comparison)),
    ]
    kinds = [kind for kind in KINDS if kind in (*a.kinds, *b.kinds)]
    return [*plain_rows, *answers, *(_kind_row(comparison, kind) for kind in kinds), *_mask_rows(comparison)]


def change_words(found: LargestDifference) -> str:
    """`0.91, in cross-attention, layer 2 head 2, row 10, column 2`: how much a weight has changed, and which."""
    size = "not a number any more" if math.isinf(found.size) else f"{abs(found.size):.2g}"
    return f"{size}, in {_head_words(found)}, {cell_words(found.query, found.key)}"


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
    words = [str(value) if name == "strategy" else f"{_NAMES.get(name, name)} {_number(value)}" for name, value in known]
    words += [count_words(len(run.edits), "edit")] if run.edits else []
    words += [f"mistake {run.mistake}"] if run.mistake else []
    return ", ".join(words) or "not recorded"


def written_words(run: Trace) -> str:
    """The text, and that it was given where it was."""
    if writes_nothing(run):
        return f"nothing; fills {visible_text(fills_words(run))}" if run.fills else "nothing"
    if not run.output_tokens:
        return "not recorded"
    if is_given(run):
        return f"{visible_text(_short(run.text)) or 'nothing'} (given)"
    return visible_text(_short(run.text)) or "nothing"


def tokens_read(run: Trace) -> tuple[str, ...]:
    """Of its text: what its encoder read, or its prompt."""
    return run.source_tokens or run.target_tokens[: run.n_given + 1]


def lie_otherwise_by_words(a: Trace, b: Trace) -> bool:
    """Whether what two runs read, of which each token is a word by itself, lies upon each other otherwise by the words' text
    than by position."""
    read = [tokens_read(run) for run in (a, b)]
    for tokens, run in zip(read, (a, b), strict=True):
        if not all(word_starts(tokens, are_words=Words(run).are_words)):
            return False
    first, second = ([word_label([token]) for token in tokens] for tokens in read)
    return by_text(first, second) != by_position(len(first), len(second))


def writes_nothing(run: Trace) -> bool:
    """Whether it is an encoder's alone."""
    return not run.writes and "encoder" in run.kinds


def fills_words(run: Trace) -> str:
    """The most probable token at each of its mask tokens."""
    return ", ".join(fill.candidates[0][0] for fill in run.fills)


# ---- the sentence


def _texts(comparison: Comparison) -> list[tuple[Style, str]]:
    a, b = comparison.a, comparison.b
    first, second = _short(a.source), _short(b.source)
    pieces: list[tuple[Style, str]] = [("plain", "Both read "), of_run(first)]
    if a.source != b.source:
        pieces = [("strong", "A"), ("plain", " reads "), of_run(first), ("plain", ", "), ("strong", "B"), ("plain", " ")]
        pieces.append(of_run(second))
    if writes_nothing(a) and writes_nothing(b):
        return [*pieces, *_fills(a, b)]
    if not (a.output_tokens and b.output_tokens):
        names = [name for name, run in (("A", a), ("B", b)) if writes_nothing(run)]
        if names:
            return [*pieces, ("plain", "; "), ("strong", names[0]), ("plain", " is an encoder alone, which writes nothing.")]
        return [*pieces, ("plain", "; not both have recorded what they write.")]
    if comparison.parted is None:
        return [*pieces, *_same_output(_short(a.text) or "nothing", is_given(a), is_given(b), a.source == b.source)]
    for name, run, start in (("A", a, "; "), ("B", b, ", ")):
        verb = " is given " if is_given(run) else " writes "
        pieces += [("plain", start), ("strong", name), ("plain", verb), of_run(_short(run.text) or "nothing")]
    return [*pieces, ("plain", f": they diverge at step {comparison.parted + 1}.")]


def _fills(a: Trace, b: Trace) -> list[tuple[Style, str]]:
    """Of two encoders alone: what they put at their mask tokens."""
    if not (a.fills and b.fills):
        return [("plain", "; neither writes anything.")]
    first, second = map(fills_words, (a, b))
    if first == second:
        return [("plain", "; both fill in "), of_run(first), ("plain", ".")]
    ends: list[tuple[Style, str]] = [("plain", ", "), ("strong", "B"), ("plain", " "), of_run(second), ("plain", ".")]
    return [("plain", "; "), ("strong", "A"), ("plain", " fills in "), of_run(first), *ends]


def _same_output(text: str, a_given: bool, b_given: bool, is_same_source: bool) -> list[tuple[Style, str]]:
    """Who chose the tokens that both have."""
    if a_given == b_given:
        verb = "are given" if a_given else "write"
        return [("plain", f" and {verb} " if is_same_source else f"; both {verb} "), of_run(text), ("plain", ".")]
    writer, reader = ("B", "A") if a_given else ("A", "B")
    end: list[tuple[Style, str]] = [("plain", ", which "), ("strong", reader), ("plain", " is given.")]
    return [("plain", "; "), ("strong", writer), ("plain", " writes "), of_run(text), *end]


def _most(comparison: Comparison) -> list[tuple[Style, str]]:
    """Where attention differs most, with both weights."""
    if not comparison.kinds:
        return [("plain", " They have no kind of attention in common.")]
    found = comparison.largest
    if found is None:
        return [("plain", " No weight differs.")]
    start: list[tuple[Style, str]] = [
        ("plain", " Attention differs most in "),
        ("strong", _head_words(found)),
        ("plain", f": in row {found.query + 1}{' of A' if found.in_b else ''}, "),
    ]
    looks = [_look(comparison.a, found.kind, found.key, found.a)]
    looks.append(_look(comparison.b, found.kind, found.in_b[1] if found.in_b else found.key, found.b))
    return [*start, ("strong", "A"), *looks[0], ("plain", ", "), ("strong", "B"), *looks[1], ("plain", ".")]


def _head_words(found: LargestDifference) -> str:
    return f"{KIND_TITLES[found.kind]}, {head_title(found.layer, found.head)}"


def _look(run: Trace, kind: Kind, key: int, weight: float) -> list[tuple[Style, str]]:
    if math.isnan(weight):
        return [("plain", " has no number")]
    token: tuple[Style, str] = of_run(run.attentions[kind].keys[key])
    return [("plain", f" looks {percent_words(weight)} at "), token, ("plain", f" ({place_words(key, noun(run))})")]


# ---- the table


def _reads_apart(comparison: Comparison) -> str:
    a, b = (tokens_read(run) for run in (comparison.a, comparison.b))
    pairs = comparison.paired(a, b)
    places = apart(pairs, a, b)
    if not places:
        return "same"
    words, (in_a, in_b) = noun(comparison.a), pairs[places[0]]
    first = place_words(in_b or 0, words) + " of B" if in_a is None else place_words(in_a, words)
    return f"{len(places)} {words}s, from {first} on" if len(places) > 1 else first


def _outputs_apart(comparison: Comparison) -> str:
    a, b = comparison.a, comparison.b
    if writes_nothing(a) and writes_nothing(b):
        return _same(fills_words(a) == fills_words(b))
    if not (a.output_tokens and b.output_tokens):
        return "unknown"
    return "same" if comparison.parted is None else f"from step {comparison.parted + 1} on"


def _answer_row(a: Trace, b: Trace) -> Row:
    """Whether each output is right; the expected one is in the words of a wrong one."""
    first, second = (plain(answer_words(run)) for run in (a, b))
    is_known = None not in (a.is_right, b.is_right)
    return Row("answer", first, second, _same(answer(a) == answer(b)) if is_known else "not known of both")


def _same(is_same: bool) -> str:
    return "same" if is_same else "differs"


def _kind_row(comparison: Comparison, kind: Kind) -> Row:
    title = KIND_TITLES[kind]
    if kind not in comparison.kinds:
        a, b = ("" if kind in run.kinds else "has none" for run in (comparison.a, comparison.b))
        return Row(title, a, b, "not in both")
    found = comparison.farthest(kind)
    if found is None:
        return Row(title, "", "", "no weight differs")
    weights = [f"{weight:.3f}" for weight in (found.a, found.b)]
    place = f"{head_label(found.layer, found.head)}, {cell_words(found.query, found.key)}{' of A' if found.in_b else ''}"
    return Row(title, *weights, f"{size_words(found.size)} in {place}", kind)


def _mask_rows(comparison: Comparison) -> list[Row]:
    rows = []
    for found in filter(None, map(comparison.mask_difference, comparison.kinds)):
        a, b = (f"{n} masked here alone" for n in (found.in_a_alone, found.in_b_alone))
        in_a, in_b = (REASON_WORDS[code] for code in found.reasons)
        where = cell_words(*found.first) + (" of A" if comparison.is_by_text else "")
        rows.append(Row(f"{found.kind} mask", a, b, f"first: {where}: {in_a} in A, {in_b} in B"))
    return rows


def _short(text: str) -> str:
    """A long text by its two ends; the strips have all of it."""
    half = _LONGEST_TEXT // 2
    return text if len(text) <= _LONGEST_TEXT else f"{text[:half]}…{text[1 - half :]}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
