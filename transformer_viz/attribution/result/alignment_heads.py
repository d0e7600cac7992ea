"""The alignment error of each head of cross-attention: the source word that it links to each target word, beside known links.

A head links a target word to the source word with most of its weight, and to none where that is a special token. As in a map
by words, the weight is the sum over the pieces of the source word and the mean over the rows of the target word. These rows
are either those that write the word's pieces, or the next ones, which read them; both are tried, and the better is reported,
since a row that writes a word of a given translation knows only what the model itself would have written (Chen et al. 2020,
"Accurate Word Alignment Induction from Neural Machine Translation"). Heads are ranked by the row that writes, which is the one
to ask while a model decodes: the programs of Whisper and Marian ask it, and so do our strips.

Every target word counts but special ones. Where the true links leave one out, whatever a head links it to is wrong.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.alignment_head import ROW_WORDS, ROWS, RowOf
from transformer_viz.analysis.intervals import Mean
from transformer_viz.analysis.word_links import Link, words_of
from transformer_viz.analysis.word_pooling import Words, word_label
from transformer_viz.analysis.word_starts import is_special
from transformer_viz.comparison.word_pairs import by_text
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import count_words, number_words
from transformer_viz.terms import head_label
from transformer_viz.text_table import number_cell, text_table
from transformer_viz.trace.trace import Trace

MOST_AVERAGED = 5
Head = tuple[int, int]
"""A layer's number and a head, from 0."""


@dataclass(frozen=True)
class WordAttention:
    """The attention of every head for each target word of one run, special ones left out.

    Attributes:
        target: the words.
        source: the words of the source.
        places: int (key,), which source word each key is; −1 of a special token.
        heads: layer and head, in the order of the weights.
        weights: float32 (row, head, word, key), `ROWS` by `heads`; NaN where no such row was read.
        truth: bool (word, source word), what is linked; None where that is not known.
    """

    target: tuple[str, ...]
    source: tuple[str, ...]
    places: np.ndarray
    heads: tuple[Head, ...]
    weights: np.ndarray
    truth: np.ndarray | None = None

    def most_attended(self, weights: np.ndarray) -> np.ndarray:
        """(…, key) -> (…): the source word that most weight lies on; −1 for none."""
        return np.where(np.isnan(weights).any(-1), -1, self.places[weights.argmax(-1)])


@dataclass(frozen=True)
class HeadAlignment:
    """One head.

    Attributes:
        layer: from 0.
        head: from 0.
        row: of a target word, `writes` or `reads`: the one with the lower error, or without links the greater agreement.
        errors: alignment error rate against the links, all of them sure (1 − F1), by row; NaN without links.
        precision: the share of its links that are right, in that row.
        recall: the share of the links that it has, in that row.
        agreement: the share of target words that it links as the reference does.
        effect: the mean change of a target token's log-probability without this head, in nats; None where not asked for.
    """

    layer: int
    head: int
    row: RowOf
    errors: Mapping[RowOf, float]
    precision: float
    recall: float
    agreement: float
    effect: Mean | None = None

    @property
    def place(self) -> HeadAddress:
        """Its address."""
        return HeadAddress("cross", self.layer, self.head)

    @property
    def error(self) -> float:
        """The alignment error in the head's better row."""
        return self.errors[self.row]

    def __str__(self) -> str:
        return head_label(self.layer, self.head)


@dataclass(frozen=True)
class Average:
    """A few heads whose mean weights are used like those of one head.

    Attributes:
        heads: in the order in which they were taken.
        row: of a target word.
        error: alignment error rate.
    """

    heads: tuple[Head, ...]
    row: RowOf
    error: float

    @property
    def alignment_heads(self) -> list[list[int]]:
        """`[[layer, head], …]`, both from 0."""
        return [list(head) for head in sorted(self.heads)]


