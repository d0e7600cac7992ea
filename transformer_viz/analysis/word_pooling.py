"""A run by words: the pieces of each word as one row and one column.

Weights to a word are summed over its pieces; weights from a word are averaged over the rows that write its pieces (in an
encoder: read them), so every row still sums to 1. Clark et al. 2019, "What Does BERT Look At?", section 4.1, do the same.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from transformer_viz.analysis.word_starts import groups, is_special, spelt, word_starts
from transformer_viz.errors import OptionError
from transformer_viz.language import later, say
from transformer_viz.terms import Kind, kind_words
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Fill, Step
from transformer_viz.trace.trace import Trace

Places = list[list[int]]
UNIT = later("word")
"""The value of `made_by["unit"]` of such a run."""


class Words:
    """The tokens of a run that make each word.

    A row of the decoder belongs to the word that it writes, a column to the word that was read. Rows that write the rest of a
    word whose beginning stands in the prompt's first token belong to none. Where the limit cut the last word, its last token
    stands alone, since only the row that writes it could see the pieces before it.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def source(self) -> Places:
        """The places of the source's words: rows and columns of an encoder, columns of cross-attention."""
        return groups(word_starts(self._trace.source_tokens, are_words=self.are_words))

    @cached_property
    def rows(self) -> Places:
        """Query rows of the decoder, and the steps."""
        first = self._begins.index(True) if True in self._begins else len(self._begins) - 1
        return [[first + place for place in word] for word in groups(self._begins[first:])]

    @cached_property
    def columns(self) -> Places:
        """The words that the decoder read, as keys; as many as there are rows."""
        return groups([True, *self._begins[:-1]])

    @cached_property
    def _begins(self) -> list[bool]:
        """For each row of the decoder whether it writes the beginning of a word."""
        written = self._trace.output_tokens or (*self._trace.target_tokens[1:], "")
        is_start = word_starts([*self._trace.target_tokens[:1], *written], are_words=self.are_words)[1:]
        return [*is_start[:-1], True]

    @cached_property
    def are_words(self) -> bool:
        """Tells whether labels know no spaces although the texts have some: a space stands between any two."""
        trace = self._trace
        labels = (*trace.source_tokens, *trace.target_tokens, *trace.output_tokens)
        has_spaces = any(" " in text.strip() for text in (trace.source, trace.text))
        return has_spaces and not any(" " in label for label in labels)


def has_pieces(trace: Trace) -> bool:
    """Tells whether pooling by words changes a side of the run and leaves more than a single word between special tokens."""
    words = Words(trace)
    sides = ((trace.source_tokens, words.source), (trace.target_tokens, words.columns if trace.writes else []))
    return any(
        len(places) < len(tokens) and sum(not is_special(tokens[word[0]]) for word in places) > 1 for tokens, places in sides
    )


def is_by_words(trace: Trace) -> bool:
    """Tells whether `by_words` made this."""
    return trace.made_by.get("unit") == UNIT


def noun(trace: Trace) -> str:
    """Names the rows and columns of this run: tokens, or words."""
    return UNIT if is_by_words(trace) else later("token")


def axis_noun(trace: Trace) -> str:
    """The word `word` for the axes of a run by words; empty for tokens, whose labels need none."""
    return UNIT if is_by_words(trace) else ""


def kind_title(trace: Trace, kind: Kind, *, in_full: bool = True) -> str:
    """The title of a kind of attention over a map of this run; by words, with how weights were pooled.

    Args:
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        in_full: with what pooling does; else its name alone, where there is little room.
    """
    if not is_by_words(trace):
        return kind_words(kind)
    if in_full:
        return say("{attention} by words (keys summed, queries averaged)", attention=kind_words(kind))
    return say("{attention} by words", attention=kind_words(kind))


