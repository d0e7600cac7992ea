"""What a model is asked when its masks are checked: padded sentences, and other tokens in the place of theirs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.tasks.task import Task
from transformer_viz.terms import ModelKind
from transformer_viz.tracing.framing import padded_batch
from transformer_viz.vocabulary import SPECIAL_TOKENS, START

MOST_TEXTS, MOST_TOKENS = 8, 16
"""Of texts that are not a task's: each rule asks for a pass at every place."""
_PAIRS = 16
_EXTRA_PADDING = 3
_SHORTEST = 2


@dataclass(frozen=True)
class Batch:
    """Pairs, padded: ids and padding, (batch, length). A side that the model does not have has the length 0."""

    source: Tensor
    source_padding: Tensor
    target: Tensor
    target_padding: Tensor

    def alone(self, i: int) -> "Batch":
        """One pair without its padding."""
        source, target = ~self.source_padding[i], ~self.target_padding[i]
        return Batch(
            self.source[i : i + 1, source],
            self.source_padding[i : i + 1, source],
            self.target[i : i + 1, target],
            self.target_padding[i : i + 1, target],
        )

    def shortened(self, n: int) -> "Batch":
        """With the first n tokens of each target."""
        return replace(self, target=self.target[:, :n], target_padding=self.target_padding[:, :n])


