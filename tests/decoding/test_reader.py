"""Decoding knows no model class: a reader of a few lines, whose right answers are found by going through all of them."""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_viz.decoding.beam import Beam, BeamResult, beam_search
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.decoding.stepwise import Decoded, stepwise
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Tap
from transformer_viz.terms import Kind, ModelKind

N_TOKENS, LIMIT = 6, 4
Found = list[tuple[tuple[int, ...], float]]
"""Sentences and their scores."""


@dataclass
class Table:
    """Its next token depends on the last two and on the source's sum. Two tokens end a sentence, and one of them is padding.

    Where `tied`, all logits are one of few numbers, so that equal totals are common.
    """

    seed: int = 0
    tied: bool = False
    kind: ModelKind = ModelKind.ENCODER_DECODER
    start_id: int = 4
    end_ids: tuple[int, ...] = (2, 5)
    pad_id: int = 5
    rules: None = None
    training: bool = False
    logits: Tensor = field(init=False)
    sizes: Sizes = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = Sizes({}, {}, N_TOKENS, 3, LIMIT, 0)
        generator = torch.Generator().manual_seed(self.seed)
        self.logits = 2 * torch.randn(3, N_TOKENS, N_TOKENS, N_TOKENS, generator=generator)
        self.logits = (self.logits / 2).round() if self.tied else self.logits
        self.log_p = self.logits.double().log_softmax(-1).tolist()

    def after(self, memory: int, written: tuple[int, ...]) -> list[float]:
        """Of each next token its log-probability."""
        before, last = (0, self.start_id, *written)[-2:]
        return self.log_p[memory][before][last]

    def is_over(self, written: tuple[int, ...], limit: int) -> bool:
        return len(written) == limit or (bool(written) and written[-1] in self.end_ids)

    def attention_block(self, kind: Kind, layer: int) -> AttentionBlock:
        return AttentionBlock()

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Tensor:
        kept = source if source_padding is None else source.masked_fill(source_padding, 0)
        return kept.sum(1) % 3

    def start_decoding(self, memory: Tensor, source_padding: Tensor | None = None) -> "Reading":
        return Reading(self, memory)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        before = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)
        return self.logits[memory[:, None], before, target]


class Reading:
    def __init__(self, table: Table, memory: Tensor) -> None:
        self.table, self.memory, self.before = table, memory, torch.zeros_like(memory)

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        found = self.table.logits[self.memory, self.before, tokens[:, 0]]
        self.before = tokens[:, 0]
        return found[:, None]

    def reorder(self, rows: Tensor) -> None:
        self.memory, self.before = self.memory[rows], self.before[rows]


SOURCES = torch.tensor([[1, 3, 0], [2, 3, 3], [1, 1, 9]])
PADDING = torch.tensor([[False, False, True], [False, False, False], [False, False, True]])
MEMORIES: list[int] = Table().encode(SOURCES, PADDING).tolist()


def batch_of(table: Table) -> TokenBatch:
    """The sources, whose padding holds any id."""
    batch = TokenBatch.of(table, SOURCES.tolist())
    return replace(batch, source_padding=PADDING)


def all_of(table: Table, memory: int) -> dict[tuple[int, ...], float]:
    """Every sentence and its log-probability: to the first end, or to the limit."""
    found, live = dict[tuple[int, ...], float](), {(): 0.0}
    while live:
        longer = {(*ids, token): total + p for ids, total in live.items() for token, p in enumerate(table.after(memory, ids))}
        found |= {ids: total for ids, total in longer.items() if table.is_over(ids, LIMIT)}
        live = {ids: total for ids, total in longer.items() if ids not in found}
    return found


def slow_beam(table: Table, memory: int, how: Beam, limit: int) -> Found:
    """Lists and sorting, and no thought of speed. `stop` is always `never`."""
    live: Found = [((), 0.0)]
    done: Found = []
    for _ in range(limit):
        continued = [
            (-(so_far + p), place, token, (*written, token))
            for place, (written, so_far) in enumerate(live)
            for token, p in enumerate(table.after(memory, written))
        ]
        live = []
        for total, _, _, written in sorted(continued)[: how.size]:
            is_over = table.is_over(written, limit)
            (done if is_over else live).append((written, -total / (len(written) ** how.length_penalty if is_over else 1)))
    return sorted(done, key=lambda one: -one[1])[: how.n_best]


def searched(table: Table, how: Beam, limit: int) -> list[BeamResult]:
    return beam_search(table, batch_of(table), how, max_length=limit)


def path_of(search: BeamResult, number: int) -> tuple[int, ...]:
    node = search.nodes[number]
    return (*(() if node.parent is None else path_of(search, node.parent)), node.token)


def found_by(search: BeamResult) -> Found:
    return [(path_of(search, number), search.nodes[number].score) for number in search.best]