def by_words(trace: Trace) -> Trace:
    """Pools a run by words: in the result each word is one token. Weights are float32 (layer, head, word, word).

    The probability of a step is that of all pieces of its word; there are candidates where the word is a single piece. Scores,
    the tree of a search, groups, insides and attributions belong to tokens and are left out; fills of mask tokens are kept.

    Args:
        trace: a run by tokens.

    Returns:
        A Trace whose tokens are words.

    Raises:
        OptionError: the run is by words already.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("german", device="cpu")
        >>> trace = tv.decode(model, "den Hund sieht der König")
        >>> tv.by_words(trace).source_tokens
        ('<start>', 'den', 'Hund', 'sieht', 'der', 'König', '<end>')
    """
    if is_by_words(trace):
        raise OptionError("This run is by words already.")
    words, expected = Words(trace), trace.expected_tokens
    rows, columns = (words.rows, words.columns) if trace.writes else ([], [])

    def labels(tokens: Sequence[str], places: Places) -> tuple[str, ...]:
        return tuple(word_label([tokens[place] for place in word]) for word in places)

    def attention_by_words(kind: Kind, attention: Attention) -> Attention:
        """Weights float32 (layer, head, word, word), sums taken in double precision. A word is masked where every piece of it
        is, for all reasons together."""
        queries = words.source if kind == "encoder" else rows
        keys = [word[0] for word in (columns if kind == "decoder" else words.source)]
        first, reasons = queries[0][0], attention.reasons[..., queries[0][0] :, :]
        row_firsts = [row[0] - first for row in queries]
        summed = np.add.reduceat(attention.weights[:, :, first:], keys, axis=-1, dtype=np.float64)
        totals = np.add.reduceat(summed, row_firsts, axis=-2)
        any_allowed = np.logical_or.reduceat(np.logical_or.reduceat(reasons == 0, keys, -1), row_firsts, -2)
        together = np.bitwise_or.reduceat(np.bitwise_or.reduceat(reasons, keys, -1), row_firsts, -2)
        return Attention(
            weights=(totals / np.array([len(row) for row in queries])[:, None]).astype(np.float32),
            reasons=np.where(any_allowed, np.uint8(0), together),
            layers=attention.layers,
        )

    def step_by_words(row: Sequence[int], word: str) -> Step:
        """The step of a word: a single piece keeps its step, named by its word; several have the product of their
        probabilities."""
        steps = [trace.steps[place] for place in row]
        if len(steps) == 1:
            return _named(steps[0], word)
        total = math.fsum(step.log_probability for step in steps)
        sampling = [step.sampling_probability for step in steps if step.sampling_probability is not None]
        return Step(
            token=word,
            probability=math.exp(total),
            log_probability=total,
            rank=None,
            candidates=(),
            sampling_probability=math.prod(sampling) if len(sampling) == len(steps) else None,
        )

    def true_key(row: Sequence[int]) -> int | None:
        """The word that all its pieces must look at, or None."""
        keys = {trace.alignment[place] for place in row}
        of_keys = {None if key is None else _place(words.source, key) for key in keys}
        return of_keys.pop() if len(of_keys) == 1 else None

    written = labels(trace.output_tokens, rows) if trace.output_tokens else ()
    expected_words = groups(word_starts(expected or (), are_words=words.are_words))
    return replace(
        trace,
        source_tokens=labels(trace.source_tokens, words.source),
        target_tokens=labels(trace.target_tokens, columns),
        output_tokens=written,
        steps=tuple(map(step_by_words, rows, written)) if trace.steps else (),
        attentions={kind: attention_by_words(kind, attention) for kind, attention in trace.attentions.items()},
        alignment=tuple(map(true_key, rows)),
        source_letters=(None,) * len(words.source),
        expected_tokens=None if expected is None else labels(expected, expected_words),
        made_by={**trace.made_by, "unit": UNIT},
        search=None,
        n_given=sum(row[-1] < trace.n_given for row in rows) if trace.output_tokens else 0,
        source_ids=None,
        target_ids=None,
        output_ids=None,
        fills=tuple(Fill(place=_place(words.source, fill.place), candidates=fill.candidates) for fill in trace.fills),
        groups={},
        insides=(),
        attributions={},
    )


def step_of_words(trace: Trace, step: int) -> int:
    """Finds the row of the run by words that a row of a run by tokens belongs to; the first for one that belongs to none."""
    words = Words(trace)
    return _place(words.rows if trace.writes else words.source, step)


def step_of_tokens(trace: Trace, word: int) -> int:
    """The first row of the run by tokens that a row of its run by words is made of."""
    words = Words(trace)
    rows = words.rows if trace.writes else words.source
    return rows[min(word, len(rows) - 1)][0]


def _named(step: Step, word: str) -> Step:
    """The step of a piece that is a whole word; the other candidates may go on with the word before it, and stay pieces."""
    names = [token for token, _ in step.candidates]
    keys, own = (step.candidate_ids, step.token_id) if step.candidate_ids else (names, step.token)
    pairs = zip(keys, step.candidates, strict=True)
    candidates = tuple((word if key == own else token, p) for key, (token, p) in pairs)
    return replace(step, token=word, candidates=candidates)


def word_label(pieces: Sequence[str]) -> str:
    """A word as people write it, without the space before it; what is a space alone stays one."""
    if len(pieces) == 1 and is_special(pieces[0]):
        return pieces[0]
    text = spelt("".join(piece.removeprefix("##") if place else piece for place, piece in enumerate(pieces)))
    return text.strip(" ") or text


def _place(places: Places, token: int) -> int:
    """The word that a token belongs to; the first for one before them all."""
    return max((number for number, word in enumerate(places) if word[0] <= token), default=0)
