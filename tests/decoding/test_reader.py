"""Decoding knows no model class: a reader of a few lines, whose right answers are found by going through all of them."""

import itertools
import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from transformer_viz.decoding.beam import Beam, beam_search
from transformer_viz.decoding.greedy import greedy
from transformer_viz.decoding.stepwise import stepwise
from transformer_viz.decoding.teacher_forcing import teacher_forced
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Tap
from transformer_viz.terms import Kind, ModelKind

N_TOKENS, LIMIT = 6, 4


@dataclass
class Table:
    """Its next token depends on the last two and on the source's sum. Two tokens end a sentence, and one of them is padding."""

    seed: int = 0
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
        found = self.table.logits[self.memory, self.before, tokens]
        self.before = tokens
        return found

    def reorder(self, rows: Tensor) -> None:
        self.memory, self.before = self.memory[rows], self.before[rows]


SOURCES = torch.tensor([[1, 3, 0], [2, 3, 3], [1, 1, 9]])
PADDING = torch.tensor([[False, False, True], [False, False, False], [False, False, True]])


def all_of(table: Table, memory: int) -> dict[tuple[int, ...], float]:
    """Every sentence and its log-probability: to the first end, or to the limit."""
    found = {}
    for length in range(1, LIMIT + 1):
        for ids in itertools.product(range(N_TOKENS), repeat=length):
            ends = [token in table.end_ids for token in ids]
            if any(ends[:-1]) or (length < LIMIT and not ends[-1]):
                continue
            total, before, last = 0.0, 0, table.start_id
            for token in ids:
                total += float(table.logits[memory, before, last].double().log_softmax(-1)[token])
                before, last = last, token
            found[ids] = total
    return found


def written(ids: Tensor, lengths: Tensor) -> list[tuple[int, ...]]:
    return [tuple(row[:n]) for row, n in zip(ids.tolist(), lengths.tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_sentences(seed: int) -> None:
    table = Table(seed)
    how = Beam(size=N_TOKENS**LIMIT, length_penalty=0.0, n_best=5, stop="never")
    memory = table.encode(SOURCES, PADDING).tolist()
    for i, result in enumerate(beam_search(table, SOURCES, PADDING, how, max_length=LIMIT)):
        sentences = []
        for number in result.best:
            node, ids = result.nodes[number], []
            total = node.total
            while node is not None:
                ids.append(node.token)
                node = None if node.parent is None else result.nodes[node.parent]
            sentences.append((tuple(reversed(ids)), total))
        want = sorted(all_of(table, memory[i]).items(), key=lambda pair: -pair[1])[:5]
        assert [ids for ids, _ in sentences] == [ids for ids, _ in want]
        assert [total for _, total in sentences] == pytest.approx([total for _, total in want])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cached", [True, False])
def test_greedy_ends_at_whichever_end_comes_first_in_a_batch_as_alone(seed: int, cached: bool) -> None:
    table = Table(seed)
    batch = greedy(table, SOURCES, PADDING, max_length=9, cached=cached)
    for i, sentence in enumerate(written(batch.ids, batch.lengths)):
        alone = greedy(table, SOURCES[i : i + 1], PADDING[i : i + 1], max_length=9)
        assert written(alone.ids, alone.lengths) == [sentence]
        assert bool(alone.ended[0]) == bool(batch.ended[i]) == (sentence[-1] in table.end_ids)
        assert not set(sentence[:-1]) & set(table.end_ids)


def test_what_is_drawn_is_drawn_as_often_as_it_is_probable() -> None:
    """All sentences of one source, with their probabilities; 3,000 draws, within five standard deviations."""
    table, n = Table(1), 3_000
    sources = SOURCES[:1].expand(n, -1)
    generators = [torch.Generator().manual_seed(seed) for seed in range(n)]

    def each_its_own(logits: Tensor) -> tuple[Tensor, Tensor | None]:
        drawn = [torch.multinomial(row.softmax(-1), 1, generator=g) for row, g in zip(logits, generators, strict=True)]
        return torch.cat(drawn), None

    decoded = stepwise(table, sources, None, each_its_own, max_length=LIMIT)
    counts: dict[tuple[int, ...], int] = {}
    for sentence in written(decoded.ids, decoded.lengths):
        counts[sentence] = counts.get(sentence, 0) + 1
    memory = int(table.encode(SOURCES[:1])[0])
    for sentence, total in all_of(table, memory).items():
        p = math.exp(total)
        assert abs(counts.get(sentence, 0) - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1, sentence


def test_teacher_forcing_has_the_logits_of_every_row() -> None:
    table = Table(2)
    target_in = torch.tensor([[4, 0, 1], [4, 3, 3], [4, 1, 0]])
    decoded = teacher_forced(table, SOURCES, PADDING, target_in, target_in, None)
    memory = table.encode(SOURCES, PADDING)
    for i, t in itertools.product(range(3), range(3)):
        before = int(target_in[i, t - 1]) if t else 0
        assert torch.equal(decoded.logits[i, t], table.logits[memory[i], before, target_in[i, t]])


def test_a_reader_in_training_is_refused() -> None:
    with pytest.raises(AssertionError, match="eval"):
        greedy(Table(training=True), SOURCES, PADDING, max_length=3)