def assert_same(given: Found, wanted: Found) -> None:
    assert [sentence for sentence, _ in given] == [sentence for sentence, _ in wanted]
    assert [score for _, score in given] == pytest.approx([score for _, score in wanted], abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, -0.5])
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_sentences(alpha: float) -> None:
    for seed in range(5):
        table = Table(seed)
        how = Beam(size=N_TOKENS**LIMIT, length_penalty=alpha, n_best=9, stop="never")
        for memory, result in zip(MEMORIES, searched(table, how, LIMIT), strict=True):
            scores = [(ids, total / len(ids) ** alpha) for ids, total in all_of(table, memory).items()]
            assert_same(found_by(result), sorted(scores, key=lambda one: -one[1])[:9])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_every_narrower_beam_is_the_slow_one_ties_included(size: int, tied: bool) -> None:
    for seed in range(15):
        table, how = Table(seed, tied), Beam(size, [0.0, 0.6, 1.3][seed % 3], size, "never")
        for memory, result in zip(MEMORIES, searched(table, how, 6), strict=True):
            assert_same(found_by(result), slow_beam(table, memory, how, 6))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -0.5])
def test_stopping_at_the_bound_loses_nothing(alpha: float) -> None:
    stopped = 0
    for seed in range(15):
        both = (searched(Table(seed), Beam(3, alpha, 2, stop), 7) for stop in ("bound", "never"))
        for early, late in zip(*both, strict=True):
            assert_same(found_by(early), found_by(late))
            stopped += any(node.state == "stopped" for node in early.nodes)
    assert stopped > 0 or alpha >= 2


def test_first_stops_when_enough_are_finished() -> None:
    for found in itertools.chain(*(searched(Table(seed), Beam(3, 0.6, 2, "first"), 7) for seed in range(7))):
        last = max(node.step for node in found.nodes)
        assert sum(node.step < last for node in found.nodes if node.state in ("end", "length")) < 2


def test_every_rank_reason_and_score_part_is_recorded() -> None:
    for found in searched(Table(3), Beam(3, 0.6, 3, "never"), 6):
        for number, node in enumerate(found.nodes):
            parent = None if node.parent is None else found.nodes[node.parent]
            assert node.total == pytest.approx((parent.total if parent else 0.0) + node.log_probability, abs=1e-12)
            assert node.score == pytest.approx(node.total / (node.step + 1) ** 0.6)
            assert [other for other in found.nodes if other.step == node.step][node.rank] is node
            assert (node.rank >= 3) == (node.state == "pruned")
            if node.state == "pruned":
                assert node.pruned_by is not None
                assert found.nodes[node.pruned_by].rank == 2
                assert found.nodes[node.pruned_by].total >= node.total
            assert parent is None or (parent.state == "kept" and (node.parent or 0) < number)


def greedy(table: Table, **options: Any) -> tuple[Decoded, Tensor]:
    """What is written for all sources, and the logits of every step."""
    rows = list[Tensor]()
    decoded = stepwise(table, batch_of(table), on_step=lambda _, logits, token: rows.append(logits), **options)
    return decoded, torch.stack(rows, 1)


@pytest.mark.parametrize("limit", [1, 3, 9])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(("end_ids", "pad_id"), [((2, 5), 5), ((2,), 0)])
def test_greedy_takes_the_first_of_the_best_until_an_end(
    end_ids: tuple[int, ...], pad_id: int, cached: bool, tied: bool, limit: int
) -> None:
    """Whichever end comes first, or none. Behind it a sentence is padded while others go on, and padding ends nothing."""
    for seed in range(5):
        table = Table(seed, tied, end_ids=end_ids, pad_id=pad_id)
        decoded, logits = greedy(table, max_length=limit, cached=cached)
        wanted = list[tuple[int, ...]]()
        for memory in MEMORIES:
            written: tuple[int, ...] = ()
            while not table.is_over(written, limit):
                row = table.after(memory, written)
                written = (*written, row.index(max(row)))
            wanted.append(written)
        longest = max(map(len, wanted))
        assert decoded.ids.tolist() == [[*ids, *[pad_id] * (longest - len(ids))] for ids in wanted]
        assert decoded.lengths.tolist() == [len(ids) for ids in wanted]
        for row, memory, ids in zip(logits, MEMORIES, wanted, strict=True):
            for t in range(len(ids)):
                assert row[t].double().log_softmax(-1).tolist() == table.after(memory, ids[:t])


def test_what_is_drawn_is_drawn_as_often_as_it_is_probable() -> None:
    """All sentences of one source, with their probabilities; 3,000 draws, within five standard deviations."""
    table, n = Table(1), 3_000
    counts = dict[tuple[int, ...], int]()
    for seed in range(n):
        decoded = stepwise(table, batch_of(table)[:1], max_length=LIMIT, sampling=Sampling(seed=seed))
        sentence = tuple(decoded.ids[0].tolist())
        counts[sentence] = counts.get(sentence, 0) + 1
    for sentence, total in all_of(table, int(table.encode(SOURCES[:1])[0])).items():
        p = math.exp(total)
        assert abs(counts.get(sentence, 0) - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1, sentence


def test_a_reader_in_training_is_refused() -> None:
    """Guards decoding through dropout."""
    with pytest.raises(AssertionError, match="eval"):
        greedy(Table(training=True), max_length=3)