class Sentences:
    """Sentences of one model, and the tokens that may stand in the place of theirs.

    Attributes:
        batches: the same sentences, each batch padded on another side. Behind, and before too where a prompt is read, since a
            batch of prompts is padded there.
        are: what each of them is.
        notes: what was left out of them.
    """

    def __init__(self, model: LoadedModel, texts: Sequence[str] | None, replacements: int, rng: np.random.Generator) -> None:
        """Texts of a person; without any those of the model's task, else random tokens. Each position is replaced so often.

        Raises:
            OptionError: too many texts, or none.
            InputError: a text that cannot be read.
        """
        self._rng, task, reader = rng, model.task, model.model
        self._replacements, self._is_by_one = replacements, task is not None
        self._n_lengths = 8 if self._is_by_one else 4
        self._source_ids, self._target_ids = _replacements(model)
        self.notes: list[str] = []
        if texts is not None:
            sources, targets = self._of_texts(model, texts)
        elif task is not None:
            sources, targets = _of_task(task, rng)
        else:
            sources, targets = self._random(model)
        self.are: Literal["pairs", "texts"] = "pairs" if reader.kind is ModelKind.ENCODER_DECODER else "texts"
        sides = (False, True) if reader.kind.has_prompt else (False,)
        self.batches = [_padded(model, sources, targets, on_left=side) for side in sides]

    @property
    def lengths(self) -> tuple[int, int]:
        """Tokens of a source and of a target, padding included."""
        return self.batches[0].source.shape[1], self.batches[0].target.shape[1]

    def target_turns(self, batch: Batch) -> Iterator[tuple[Batch, Tensor]]:
        """The batch with other target tokens, and of each pair the first position at which they are others, (batch,).

        Of a task's pairs each position by itself. Other models are large: in each of their pairs all tokens from a position on
        are replaced at once, at another position in each, so that all of them together try every one so many times.
        """
        for where, keys in self._target_places(batch):
            yield replace(batch, target=self._others(batch.target, where, self._target_ids)), keys

    def source_turns(self, batch: Batch) -> Iterator[tuple[Batch, Tensor, Tensor]]:
        """The batch with other tokens where the source is padded, the first position of them, and in which pairs there is one.

        As `target_turns`, but that all padding of other models is replaced at once.
        """
        for where, keys, pairs in self._source_places(batch):
            yield replace(batch, source=self._others(batch.source, where, self._source_ids)), keys, pairs

    def cut_lengths(self, batch: Batch) -> list[int]:
        """Lengths at which the targets end once more, spread evenly."""
        longest = batch.target.shape[1]
        if not longest:
            return []
        return sorted({int(n) for n in np.linspace(1, longest - 1, min(self._n_lengths, longest - 1)).round()})

    @property
    def n_passes(self) -> int:
        """How many passes all rules need together: each batch in two precisions and in its turns, and once each pair alone and
        each length."""
        turns = sum(2 + len(list(self._target_places(each))) + len(list(self._source_places(each))) for each in self.batches)
        return turns + len(self.batches[0].source) + len(self.cut_lengths(self.batches[0]))

    def _target_places(self, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
        n, width = batch.target.shape
        if self._is_by_one:
            for key in range(width):
                for _ in range(self._replacements if key or bool(batch.target_padding[:, key].any()) else 0):
                    yield torch.arange(width) == key, torch.full((n,), key)
        elif width and bool(batch.target_padding[:, 0].any()):
            for _ in range(self._replacements):
                yield batch.target_padding, torch.zeros(n, dtype=torch.long)
        else:
            for turn in range(-(-self._replacements * (width - 1) // n)):
                keys = 1 + (turn * n + torch.arange(n)) % (width - 1)
                yield torch.arange(width) >= keys[:, None], keys

    def _source_places(self, batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        n, width = batch.source.shape
        if not self._is_by_one:
            first = (~batch.source_padding).sum(-1)
            for _ in range(self._replacements if width else 0):
                yield batch.source_padding, first, first < width
            return
        for key in range(width):
            pairs = batch.source_padding[:, key]
            for _ in range(self._replacements if bool(pairs.any()) else 0):
                yield pairs[:, None] & (torch.arange(width) == key), torch.full((n,), key), pairs

    def _others(self, ids: Tensor, where: Tensor, real: Tensor) -> Tensor:
        """A random one of these in each place, never the one that stands there where there is another."""
        drawn = torch.from_numpy(self._rng.integers(0, len(real), ids.shape))
        other = torch.where(real[drawn] == ids, real[(drawn + 1) % len(real)], real[drawn])
        return torch.where(where, other, ids)

    def _of_texts(self, model: LoadedModel, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        if isinstance(texts, str) or not 1 <= len(texts) <= MOST_TEXTS:
            given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
            raise OptionError(f"texts are a list of 1 to {MOST_TEXTS} texts; {given} cannot be checked")
        sources, targets = [model.tokenizer.source(text) for text in texts], [_written(model, text) for text in texts]
        read = [*sources, *targets] if model.model.kind is ModelKind.ENCODER_DECODER else sources
        if any(len(ids) > _most(model) for ids in read):
            self.notes.append(f"Note: of longer texts the first {_most(model)} tokens were read.")
        return _cut(sources, _most(model)), _cut(targets, _most(model))

    def _random(self, model: LoadedModel) -> tuple[list[list[int]], list[list[int]]]:
        """Strings of all lengths. A mask knows no token, so that any will do."""
        start, most = model.model.start_id, _most(model)
        lengths = np.linspace(min(_SHORTEST, most), most, MOST_TEXTS).round().astype(int)
        sources, targets = (
            [ids[torch.from_numpy(self._rng.integers(0, len(ids), n))].tolist() for n in lengths]
            for ids in (self._source_ids, self._target_ids)
        )
        return sources, _cut([[*([] if start is None else [start]), *ids] for ids in targets], most)


def _replacements(model: LoadedModel) -> tuple[Tensor, Tensor]:
    """Ids of a source and of a target, without those that mean something to the model itself."""
    reader, sizes = model.model, model.model.sizes
    special = {reader.start_id, *reader.end_ids, reader.pad_id, model.tokenizer.mask_id}
    if model.task is not None:
        special |= set(range(len(SPECIAL_TOKENS)))
    read, written = (
        torch.tensor([number for number in range(n) if number not in special])
        for n in (sizes.source_vocabulary or sizes.vocabulary, sizes.vocabulary)
    )
    return read, written


def _most(model: LoadedModel) -> int:
    return min(MOST_TOKENS, model.model.sizes.longest_source, model.model.sizes.longest_target)


def _cut(rows: list[list[int]], n: int) -> list[list[int]]:
    return [row[:n] for row in rows]


def _written(model: LoadedModel, text: str) -> list[int]:
    """What the decoder reads of a text: its answer where one is known, else the text itself. A mask cannot tell them apart."""
    start = model.model.start_id
    if start is None:
        return []
    expected = model.tokenizer.known(text, 0).expected
    return [start, *model.tokenizer.target(text if expected is None else expected)]


def _of_task(task: Task, rng: np.random.Generator) -> tuple[list[list[int]], list[list[int]]]:
    """Sentences of all lengths with their true answers."""
    lengths = np.linspace(task.evaluated_lengths[0], task.evaluated_lengths[-1], _PAIRS).round().astype(int)
    symbols = [task.symbols(text) for text in task.mixed(lengths.tolist(), rng)]
    sources = [task.source_vocabulary.encode(task.frame(s)) for s in symbols]
    return sources, [task.target_vocabulary.encode([START, *(task.answer(s) or [])]) for s in symbols]


def _padded(model: LoadedModel, sources: list[list[int]], targets: list[list[int]], *, on_left: bool) -> Batch:
    """Every one of them is padded, as far as the model has positions. What is read of a prompt, the decoder reads."""
    reader, nothing = model.model, [[] for _ in sources]
    if not reader.kind.writes:
        targets = nothing
    elif reader.kind.has_prompt:
        sources, targets = nothing, sources
    sides = ((sources, reader.sizes.longest_source), (targets, reader.sizes.longest_target))
    read, written = (_side(rows, reader.pad_id, most, on_left=on_left) for rows, most in sides)
    return Batch(*read, *written)


def _side(rows: list[list[int]], pad_id: int, most: int, *, on_left: bool) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    width = longest + max(0, min(_EXTRA_PADDING, most - longest)) if longest else 0
    ids, is_padding = padded_batch(rows, pad_id, width, on_left=on_left, device=torch.device("cpu"))
    return ids.long(), is_padding.bool()