@dataclass(frozen=True)
class AlignmentHeads:
    """The heads of cross-attention, first the one that aligns best in the row that writes a word.

    Attributes:
        truth: where the links come from: `links`, or `task`; None where there are none, and heads are ranked by agreement.
        unit: `word`, or `token` where the task says which token each step must look at.
        n_texts: how many.
        n_words: target words, or tokens, special ones left out.
        n_links: true links.
        reference: the head that the others are compared with.
        heads: ranked.
        averages: the best found in each row, one head taken after the other, so that others may be better; none without links.
    """

    truth: Literal["links", "task"] | None
    unit: Literal["word", "token"]
    n_texts: int
    n_words: int
    n_links: int
    reference: HeadAddress
    heads: tuple[HeadAlignment, ...]
    averages: tuple[Average, ...]

    def __repr__(self) -> str:
        """One line."""
        best = self.heads[0].place
        return f"<AlignmentHeads best {best} of {count_words(len(self.heads), 'head')}, {count_words(self.n_texts, 'text')}>"

    @property
    def alignment_heads(self) -> list[list[int]]:
        """`[[layer, head], …]` from 0, as a generation config of Whisper has it: the average in the row that writes a word, as
        such programs ask it; without links the best head alone."""
        return self.averages[0].alignment_heads if self.averages else [[self.heads[0].layer, self.heads[0].head]]

    def best(self, row: RowOf = "writes") -> HeadAlignment:
        """The head that aligns best in one row; without links the first."""
        return min(self.heads, key=lambda each: each.errors[row]) if self.truth else self.heads[0]

    def at(self, head: str | HeadAddress) -> HeadAlignment:
        """One head, such as `cross.2.1`.

        Raises:
            OptionError: there is no such head.
        """
        place = HeadAddress.read(head)
        for alignment in self.heads:
            if alignment.place == place:
                return alignment
        heads = join_names(alignment.place for alignment in sorted(self.heads, key=lambda one: one.place))
        raise OptionError(f"there is no head {place} here; there are {heads}")

    def __str__(self) -> str:
        """The number of words, a table of all heads, and the averages."""
        truth = {"links": "the links given", "task": "the task's own alignment", None: "none is known"}[self.truth]
        judged = f"{count_words(self.n_words, self.unit)} of {count_words(self.n_texts, 'text')}"
        ranked_by = "the row that writes a word" if self.truth else "agreement"
        header = ("head", "AER writing", "AER reading", "better row", "precision", "recall")
        header = (*header, f"as {head_label(self.reference.layer, self.reference.head)}", "change of log p a token")
        rows = []
        for alignment in self.heads:
            shares = map(number_cell, (alignment.precision, alignment.recall, alignment.agreement))
            row, effect = alignment.row if self.truth else "-", "-" if alignment.effect is None else str(alignment.effect)
            rows.append((str(alignment), *map(number_cell, alignment.errors.values()), row, *shares, effect))
        lines = [f"{judged}; {count_words(self.n_links, 'link')}: {truth}; ranked by {ranked_by}", text_table(header, rows)]
        for average in self.averages:
            best, together = self.best(average.row), " + ".join(head_label(*head) for head in average.heads)
            errors = f"{best} alone {number_words(best.errors[average.row], 3)}; {together} {number_words(average.error, 3)}"
            lines.append(f"in the row that {ROW_WORDS[average.row]}: {errors}, alignment_heads={average.alignment_heads}")
        return "\n".join(lines if self.averages else [*lines, f"alignment_heads={self.alignment_heads}"])


def attended(trace: Trace, *, unit: Literal["word", "token"] = "word", languages: Collection[str] = ()) -> WordAttention:
    """Pools the cross-attention of a run by target words.

    Args:
        trace: the run, with cross-attention.
        unit: what a target and a source word are made of: their pieces, or each token alone.
        languages: labels of language tokens, which are left out as special ones are.
    """
    words = Words(trace)
    source, target = words.source, words.rows
    if unit == "token":
        source, target = ([[place] for place in range(n)] for n in (len(trace.source_tokens), trace.n_steps))

    def labels(tokens: Sequence[str], places: list[list[int]]) -> list[str | None]:
        words = (word_label([tokens[place] for place in word]) for word in places)
        return [None if is_special(word) or word in languages else word for word in words]

    keys, rows = labels(trace.source_tokens, source), labels(trace.output_tokens, target)
    real = [word for word, label in zip(target, rows, strict=True) if label is not None]
    by_key = np.add.reduceat(trace.cross.weights, [word[0] for word in source], axis=-1, dtype=np.float64).astype(np.float32)
    by_key = by_key.reshape(-1, *by_key.shape[2:])
    n_heads, n_rows, n_keys = by_key.shape
    weights = np.full((len(ROWS), n_heads, len(real), n_keys), np.nan, dtype=np.float32)
    for place, word in enumerate(real):
        # The mean over the word's rows, or over those after them.
        for after in range(len(ROWS)):
            if mine := [row + after for row in word if row + after < n_rows]:
                weights[after, :, place] = by_key[:, mine].mean(1)
    return WordAttention(
        target=tuple(label for label in rows if label is not None),
        source=tuple(label for label in keys if label is not None),
        places=np.where([label is None for label in keys], -1, np.cumsum([label is not None for label in keys]) - 1),
        heads=tuple((layer, head) for layer in trace.cross.layers for head in range(trace.cross.n_heads)),
        weights=weights,
    )


def with_links(run: WordAttention, links: Iterable[Link], text: str, target: str) -> WordAttention:
    """The run with links between words of its texts.

    A word that the model reads as something else, such as the unknown token, is found by its neighbours.
    """
    sides = ((words_of(text), run.source), (words_of(target), run.target))
    of_text, of_target = ({i: k for i, k in by_text(known, own) if i is not None} for known, own in sides)
    truth = np.zeros((len(run.target), len(run.source)), dtype=bool)
    for i, j in links:
        if (source := of_text.get(i)) is not None and (word := of_target.get(j)) is not None:
            truth[word, source] = True
    return replace(run, truth=truth)


def with_alignment(run: WordAttention, trace: Trace) -> WordAttention:
    """The run, by tokens, with what its task says. A token that need look at none has no link, as a word that nobody linked."""
    steps = [step for step, token in enumerate(trace.output_tokens) if not is_special(token)]
    truth = np.zeros((len(steps), len(run.source)), dtype=bool)
    for place, step in enumerate(steps):
        if (key := trace.alignment[step]) is not None and run.places[key] >= 0:
            truth[place, run.places[key]] = True
    return replace(run, truth=truth)


def n_links(runs: Sequence[WordAttention]) -> int:
    """The true links of all runs."""
    return sum(int(run.truth.sum()) for run in runs if run.truth is not None)


def ranked(runs: Sequence[WordAttention], reference: Head | None = None) -> tuple[Head, tuple[HeadAlignment, ...]]:
    """The reference, and all heads, best first.

    Args:
        runs: of one model; all with links, or none.
        reference: the head to compare with; by default the first, and needed without links.
    """
    heads, links = runs[0].heads, [run.most_attended(run.weights) for run in runs]
    has_truth = all(run.truth is not None for run in runs)
    nothing = np.full((len(ROWS), len(heads)), np.nan)
    error, precision, recall = _scores(runs, links) if has_truth else (nothing, nothing, nothing)
    if reference is None:
        assert has_truth
        reference = heads[int(error[0].argmin())]
    place = heads.index(reference)
    own_row = int(error[:, place].argmin()) if has_truth else 0
    # The share of target words that are linked as by the reference, in its own better row.
    same = np.concatenate([link == link[own_row, place] for link in links], axis=-1)
    agreement = same.mean(-1) if same.shape[-1] else np.zeros(same.shape[:-1])
    better = (error if has_truth else -agreement).argmin(0)
    all_heads = []
    for at, (row, head) in enumerate(zip(better, heads, strict=True)):
        errors = dict(zip(ROWS, error[:, at].tolist(), strict=True))
        of_row = [float(values[row, at]) for values in (precision, recall, agreement)]
        all_heads.append(HeadAlignment(*head, ROWS[row], errors, of_row[0], of_row[1], of_row[2]))
    return reference, tuple(sorted(all_heads, key=lambda one: one.errors["writes"] if has_truth else -one.agreement))


def best_averages(runs: Sequence[WordAttention]) -> tuple[Average, ...]:
    """A few heads whose mean weights align best, at each row: the best head first, then the one that lowers the error most."""
    averages = []
    for row, name in enumerate(ROWS):
        chosen, error = list[int](), np.inf
        sums = [np.zeros(run.weights.shape[2:], np.float32) for run in runs]
        while len(chosen) < MOST_AVERAGED:
            # All that could be added at once; a sum is largest where the mean is.
            errors = _scores(
                runs, [run.most_attended(total + run.weights[row]) for run, total in zip(runs, sums, strict=True)]
            )[0]
            errors[chosen] = np.inf
            best = int(errors.argmin())
            if not errors[best] < error:
                break
            error = float(errors[best])
            chosen.append(best)
            sums = [total + run.weights[row, best] for run, total in zip(runs, sums, strict=True)]
        averages.append(Average(tuple(runs[0].heads[at] for at in chosen), name, error))
    return tuple(averages)


def _scores(runs: Sequence[WordAttention], links: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Error rate, precision and recall of links (…, word), (…) each, over all runs together.

    The error rate is 1 − 2 |A ∩ S| / (|A| + |S|) (Och & Ney 2003, where all links are sure); 1 where there is no link at all.
    """
    n_right, n_found, n_true = np.array(0), np.array(0), n_links(runs)
    for run, link in zip(runs, links, strict=True):
        assert run.truth is not None
        is_link = link >= 0
        # Of no link the last source word is looked up, which does not count.
        right = run.truth[np.arange(len(run.truth)), link] & is_link if run.truth.size else is_link
        n_right, n_found = n_right + right.sum(-1), n_found + is_link.sum(-1)
    error = 1 - 2 * n_right / np.maximum(n_found + n_true, 1)
    return error, n_right / np.maximum(n_found, 1), n_right / max(n_true, 1)
